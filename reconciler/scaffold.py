"""A first capacity repository as text: which Deployment to buffer and how much, its files, and the next steps. Pure."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from reconciler.model.buffers import Buffer
from reconciler.model.pods import Workload
from reconciler.model.quantity import CPU, MEMORY
from reconciler.model.refs import DEFAULT_NAMESPACE

SYSTEM_NAMESPACES = frozenset({"kube-system", "kube-public", "kube-node-lease", "headroom-system"})
_SHARE, _LEAST = 5, 3


def candidate(workloads: Iterable[Workload], buffers: Collection[Buffer]) -> Workload | None:
    """The largest Deployment of the cluster's users that has no buffer yet; of equal ones the first by name.

    Pods that request neither CPU nor memory are passed over, since a buffer for them would reserve nothing.
    """
    targets = {buffer.target for buffer in buffers}
    names = {(buffer.ref.namespace, buffer.ref.name) for buffer in buffers}  # a new buffer is called as its Deployment
    candidates = [
        workload
        for workload in workloads
        if (workload.ref.group, workload.ref.kind) == ("apps", "Deployment")
        and workload.ref.namespace not in SYSTEM_NAMESPACES
        and workload.replicas
        and _requests_room(workload)
        and workload.ref not in targets
        and (workload.ref.namespace, workload.ref.name) not in names
    ]
    return min(candidates, key=lambda workload: (-(workload.replicas or 0), workload.ref), default=None)


def chunks_for(replicas: int) -> int:
    """A fifth of the Deployment, rounded up, and at least three: a buffer that a first plan can show."""
    return max(_LEAST, -(-replicas // _SHARE))


def _requests_room(workload: Workload) -> bool:
    shape = workload.shape
    return shape is not None and (shape.requests.get(CPU) > 0 or shape.requests.get(MEMORY) > 0)


METRICS = "karpenter-metrics:http://127.0.0.1:8000/metrics"
"""Karpenter's instance types and prices, through `kubectl port-forward`. Port 8080 is for the daemon's own pages."""
_PLAIN = re.compile(r"[a-z][-.a-z0-9]*")
_TOLD_APART = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})
"""What YAML parsers take for something else than a word."""


@dataclass(frozen=True, slots=True)
class FirstRepository:
    """What it is written for.

    cluster: the name of its folder. seen: whether there was a cluster to look at. target: the Deployment to buffer, None where
    there is none. forge: whose CI file is written, None for no such file. ci_file: where that forge looks for it. cluster_flag: the
    `--cluster` that was given.
    """

    cluster: str
    seen: bool = False
    target: Workload | None = None
    forge: str | None = None
    ci_file: str = ""
    cluster_flag: str = ""

    @property
    def live(self) -> bool:
        """Whether the cluster is one with an API server, and not a file or of this process."""
        return self.seen and not self.cluster_flag.startswith(("snapshot:", "embedded:"))

    @property
    def planned_on(self) -> str:
        """What CI, which reaches no cluster, plans on."""
        if self.live:
            return f"snapshot:snapshots/{self.cluster}"
        return self.cluster_flag or "embedded"


def repository_files(first: FirstRepository, packaged: Mapping[str, str]) -> dict[str, str]:
    """The text of each file by its path. packaged: the files of `config/scaffold`, likewise."""
    folder = f"clusters/{first.cluster}"
    files = {path.removeprefix("every/"): text for path, text in packaged.items() if path.startswith("every/")}
    buffer = "pods" if first.target is None else "deployment"
    files[f"{folder}/buffers.yaml"] = _named(
        packaged[f"buffer-of-{buffer}.yaml"] + packaged["schedule.yaml"], first.target
    )
    if not first.seen:
        files[f"{folder}/nodepools.yaml"] = packaged["nodepools.yaml"]
    if first.forge is not None:
        files[first.ci_file] = packaged[f"ci/{first.forge}.yaml"].replace("PLANNED_ON", shlex.quote(first.planned_on))
    return {
        path: text if path.startswith(folder) else text.replace("CLUSTER", first.cluster)
        for path, text in files.items()
    }


def next_steps(first: FirstRepository) -> tuple[str, ...]:
    """Commands to type next, in order, in the folder that was written to."""
    path = f"--path clusters/{first.cluster}"
    if not first.live:
        on = f"{path} --cluster {shlex.quote(first.planned_on)}"
        tried = () if first.planned_on.startswith("snapshot:") else (f"headroom run {on} --until-settled",)
        return ("headroom validate --strict", f"headroom plan {on}", *tried)
    flag = f" --cluster {shlex.quote(first.cluster_flag)}" if first.cluster_flag else ""
    context = first.cluster_flag.partition("kubeconfig:")[2]
    kubectl = f"kubectl --context {shlex.quote(context)}" if context else "kubectl"
    return (
        "headroom validate --strict",
        f"{kubectl} --namespace kube-system port-forward service/karpenter 8000:8080 &",
        f"export HEADROOM_CATALOG={METRICS}",
        f"headroom plan {path}{flag}",
        f"headroom snapshot -o snapshots/{first.cluster}{flag}",
        f"headroom crd | {kubectl} apply --server-side -f -",
        f"headroom run {path}{flag} --until-settled",
    )


def _named(text: str, target: Workload | None) -> str:
    """The text with its words in capitals filled in: how many chunks, of what."""
    words = {"CHUNKS": str(_LEAST), "NAMESPACE": DEFAULT_NAMESPACE}
    if target is not None:
        words = {
            "CHUNKS": str(chunks_for(target.replicas or 0)),
            "TARGET": target.ref.name,
            "NAMESPACE": _scalar(target.ref.namespace),
            "NAME": _scalar(target.ref.name),
        }
    return re.sub("|".join(words), lambda found: words[found[0]], text)


def _scalar(name: str) -> str:
    """A name of the cluster as YAML; quoted where it could be read as a number or a truth."""
    return name if _PLAIN.fullmatch(name) and name not in _TOLD_APART else json.dumps(name)

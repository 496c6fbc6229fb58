"""The files of a first repository, and what to do with them next."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass

from reconciler.manifests.editor_schema import SCHEMA_FILE, editor_line, editor_schema_text
from reconciler.model.pods import Workload
from reconciler.scaffold.candidate import chunks_for

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
    if first.target is None:
        files[f"{folder}/buffers.yaml"] = editor_line(2) + packaged["buffer-of-pods.yaml"]
    else:
        files[f"{folder}/buffers.yaml"] = editor_line(2) + _buffer_of(
            first.target, packaged["buffer-of-deployment.yaml"]
        )
    if not first.seen:
        files[f"{folder}/nodepools.yaml"] = editor_line(2) + packaged["nodepools.yaml"]
    if first.forge is not None:
        files[first.ci_file] = packaged[f"ci/{first.forge}.yaml"].replace("PLANNED_ON", shlex.quote(first.planned_on))
    named = {
        path: text if path.startswith(folder) else text.replace("CLUSTER", first.cluster)
        for path, text in files.items()
    }
    return {**named, SCHEMA_FILE: editor_schema_text()}


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


def _buffer_of(target: Workload, text: str) -> str:
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

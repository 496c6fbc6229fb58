"""An hour of trouble on a real API server: what the daemon's process holds must be as much at the end as at the beginning.

    HEADROOM_SOAK_MINUTES=60 pytest -m soak -s tests/e2e/test_soak.py

Watches are cut, the API server goes away, the repository refuses, hangs and vanishes, pods come and go, and every commit changes buffers.
"""

from __future__ import annotations

import os
import random
import statistics
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from reconciler.model.nodes import ZONE_LABEL
from tests.builders import manifest, node_manifest
from tests.controlplane import ControlPlane, eventually
from tests.controlplane.documents import NODE_CLASS_REF, namespace, node_class, node_pool
from tests.controlplane.rest import Document
from tests.controlplane.waiting import moments
from tests.e2e.cut_connections import CuttableConnections
from tests.e2e.daemon_process import DaemonProcess, install_rbac
from tests.git_repository import GitRepository
from tests.integration.git_server import GitHttpServer
from tests.manifests import buffer, pod_template

MINUTES = float(os.environ.get("HEADROOM_SOAK_MINUTES", "60"))
LEAST_MINUTES = 40
"""Quarters are compared, so each must see every kind of trouble at least twice. Nine kinds take four minutes at most."""
NODES, PODS, BUFFERS = 20, 200, 20
PASSES_A_MINUTE = 5000 / 60
EVERY = 5.0
"""Seconds between two looks at the process."""


def node(number: int) -> tuple[Document, Document]:
    """A ready node of 8 CPUs and its NodeClaim, each with its status."""
    name, room = f"soak-{number}", {"cpu": "8", "memory": "32Gi", "pods": "110"}
    own: dict[str, Any] = {"labels": {ZONE_LABEL: "test-zone-a"}, "providerID": f"kwok://{name}"}
    there = node_manifest(name, room, pool="default", of_type="s-8x-amd64-linux", **own)
    since = {"status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    kinds = ("Launched", "Registered", "Initialized", "Ready")
    joined = {"nodeName": name, "providerID": f"kwok://{name}"}
    claim = manifest(
        "karpenter.sh/v1",
        "NodeClaim",
        f"default-{number}",
        metadata={"labels": there["metadata"]["labels"]},
        spec={"nodeClassRef": NODE_CLASS_REF, "requirements": []},
        status={
            "allocatable": room,
            "capacity": room,
            **joined,
            "conditions": [{"type": kind, "reason": kind, **since} for kind in kinds],
        },
    )
    return there, claim


def pod(number: int, on: int) -> Document:
    container = {"name": "main", "image": "main:1", "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}}}
    spec = {"nodeName": f"soak-{on}", "terminationGracePeriodSeconds": 0, "containers": [container]}
    return manifest("v1", "Pod", f"pod-{number}", "soak", metadata={"labels": {"app": f"app-{number % 10}"}}, spec=spec)


@dataclass(frozen=True, slots=True)
class Look:
    """What the process holds: open descriptors, threads, children, and MiB of resident memory."""

    descriptors: int
    threads: int
    children: int
    memory: float

    @classmethod
    def at(cls, pid: int) -> Look:
        facts = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        memory = int(facts["VmRSS"].split()[0]) / 1024
        return cls(len(os.listdir(f"/proc/{pid}/fd")), int(facts["Threads"]), len(children), memory)  # noqa: PTH208 - a count


class Cluster:
    """Static nodes and pods that come and go, on an API server where nothing else acts."""

    def __init__(self, plane: ControlPlane, chance: random.Random) -> None:
        self.plane = plane
        self._chance = chance
        self._next = PODS
        self._pods = {number: number % NODES for number in range(PODS)}

    def fill(self) -> None:
        api = self.plane.api
        for document in (namespace("soak"), node_class(), node_pool()):
            api.apply(document)
        for number in range(NODES):
            for document in node(number):
                api.create(document)
                status = {"status": document["status"]}
                api.patch(
                    document["apiVersion"], document["kind"], document["metadata"]["name"], status, subresource="status"
                )
        for number, on in self._pods.items():
            self._make(number, on)

    def churn(self) -> None:
        """Ten pods go, ten others come elsewhere."""
        for number in self._chance.sample(sorted(self._pods), 10):
            del self._pods[number]
            self.plane.api.delete("v1", "Pod", f"pod-{number}", namespace="soak")
            self._pods[self._next] = self._chance.randrange(NODES)
            self._make(self._next, self._pods[self._next])
            self._next += 1

    def _make(self, number: int, on: int) -> None:
        self.plane.api.create(pod(number, on))
        running = {"status": {"phase": "Running"}}
        self.plane.api.patch("v1", "Pod", f"pod-{number}", running, namespace="soak", subresource="status")


class Trouble:
    """Everything that may go wrong around a daemon in weeks, each for some seconds."""

    def __init__(
        self,
        cluster: Cluster,
        git: GitHttpServer,
        between: CuttableConnections,
        repository: GitRepository,
        chance: random.Random,
    ) -> None:
        self._cluster, self._git, self._between, self._repository = cluster, git, between, repository
        self._chance = chance
        self.sizes = [0] * BUFFERS

    def commit(self) -> None:
        """Every buffer gets another size; now and then one goes and another comes back."""
        self.sizes = [self._chance.randrange(5) for _ in self.sizes]
        files: dict[str, str | None] = {
            "template.yaml": pod_template("web", "cpu: 100m, memory: 64Mi", namespace="soak")
        }
        documents = [
            buffer(f"web-{number}", f"replicas: {size}", namespace="soak")
            for number, size in enumerate(self.sizes)
            if size
        ]
        files["buffers.yaml"] = "---\n".join(documents)
        self._repository.push(files)

    def rounds(self) -> Iterator[Callable[[], None]]:
        """Every kind of trouble in a random order, and again."""
        often, seldom = [self.cut, self.commit], [self.hang, self.restart, self.refuse, self.vanish, self.stall]
        kinds = [*often, *often, *seldom]
        while True:
            yield from self._chance.sample(kinds, len(kinds))

    def cut(self) -> None:
        self._between.cut()

    def hang(self) -> None:
        """The API server takes connections and says nothing."""
        self._between.silent = True
        pause(8)
        self._between.silent = False
        self._between.cut()

    def restart(self) -> None:
        self._cluster.plane.stop_api_server()
        pause(self._chance.uniform(1, 10))
        self._cluster.plane.start_api_server()

    def refuse(self) -> None:
        self._git.fault = self._chance.choice(["500", "403", "truncate"])
        self.commit()
        pause(10)
        self._git.fault = ""

    def vanish(self) -> None:
        self._git.stop()
        pause(10)
        self._git.start()

    def stall(self) -> None:
        self._git.fault = "hang"
        pause(10)
        self._git.fault = ""
        self._git.release()
        self._git.released.clear()


def pause(seconds: float) -> None:
    for _ in moments(within=seconds, every=0.5):
        pass


def judge(looks: list[Look], passes: int) -> None:
    """The last quarter against the second one: in the first caches fill."""
    quarter = len(looks) // 4
    early, late = looks[quarter : 2 * quarter], looks[-quarter:]
    rows = []
    for what in ("descriptors", "threads", "children", "memory"):
        before, after = (sorted(getattr(look, what) for look in part) for part in (early, late))
        rows.append((what, statistics.median(before), statistics.median(after), before[-1], after[-1]))
    for what, before, after, most_before, most_after in rows:
        sys.stdout.write(
            f"{what}: median {before:.1f} then {after:.1f}, most {most_before:.1f} then {most_after:.1f}\n"
        )
    sys.stdout.write(f"{passes:,} passes in {MINUTES:g} minutes, {len(looks)} looks\n")
    for what, before, after, _, _ in rows[:3]:
        assert after <= before + 3, f"{what} grow"
    assert rows[3][2] <= rows[3][1] * 1.05, "memory grows"
    assert passes >= MINUTES * PASSES_A_MINUTE * 0.9


@pytest.fixture
def plane(empty_api_server: ControlPlane) -> ControlPlane:
    return empty_api_server


@pytest.mark.soak
def test_an_hour_of_trouble_leaves_nothing_behind(
    plane: ControlPlane, repository: GitRepository, tmp_path: Path
) -> None:
    assert MINUTES >= LEAST_MINUTES, (
        f"HEADROOM_SOAK_MINUTES is {MINUTES:g}, expected {LEAST_MINUTES} or more: quarters of a shorter run see different troubles"
    )
    chance = random.Random(5)
    cluster = Cluster(plane, chance)
    cluster.fill()
    settings = {"git_timeout": "10s", "passes_interval": "500ms"}
    with GitHttpServer(repository.served) as git, CuttableConnections(install_rbac(plane), tmp_path) as between:
        trouble = Trouble(cluster, git, between, repository, chance)
        trouble.commit()
        with DaemonProcess(git.url, between.kubeconfig, tmp_path, **settings) as daemon:
            eventually(lambda: daemon.status()["result"] == "ok", within=60, what="a pass has succeeded")
            looks = suffered(trouble, cluster, daemon)
            trouble.commit()
            eventually(lambda: is_done(daemon, trouble), within=120, what="all is as declared in the end", every=1)
            judge(looks, int(daemon.status()["passes"]))


def suffered(trouble: Trouble, cluster: Cluster, daemon: DaemonProcess) -> list[Look]:
    looks, rounds, due = [], trouble.rounds(), 0.0
    for passed in moments(within=MINUTES * 60, every=EVERY):
        assert daemon.running
        looks.append(Look.at(daemon.pid))
        if len(looks) % 24 == 0:
            sys.stdout.write(f"{passed / 60:5.1f} min: {looks[-1]}\n")
            sys.stdout.flush()
        cluster.churn()
        if passed >= due:
            next(rounds)()
            due = passed + 20
    return looks


def is_done(daemon: DaemonProcess, trouble: Trouble) -> bool:
    status = daemon.status()
    wanted = {f"web-{number}": size for number, size in enumerate(trouble.sizes) if size}
    found = {row["name"]: row["desired"] for row in status["demands"]}
    assert wanted.items() <= found.items(), (found, wanted, status["message"])
    return bool(status["result"] == "ok")

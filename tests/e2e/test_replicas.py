"""Two replicas on a real API server whose lead is taken away at random: only the one that leads writes.

What was written, and who led then, is read from the audit log (lead_history.py). One write may still come in after its
replica has lost the lead: the one that was on its way just then. Passes write one object after the other, so it is one.

    pytest -m soak -s tests/e2e/test_replicas.py    # five minutes, in which leases run out too
"""

from __future__ import annotations

import itertools
import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.controlplane import ControlPlane, eventually
from tests.e2e.capacity_repository import CapacityRepository
from tests.e2e.daemon_process import NAMESPACE, DaemonProcess, install_rbac
from tests.e2e.lead_history import LeadHistory

LEASE = ("coordination.k8s.io/v1", "Lease", "headroom")
RBAC = "rbac.authorization.k8s.io/v1"
NAMES = ("replica-a", "replica-b")
ON_THEIR_WAY = 1
"""Writes of one replica that may come in after it has lost the lead."""
LOOKS_AGAIN = 5.0
"""Seconds between two looks of a replica at the Lease."""
PATIENCE = 60.0
"""Seconds beyond the time in which both should have led."""
TEMPLATES = 30
TEMPLATE = """\
apiVersion: v1
kind: PodTemplate
metadata: {{name: web-{number}, namespace: default, annotations: {{example.com/version: "{version}"}}}}
template:
  spec:
    containers: [{{name: main, image: "main:1", resources: {{requests: {{cpu: 1}}}}}}]
"""


def replica_kubeconfig(plane: ControlPlane, name: str) -> Path:
    """An account of its own for a replica, with the shipped roles: the audit log tells it from the other."""
    for kind, namespace in (("ClusterRoleBinding", None), ("RoleBinding", NAMESPACE)):
        own = "headroom" if namespace else f"headroom:{NAMESPACE}"
        binding = plane.api.get(RBAC, kind, own, namespace=namespace)
        assert binding is not None
        plane.api.apply(
            {
                "apiVersion": RBAC,
                "kind": kind,
                "metadata": {"name": name, **({"namespace": namespace} if namespace else {})},
                "roleRef": binding["roleRef"],
                "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": NAMESPACE}],
            }
        )
    return plane.service_account_kubeconfig(NAMESPACE, name)


class Replica(DaemonProcess):
    """A daemon that takes part in the election, and remembers when its processes ended."""

    def __init__(self, name: str, plane: ControlPlane, repository: CapacityRepository, work: Path) -> None:
        work.mkdir()
        super().__init__(repository.folder, replica_kubeconfig(plane, name), work, leader_election="true")
        self.user = f"system:serviceaccount:{NAMESPACE}:{name}"
        self.exits: list[datetime] = []

    def stop(self) -> int:
        os.kill(self.pid, signal.SIGCONT)
        code = super().stop()
        self.exits.append(datetime.now(UTC))
        return code

    def leads(self) -> bool:
        return bool(self.status()["leads"])


class Trouble:
    """Takes the lead away in one of several ways, while commits keep the leader writing."""

    def __init__(
        self, plane: ControlPlane, repository: CapacityRepository, replicas: list[Replica], chance: random.Random
    ) -> None:
        self._api = plane.api
        self._repository = repository
        self._replicas = replicas
        self._chance = chance
        self._versions = itertools.count()

    def let_pass(self, least: float, most: float) -> None:
        """Some seconds, with a commit in each half of one that changes every template."""
        until = time.monotonic() + self._chance.uniform(least, most)

        def commit() -> bool:
            self.commit()
            return time.monotonic() >= until

        eventually(commit, within=most + 30, what="the time has passed", every=0.5)

    def commit(self) -> None:
        version = next(self._versions)
        texts = [TEMPLATE.format(number=number, version=version) for number in range(TEMPLATES)]
        self._repository.push({"templates.yaml": "---\n".join(texts)})

    def leader(self) -> Replica:
        """Once all have seen its Lease: one that never saw it takes a deleted Lease for a new cluster's."""

        def look() -> list[Replica]:
            known = {replica.status()["leader"] for replica in self._replicas}
            assert len(known) == 1, known
            return [replica for replica in self._replicas if replica.leads()]

        return eventually(look, within=90, what="a replica leads, and all know it")[0]

    def delete_the_lease(self) -> None:
        self._api.delete(*LEASE, namespace=NAMESPACE)
        self.let_pass(LOOKS_AGAIN, LOOKS_AGAIN + 2)

    def steal_the_lease(self) -> None:
        """For long enough that both replicas see it; then it is given up as a replica would."""
        self._write_lease("thief")
        self.let_pass(LOOKS_AGAIN + 1, LOOKS_AGAIN + 3)
        self._write_lease("")

    def restart_the_leader(self) -> None:
        leader = self.leader()
        assert leader.stop() == 0
        self.let_pass(0, 2)
        leader.start()

    def suspend_the_leader_and_delete_the_lease(self) -> None:
        leader = self.leader()
        os.kill(leader.pid, signal.SIGSTOP)
        self._api.delete(*LEASE, namespace=NAMESPACE)
        self.let_pass(LOOKS_AGAIN + 1, LOOKS_AGAIN + 5)
        os.kill(leader.pid, signal.SIGCONT)

    def suspend_the_leader_until_another_leads(self) -> None:
        leader = self.leader()
        (other,) = (replica for replica in self._replicas if replica is not leader)

        def taken_over() -> bool:
            self.commit()
            return other.leads()

        os.kill(leader.pid, signal.SIGSTOP)
        eventually(taken_over, within=90, what="the other takes over", every=0.5)
        self.let_pass(0, 3)
        os.kill(leader.pid, signal.SIGCONT)

    def _write_lease(self, holder: str) -> None:
        spec = {"holderIdentity": holder, "leaseDurationSeconds": 35 if holder else 1}
        self._api.patch(*LEASE, {"spec": spec}, namespace=NAMESPACE)


@pytest.fixture
def plane(empty_api_server: ControlPlane) -> Iterator[ControlPlane]:
    """With the shipped roles; the Lease of another test is not there."""
    install_rbac(empty_api_server)
    empty_api_server.api.delete(*LEASE, namespace=NAMESPACE)
    yield empty_api_server
    empty_api_server.api.delete(*LEASE, namespace=NAMESPACE)
    for name in (*NAMES, f"headroom:{NAMESPACE}"):
        empty_api_server.api.delete(RBAC, "ClusterRoleBinding", name)
    empty_api_server.api.delete(RBAC, "ClusterRole", "headroom")


def disturb(trouble: Trouble, seconds: float, ways: list[Callable[[], None]], chance: random.Random) -> None:
    """Every way once in a random order, then again, until the time is over and both have led (a slow machine does few in the time)."""
    until, led = time.monotonic() + seconds, set[str]()
    for way in itertools.chain.from_iterable(chance.sample(ways, len(ways)) for _ in itertools.count()):
        led.add(trouble.leader().user)
        trouble.let_pass(0.5, 2)
        over = time.monotonic() - until
        if over >= 0 and (len(led) > 1 or over >= PATIENCE):
            return
        way()


@pytest.mark.parametrize(
    ("seconds", "seed"),
    [pytest.param(45, 1, marks=pytest.mark.e2e), pytest.param(300, 2, marks=pytest.mark.soak)],
)
def test_only_the_leader_writes(
    seconds: int, seed: int, plane: ControlPlane, repository: CapacityRepository, tmp_path: Path
) -> None:
    chance = random.Random(seed)
    mark = plane.audit_mark()
    with ExitStack() as stack:
        replicas = [stack.enter_context(Replica(name, plane, repository, tmp_path / name)) for name in NAMES]
        trouble = Trouble(plane, repository, replicas, chance)
        ways = [
            trouble.delete_the_lease,
            trouble.steal_the_lease,
            trouble.restart_the_leader,
            trouble.suspend_the_leader_and_delete_the_lease,
        ]
        if seconds > 60:
            # alone takes most of a minute: a Lease must run out
            ways.append(trouble.suspend_the_leader_until_another_leads)
        disturb(trouble, seconds, ways, chance)
    history = LeadHistory(plane.audit_events(since=mark), {replica.user: replica.exits for replica in replicas})
    late = history.late_writes()
    figures = f"{len(history.writes)} writes, {history.handovers} handovers, {len(late)} late"
    print(figures)  # noqa: T201 - shown with -s: the figures of a long run
    assert {write.user for write in history.writes} == {replica.user for replica in replicas}
    assert None not in late, "a replica wrote that had never led"
    assert all(len(writes) <= ON_THEIR_WAY for writes in late.values()), late

"""Two replicas and one Lease on a real API server: one leads, the other takes over."""

from __future__ import annotations

import pytest

from reconciler.cluster.access import kubeconfig_access
from reconciler.cluster.connection import Connection
from reconciler.cluster.lease import KubernetesLeases, LeaderElection
from tests.controlplane import ControlPlane
from tests.controlplane.documents import namespace
from tests.fakes.clock import ManualClock

pytestmark = pytest.mark.e2e


class Replicas:
    """Candidates whose time is moved by hand, since leases run out after half a minute."""

    def __init__(self, plane: ControlPlane) -> None:
        plane.api.apply(namespace("lease"))
        plane.api.delete("coordination.k8s.io/v1", "Lease", "headroom", namespace="lease")
        self._path = str(plane.kubeconfig())
        self._connection = Connection(lambda: kubeconfig_access(path=self._path))
        self.clock = ManualClock()

    def candidate(self, identity: str) -> LeaderElection:
        leases = KubernetesLeases(self._connection, "lease", "headroom")
        return LeaderElection(leases, identity, monotonic=lambda: self.clock.now().timestamp(), now=self.clock.now)


def holder(plane: ControlPlane) -> object:
    lease = plane.api.get("coordination.k8s.io/v1", "Lease", "headroom", namespace="lease")
    assert lease is not None
    return lease["spec"].get("holderIdentity")


def test_one_leads_until_it_stops_renewing(empty_api_server: ControlPlane) -> None:
    replicas = Replicas(empty_api_server)
    first, second = replicas.candidate("a"), replicas.candidate("b")
    first.step()
    second.step()
    assert (first.is_leader(), second.is_leader(), holder(empty_api_server)) == (True, False, "a")
    replicas.clock.advance(34)
    second.step()
    assert (first.is_leader(), second.is_leader()) == (False, False)
    replicas.clock.advance(2)
    second.step()
    assert (first.is_leader(), second.is_leader(), holder(empty_api_server)) == (False, True, "b")
    first.step()
    assert first.is_leader() is False


def test_of_two_that_write_over_the_same_version_one_leads(empty_api_server: ControlPlane) -> None:
    replicas = Replicas(empty_api_server)
    leases = KubernetesLeases(replicas._connection, "lease", "headroom")
    replicas.candidate("a").step()
    stale = leases.read()
    replicas.clock.advance(5)
    replicas.candidate("a").step()
    assert leases.write(stale) is None

"""Elects the replica that leads, and keeps all others from writing."""

from __future__ import annotations

import socket
from collections.abc import Callable
from contextlib import ExitStack
from math import inf
from uuid import uuid4

from reconciler.cluster.embedded.cluster import EmbeddedCluster
from reconciler.cluster.kubernetes import KubernetesCluster
from reconciler.cluster.lease import LeaderElection
from reconciler.daemon.daemon import Daemon
from reconciler.ports import Cluster
from reconciler.settings.settings import Settings


def election_of(settings: Settings, cluster: Cluster) -> LeaderElection | None:
    """Only real clusters have several replicas; without an election every one of them leads."""
    if not settings.leader_election or not isinstance(cluster, KubernetesCluster):
        return None
    # The host alone is not enough: a restarted process is another candidate, and must not take its old lease for its own.
    return cluster.election(f"{socket.gethostname()}_{uuid4().hex[:8]}")


def leadership(election: LeaderElection | None, tell: Callable[[bool], None]) -> Callable[[], bool]:
    """Whether this replica leads, told to the metrics each time it is asked."""

    def is_leader() -> bool:
        leads = election is None or election.is_leader()
        tell(leads)
        return leads

    return is_leader


def on_change(cluster: Cluster, daemon: Daemon, request: Callable[[str], None]) -> Callable[[], None]:
    """A change of the cluster. Where it takes held room, quiet is not waited for. request: called with what asks for a pass, once
    for each value."""
    if not isinstance(cluster, KubernetesCluster | EmbeddedCluster):
        return daemon.changed
    taken, asked = cluster.room_taken, ""

    def changed() -> None:
        nonlocal taken, asked
        before, taken = taken, cluster.room_taken
        if isinstance(cluster, KubernetesCluster) and cluster.requested_at != asked:
            asked = cluster.requested_at
            request(asked)
        if taken != before:
            daemon.room_taken()
        else:
            daemon.changed()

    return changed


def guard(cluster: Cluster, daemon: Daemon, election: LeaderElection | None, stack: ExitStack) -> None:
    """No write by a replica that stops or no longer leads; its lease is given up only after its last write."""
    if not isinstance(cluster, KubernetesCluster):
        return

    def hindrance() -> str:
        if daemon.stopping:
            return "headroom is stopping"
        return "" if election is None or election.is_leader() else "another replica leads"

    cluster.write_only_unless(hindrance, (lambda: inf) if election is None else election.seconds_left)
    if election is not None:
        stack.callback(lambda: election.close(release=not cluster.is_writing))
        election.start()

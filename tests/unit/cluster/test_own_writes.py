"""A view has what this process wrote, however late the watch tells of it."""

from __future__ import annotations

from threading import Timer

import pytest

from reconciler.cluster.access import Access
from reconciler.cluster.inventory import InventoryParent
from reconciler.cluster.kubernetes import KubernetesCluster, _some
from reconciler.cluster.resources import KARPENTER, NODE_CLAIMS, NODES
from reconciler.model.errors import Waiting
from reconciler.model.refs import ObjectRef
from tests.unit.cluster.documents import node_claim

WRITTEN = 7
"""The resourceVersion that the server gave the NodeClaim."""


def no_access() -> Access:
    raise AssertionError("no call is made")


def cluster_that_wrote(*, sync_timeout: float) -> KubernetesCluster:
    """It has read everything, up to the version before its own write of a NodeClaim."""
    cluster = KubernetesCluster("test", no_access, inventory=InventoryParent(), sync_timeout=sync_timeout)
    for watch in cluster._watches.values():
        watch.settled = watch.is_following = True
        watch.version = WRITTEN - 1
    cluster._wrote(ObjectRef(KARPENTER, "NodeClaim", "", "new"), str(WRITTEN))
    return cluster


def test_a_view_waits_for_the_watch_to_tell_of_an_own_write() -> None:
    cluster = cluster_that_wrote(sync_timeout=60)

    def tell() -> None:
        cluster._store.put(NODE_CLAIMS, node_claim("new"))
        cluster._watches[NODE_CLAIMS.key].version = WRITTEN
        cluster._notice(changed=True)

    Timer(0.1, tell).start()
    assert [claim.name for claim in cluster.view().node_claims] == ["new"]


def test_there_is_no_view_without_an_own_write_and_the_next_one_waits_again() -> None:
    cluster = cluster_that_wrote(sync_timeout=0.05)
    for _ in range(2):
        with pytest.raises(Waiting, match=r"own writes of nodeclaims\.karpenter\.sh not read yet"):
            cluster.view()


def test_other_kinds_are_not_waited_for() -> None:
    cluster = cluster_that_wrote(sync_timeout=0.05)
    cluster._watches[NODE_CLAIMS.key].version = WRITTEN
    assert cluster._watches[NODES.key].version < WRITTEN
    cluster.view()


def test_a_watch_that_cannot_go_on_is_not_waited_for() -> None:
    """A gap says so, so that nothing is deleted meanwhile."""
    cluster = cluster_that_wrote(sync_timeout=0.05)
    cluster._watches[NODE_CLAIMS.key]._gap("nodeclaims cannot be read", settled=True)
    assert not cluster.view().complete


def test_of_many_lists_that_are_late_a_few_are_named_and_all_that_say_why() -> None:
    """A daemon without its API server named all thirty kinds in one line of its log."""
    assert _some(["a", "b", "c", "d", "e (forbidden)", "f"]) == "e (forbidden), a, b, c and 2 more"
    assert _some(["a", "b"]) == "a, b"

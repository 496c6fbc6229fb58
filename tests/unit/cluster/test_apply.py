"""Applying a plan: order, inventory, and headroom's own writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from threading import Timer
from typing import Any

import pytest

from reconciler.cluster.access import Access
from reconciler.cluster.apply import MEMORY_KEY, InventoryParent, carry_out, records_text
from reconciler.cluster.kubernetes import KubernetesCluster, _some
from reconciler.cluster.resources import NODE_CLAIMS, NODES
from reconciler.model.changes import Annotate, Apply, ChangeSet, Delete, Outcome, Write, WriteResult
from reconciler.model.errors import Waiting
from reconciler.model.marks import PART_OF_LABEL
from reconciler.model.nodes import KARPENTER_GROUP
from reconciler.model.refs import ObjectRef
from reconciler.model.remembered import REQUESTS_KEY, RequestRecord, records_of
from tests.fakes.cluster import PARENT, FakeCluster, KilledError
from tests.unit.cluster.documents import node_claim

POOL = ObjectRef("karpenter.sh", "NodePool", "", "general")
BUFFER = ObjectRef("autoscaling.x-k8s.io", "CapacityBuffer", "shop", "web")
OLD = ObjectRef("autoscaling.x-k8s.io", "CapacityBuffer", "shop", "old")
CLAIM = ObjectRef("karpenter.sh", "NodeClaim", "", "general-1")


def manifest(ref: ObjectRef, *, member: bool = True) -> dict[str, Any]:
    labels = {PART_OF_LABEL: PARENT.id} if member else {}
    version = f"{ref.group}/v1" if ref.group else "v1"
    metadata = {"name": ref.name, "namespace": ref.namespace, "labels": labels}
    return {"apiVersion": version, "kind": ref.kind, "metadata": metadata}


def apply(ref: ObjectRef, *, member: bool = True) -> Apply:
    return Apply(ref, manifest(ref, member=member))


def run(cluster: FakeCluster, writes: Sequence[Write], memory: Mapping[str, Any] | None = None) -> ChangeSet:
    return carry_out(cluster, writes, parent=PARENT, view=cluster.view(), records=memory or {})


def kinds(cluster: FakeCluster) -> str:
    annotations = cluster.stored[PARENT.ref]["metadata"]["annotations"]
    return str(annotations["applyset.kubernetes.io/contains-group-kinds"])


def outcomes(changes: ChangeSet) -> dict[str, str]:
    return {str(result.write.ref): result.outcome.value for result in changes.results}


def test_the_inventory_comes_first_then_pools_then_buffers_then_claims_then_marks_and_deletions_last() -> None:
    cluster = FakeCluster({OLD: manifest(OLD)})
    run(
        cluster,
        [
            Delete(OLD),
            Annotate(CLAIM, (("karpenter.sh/do-not-disrupt", "true"),)),
            apply(CLAIM, member=False),
            apply(BUFFER),
            apply(POOL),
        ],
    )
    assert cluster.done == [
        "Apply ConfigMap/headroom-system/headroom",
        "Apply NodePool/general",
        "Apply CapacityBuffer/shop/web",
        "Apply NodeClaim/general-1",
        "Annotate NodeClaim/general-1",
        "Delete CapacityBuffer/shop/old",
    ]


def test_the_inventory_says_in_which_kinds_and_namespaces_members_are() -> None:
    cluster = FakeCluster()
    run(cluster, [apply(BUFFER), apply(POOL), apply(CLAIM, member=False)])
    metadata = cluster.stored[PARENT.ref]["metadata"]
    assert metadata["labels"] == {"applyset.kubernetes.io/id": PARENT.id}
    assert kinds(cluster) == "CapacityBuffer.autoscaling.x-k8s.io,NodePool.karpenter.sh"
    assert metadata["annotations"]["applyset.kubernetes.io/additional-namespaces"] == "shop"
    assert cluster.view().inventory.members == {BUFFER, POOL}


def test_without_members_or_memory_there_is_no_inventory() -> None:
    cluster = FakeCluster()
    run(cluster, [apply(CLAIM, member=False)])
    assert cluster.done == ["Apply NodeClaim/general-1"]


@pytest.mark.parametrize("outcome", [Outcome.REFUSED, Outcome.CONFLICT])
def test_a_write_that_a_dry_run_refuses_is_reported_and_the_others_go_on(outcome: Outcome) -> None:
    cluster = FakeCluster(refused={POOL: outcome})
    changes = run(cluster, [apply(POOL), apply(BUFFER)])
    assert outcomes(changes) == {"NodePool/general": outcome.value, "CapacityBuffer/shop/web": "applied"}
    assert [failure.message for failure in changes.failures] == ["the server said no"]


def test_the_dry_run_of_everything_comes_before_the_first_write() -> None:
    order: list[str] = []

    class Watched(FakeCluster):
        def write(self, write: Write, *, dry_run: bool = False) -> WriteResult:
            order.append(f"{'try' if dry_run else 'do'} {write.ref.kind}")
            return super().write(write, dry_run=dry_run)

    run(Watched(), [apply(CLAIM, member=False), apply(POOL)])
    assert order == ["try NodePool", "try NodeClaim", "do ConfigMap", "do NodePool", "do NodeClaim"]


def test_a_server_that_does_not_answer_is_not_asked_for_everything() -> None:
    refs = [ObjectRef("karpenter.sh", "NodeClaim", "", f"c-{index}") for index in range(10)]
    asked: list[ObjectRef] = []

    class Gone(FakeCluster):
        def write(self, write: Write, *, dry_run: bool = False) -> WriteResult:  # noqa: ARG002 - as the port has it
            asked.append(write.ref)
            return WriteResult(write, Outcome.FAILED, "timed out")

    changes = run(Gone(), [apply(ref, member=False) for ref in refs])
    assert len(asked) == 3
    assert {result.outcome for result in changes.results} == {Outcome.FAILED}
    assert len(changes.results) == 10


def test_webhooks_that_do_not_answer_leave_only_the_rest_of_their_kind_untried() -> None:
    """A pass waits for them, up to ten seconds for each object."""
    buffers = [ObjectRef(BUFFER.group, BUFFER.kind, "shop", f"b-{index}") for index in range(10)]
    why = 'Internal error occurred: failed calling webhook "policy.example.com": context deadline exceeded'

    class Guarded(FakeCluster):
        def write(self, write: Write, *, dry_run: bool = False) -> WriteResult:
            if isinstance(write, Apply) and write.ref.kind == BUFFER.kind:
                return WriteResult(write, Outcome.FAILED, why)
            return super().write(write, dry_run=dry_run)

    changes = run(Guarded({OLD: manifest(OLD)}), [*map(apply, buffers), apply(CLAIM, member=False), Delete(OLD)])
    assert [result.message for result in changes.failures] == [why] * 3 + ["not tried: the calls before it failed"] * 7
    assert {str(item.write.ref) for item in changes.results if item.ok} == {str(CLAIM), str(OLD)}


def test_when_the_inventory_cannot_be_written_only_holds_are() -> None:
    """A hold protects what is there; everything else could be lost sight of."""
    cluster = FakeCluster({OLD: manifest(OLD)}, refused={PARENT.ref: Outcome.REFUSED})
    changes = run(cluster, [apply(BUFFER), Annotate(CLAIM, (("a", "b"),)), Delete(OLD)])
    assert cluster.done == ["Annotate NodeClaim/general-1"]
    assert outcomes(changes) == {
        "CapacityBuffer/shop/web": "skipped",
        "NodeClaim/general-1": "applied",
        "CapacityBuffer/shop/old": "skipped",
        "ConfigMap/headroom-system/headroom": "refused",
    }


def test_memory_is_kept_before_anything_is_deleted() -> None:
    cluster = FakeCluster({OLD: manifest(OLD)})
    run(cluster, [Delete(OLD)], {"finished": ["shop/old"]})
    assert cluster.done[:2] == ["Apply ConfigMap/headroom-system/headroom", "Delete CapacityBuffer/shop/old"]
    assert '"finished"' in cluster.stored[PARENT.ref]["data"][MEMORY_KEY]


def test_memory_alone_is_one_write() -> None:
    cluster = FakeCluster()
    run(cluster, [], {"backOffs": {"b": 1, "a": 2}})
    assert cluster.done == ["Apply ConfigMap/headroom-system/headroom"]
    assert cluster.view().inventory.records == {"backOffs": {"a": 2, "b": 1}}


def test_the_inventory_shrinks_when_a_prune_succeeded() -> None:
    cluster = FakeCluster()
    run(cluster, [apply(BUFFER), apply(POOL)])
    run(cluster, [Delete(BUFFER)])
    assert kinds(cluster) == "NodePool.karpenter.sh"


def test_the_inventory_does_not_shrink_when_a_deletion_failed() -> None:
    """A webhook that denies a deletion does not make the object an orphan."""
    cluster = FakeCluster()
    run(cluster, [apply(BUFFER), apply(POOL)])
    cluster.refused_for_real = {BUFFER: Outcome.REFUSED}
    run(cluster, [Delete(BUFFER)])
    assert kinds(cluster) == "CapacityBuffer.autoscaling.x-k8s.io,NodePool.karpenter.sh"


def test_what_may_have_been_made_before_the_answer_was_lost_stays_recorded() -> None:
    cluster = FakeCluster(refused_for_real={BUFFER: Outcome.FAILED})
    run(cluster, [apply(BUFFER), apply(POOL)], {"seen": 1})
    assert kinds(cluster) == "CapacityBuffer.autoscaling.x-k8s.io,NodePool.karpenter.sh"


def test_an_inventory_that_somebody_deleted_is_made_again() -> None:
    cluster = FakeCluster({BUFFER: manifest(BUFFER)})
    run(cluster, [])
    assert kinds(cluster) == "CapacityBuffer.autoscaling.x-k8s.io"


def test_a_namespace_that_is_missing_for_the_inventory_is_made() -> None:
    default = ObjectRef("", "Namespace", "", "default")
    cluster = FakeCluster({default: {"metadata": {"name": "default"}}})
    run(cluster, [apply(POOL)])
    assert cluster.done[:2] == ["Apply Namespace/headroom-system", "Apply ConfigMap/headroom-system/headroom"]


def test_every_call_to_the_cluster_is_progress() -> None:
    cluster = FakeCluster(refused={POOL: Outcome.REFUSED})
    calls: list[int] = []
    carry_out(
        cluster,
        [apply(BUFFER), apply(POOL)],
        parent=PARENT,
        view=cluster.view(),
        records={},
        progress=lambda: calls.append(len(cluster.done)),
    )
    assert calls == [0, 0, 0, 1], "two in the dry run, the inventory, the buffer"


@pytest.mark.parametrize("step", range(6))
def test_a_kill_between_any_two_writes_is_made_good_by_the_next_pass(step: int) -> None:
    """The next pass is made from what is there: it asks for what is still missing, and ends in the same state."""
    memory = {"finished": ["shop/old"]}

    def ask(cluster: FakeCluster) -> list[Write]:
        deletions = [Delete(OLD)] if OLD in cluster.stored else []
        return [apply(BUFFER), apply(POOL), apply(CLAIM, member=False), *deletions]

    untouched, killed = FakeCluster({OLD: manifest(OLD)}), FakeCluster({OLD: manifest(OLD)}, kill_at=step)
    run(untouched, ask(untouched), memory)
    with pytest.raises(KilledError):
        run(killed, ask(killed), memory)
    assert OLD in killed.stored or killed.view().inventory.records == memory
    killed.kill_at = None
    run(killed, ask(killed), memory)
    assert killed.stored == untouched.stored


NOW = datetime(2026, 11, 23, 12, 0, 0, 123456, tzinfo=UTC)
OBJECT = RequestRecord(uid="0b9e0d5e-6a5b-4a4e-8a52-7c1e9d1f2a33", spec="0123456789ab")
ENDED = RequestRecord(OBJECT.uid, OBJECT.spec, outcome="BookingExpired/CapacityReservationTimeExpired", ended=NOW)
BOOKED = RequestRecord(
    *(OBJECT.uid, OBJECT.spec),
    attempt=2,
    provisioned=NOW,
    consumed=(3,),
    located={"ip-10-0-12-123.eu-central-1.compute.internal": (4,)},
)


@pytest.mark.parametrize(("record", "most"), [(ENDED, 230_000), (BOOKED, 310_000)])
def test_1000_requests_take_what_the_pages_say(record: RequestRecord, most: int) -> None:
    records = {f"research/training-of-the-{number:04}": record for number in range(1_000)}
    assert most - 10_000 < len(records_text(records_of(REQUESTS_KEY, records))) < most


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
    cluster._wrote(ObjectRef(KARPENTER_GROUP, "NodeClaim", "", "new"), str(WRITTEN))
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
    cluster._watches[NODE_CLAIMS.key]._gap("cannot be read", settled=True)
    assert not cluster.view().complete


def test_of_many_lists_that_are_late_a_few_are_named_and_all_that_say_why() -> None:
    """A daemon without its API server named all thirty kinds in one line of its log."""
    assert _some(["a", "b", "c", "d", "e (forbidden)", "f"]) == "e (forbidden), a, b, c and 2 more"
    assert _some(["a", "b"]) == "a, b"

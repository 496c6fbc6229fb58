"""What waits, as it is read: pending pods in the what-if, and objects that are no longer declared."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, timedelta
from typing import Any

import jsonschema_rs

from reconciler.cli.schema import output_schema
from reconciler.model.changes import (
    Action,
    DemandOutcome,
    NodeClaimChanges,
    ObjectChange,
    PendingOutcome,
    Plan,
)
from reconciler.model.demand import ChunkGroup, Demand
from reconciler.model.placement import Cause, Holding, UnplacedReason
from reconciler.model.refs import ObjectRef
from reconciler.model.remembered import WaitingDeletions
from reconciler.plan.bins import creations
from reconciler.report.plan.document import plan_document
from reconciler.report.plan.page import pending_words, plan_page
from reconciler.report.plan.rows import page_text
from reconciler.report.plan.words import reason_words, summary
from reconciler.report.status.document import PassReport, daemon_status_document
from tests.builders import buffer_ref, shape
from tests.plans import NOW, planned

LIMIT = UnplacedReason(Cause.AT_LIMIT, 1, "NodePool gpu is at its nvidia.com/gpu limit of 2")
FULL = UnplacedReason(Cause.NODE_FULL, 3, "node-1 lacks 200m CPU")


def pod(name: str) -> ObjectRef:
    return ObjectRef("", "Pod", "shop", name)


def outcome(name: str, *reasons: UnplacedReason) -> DemandOutcome:
    demand = Demand(pod(name), (ChunkGroup(shape(), 1),), 1)
    return DemandOutcome(
        demand, on_existing=0, on_new=0 if reasons else 1, unplaced=int(bool(reasons)), unplaced_reasons=reasons
    )


def what_if() -> Plan:
    names = [f"web-{number}" for number in range(6)]
    nodes = [
        planned(*(Holding(pod(name), 0, 1) for name in names[:5])),
        planned(Holding(pod(names[5]), 0, 1), price=0.4),
    ]
    larger = replace(nodes[1], instance_types=("m-8x",))
    return Plan(
        revision=None,
        now=NOW,
        demands=(
            *(outcome(name) for name in names),
            *(outcome(f"gpu-{number}", FULL, LIMIT) for number in range(5)),
            outcome("db", UnplacedReason(Cause.VOLUMES, 1, "PersistentVolumeClaim/shop/data does not exist")),
        ),
        node_claims=NodeClaimChanges(create=creations((nodes[0], larger), ())),
        pending=PendingOutcome(placed_on_existing=2, placed_on_new=6, unplaced=6),
        include_pending=True,
    )


def shown(plan: Plan) -> str:
    return page_text(plan_page(plan, cluster="production"))


def on_nodes(**kind: Any) -> str:
    """The what-if, if all new nodes were of this kind."""
    plan = what_if()
    create = tuple(replace(item, planned=replace(item.planned, **kind)) for item in plan.node_claims.create)
    return shown(replace(plan, node_claims=NodeClaimChanges(create=create)))


def test_what_would_be_launched_and_who_is_left() -> None:
    text = shown(what_if())
    section = text[text.index("What Karpenter") : text.index("Nodes to create")]
    assert section.splitlines() == [
        "What Karpenter would launch for pending pods (1)",
        "  NodePool general: 2 nodes for 6 pods, $0.6000/h; 1 × m-4x and 1 × m-8x; on-demand in zone-a or zone-b",
        "  What-if only: Karpenter makes nodes for pending pods; headroom apply never does.",
        "",
        "Pending pods that cannot be placed (2)",
        (
            "  Pod/shop/gpu-0, Pod/shop/gpu-1, Pod/shop/gpu-2 and 2 more: 5 pods; "
            "node-1 lacks 200m CPU (node full: 3 nodes); NodePool gpu is at its nvidia.com/gpu limit of 2"
        ),
        "  Pod/shop/db: 1 pod; PersistentVolumeClaim/shop/data does not exist",
        "",
    ]
    assert "14 pending pods: 2 fit existing nodes, 6 would go on 2 new nodes at $0.6000/h, 6 cannot be placed." in text
    assert "2 nodes to create; 2 of the nodes to create only as a what-if for pending pods." in text
    assert "for Pod/shop/web-0, Pod/shop/web-1, Pod/shop/web-2 and 2 more" in text


def test_what_a_reservation_holds_is_paid_for() -> None:
    text = on_nodes(price=2e-8, capacity_types=("reserved",))
    assert "m-8x, paid for with its reservation" in text
    assert "6 would go on 2 new nodes at no further cost" in text
    assert "2 nodes for 6 pods, paid for with their reservations; 1 × m-4x and 1 × m-8x; reserved in" in text


def test_a_reason_about_types_counts_types() -> None:
    assert reason_words(UnplacedReason(Cause.AT_LIMIT, 4, "NodePool gpu is at its nodes limit of 2")).endswith(
        "(NodePool limit: 4 instance types)"
    )


def leaving(name: str, node: str, *, new: bool = False) -> DemandOutcome:
    demand = Demand(pod(name), (ChunkGroup(shape(), 1),), 1, leaves=node)
    return DemandOutcome(demand, on_existing=int(not new), on_new=int(new), unplaced=0)


def test_pods_of_nodes_that_are_being_deleted_are_told_apart() -> None:
    plan = what_if()
    one = replace(plan, demands=(*plan.demands, leaving("api-1", "node-3"), leaving("api-2", "node-3", new=True)))
    assert pending_words(one) == (
        "14 pending pods and 2 pods of node-3, which is being deleted: 3 fit existing nodes,"
        " 7 would go on 2 new nodes at $0.6000/h, 6 cannot be placed"
    )
    two = Plan(
        None,
        NOW,
        include_pending=True,
        demands=(leaving("a", "node-3"), leaving("b", "node-4"), leaving("c", "node-4")),
    )
    assert pending_words(two) == "3 pods of 2 nodes that are being deleted (node-3 and node-4): 3 fit existing nodes"
    document = plan_document(one)
    assert document["pending"] == {"placedOnExisting": 2, "placedOnNew": 6, "unplaced": 6}
    assert document["leaving"] == [{"node": "node-3", "placedOnExisting": 1, "placedOnNew": 1, "unplaced": 0}]


def test_a_price_that_is_not_known_is_not_added_up() -> None:
    text = on_nodes(price=0.0, price_known=False)
    assert "6 would go on 2 new nodes, 6 cannot be placed" in text
    assert "2 nodes for 6 pods, price not known; 1 × m-4x and 1 × m-8x" in text


def test_without_the_flag_only_the_sum_is_told() -> None:
    text = shown(Plan(None, NOW, pending=PendingOutcome(placed_on_existing=1, placed_on_new=0, unplaced=1)))
    assert "2 pending pods: 1 fits an existing node, 1 needs a node that does not exist yet." in text
    assert "what-if" not in text


# Objects that are no longer declared and wait: the cluster is not as declared.

WAITING = WaitingDeletions(
    (buffer_ref("checkout"),), most=5, held=11, most_nodes=2, nodes_held=7, next_at=NOW + timedelta(hours=1)
)
NODES = {"mostNodesInAnHour": 2, "outOfNodes": 7}
BLOCKED = WaitingDeletions((buffer_ref("checkout"), buffer_ref("web")))


def test_a_plan_that_waits_does_not_say_that_the_cluster_is_as_declared() -> None:
    words = "1 object waits to be deleted (at most 5 of 11 objects and 2 of 7 held nodes go within an hour, the next by 2026-11-21 08:30 UTC)"
    assert summary(Plan(None, NOW, waiting=WAITING), UTC) == f"No change now: {words}"
    change = ObjectChange(buffer_ref(), Action.CREATE)
    assert summary(Plan(None, NOW, objects=(change,), waiting=WAITING), UTC) == f"1 object to apply; {words}"


def test_while_nothing_may_be_deleted_no_time_is_told() -> None:
    told = summary(Plan(None, NOW, blocked=("the branch was force-pushed",), waiting=BLOCKED))
    assert told == "No change now: 2 objects wait to be deleted (nothing may be deleted at present)"


def test_the_json_of_plan_and_status_tell_what_waits() -> None:
    name = {"kind": "CapacityBuffer", "namespace": "shop", "name": "checkout"}
    for waiting, cap in (
        (WAITING, {"mostInAnHour": 5, "outOf": 11, **NODES, "next": "2026-11-21T08:30:00Z"}),
        (BLOCKED, {"mostInAnHour": None, "outOf": None, **dict.fromkeys(NODES), "next": None}),
    ):
        plan = Plan(None, NOW, waiting=waiting)
        planned = plan_document(plan)
        status = daemon_status_document(PassReport("production", NOW, NOW, passes=3, plan=plan))
        for schema, document in (("plan", planned), ("status", status)):
            validated(schema, document)
            row = document["waitingDeletions"]
            assert row == {**cap, "objects": [name, {**name, "name": "web"}][: len(waiting.refs)]}


def validated(schema: str, document: object) -> None:
    jsonschema_rs.validator_for(output_schema(f"{schema}.v1"), validate_formats=True).validate(document)

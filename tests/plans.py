"""Plans with something of everything in them, for tests of reports."""

from __future__ import annotations

from datetime import UTC, datetime

from reconciler.model.changes import (
    Action,
    Cost,
    DemandOutcome,
    FieldChange,
    NodeClaimAction,
    NodeClaimChanges,
    NodeClaimCreation,
    ObjectChange,
    PendingOutcome,
    Plan,
    StaticPoolChange,
)
from reconciler.model.conditions import Condition, ConditionStatus
from reconciler.model.declared import DeclaredManifest
from reconciler.model.demand import Demand
from reconciler.model.findings import Finding, Severity
from reconciler.model.placement import Cause, Holding, OccupiedBin, PlannedNode, UnplacedReason
from reconciler.model.refs import ObjectRef, SourcePosition
from tests.builders import buffer_ref, demand, resources

NOW = datetime(2026, 11, 21, 7, 30, tzinfo=UTC)
READY = Condition("ReadyForProvisioning", ConditionStatus.TRUE, "Resolved")


def planned(*holdings: Holding, price: float = 0.2) -> PlannedNode:
    return PlannedNode(
        node_pool="general",
        instance_types=("m-4x", "c-8x"),
        zones=("zone-a", "zone-b"),
        capacity_types=("on-demand",),
        price=price,
        requests=resources("3", "6Gi", pods="3"),
        requirements=(),
        holdings=holdings,
    )


def _demands() -> tuple[DemandOutcome, ...]:
    return (
        DemandOutcome(
            Demand(buffer_ref("broken"), source=SourcePosition("buffers.yaml", 21)),
            on_existing=0,
            on_new=0,
            unplaced=0,
            conditions=(
                Condition(
                    "ReadyForProvisioning",
                    ConditionStatus.FALSE,
                    "ScalableRefNotFound",
                    "Deployment shop/broken is not there",
                ),
            ),
        ),
        DemandOutcome(
            demand("cart", count=4),
            on_existing=0,
            on_new=0,
            unplaced=4,
            unplaced_reasons=(
                UnplacedReason(Cause.AT_LIMIT, 1, "NodePool general is at its cpu limit of 64", chunks=4),
            ),
            conditions=(READY,),
        ),
        DemandOutcome(demand("web", count=3), on_existing=1, on_new=2, unplaced=0, conditions=(READY,)),
    )


def _objects() -> tuple[ObjectChange, ...]:
    return (
        ObjectChange(
            ObjectRef("karpenter.sh", "NodePool", "", "general"),
            Action.UPDATE,
            (FieldChange("spec.weight", 10, 20), FieldChange("spec.limits", None, {"cpu": "64"})),
            {},
            SourcePosition("nodepools.yaml", 2),
        ),
        ObjectChange(buffer_ref("web"), Action.CREATE, (), {}, SourcePosition("buffers.yaml", 1)),
        ObjectChange(buffer_ref("old"), Action.DELETE, (), None, None, "no longer in the repository"),
    )


def full_documents() -> tuple[tuple[DeclaredManifest, ...], tuple[DeclaredManifest, ...]]:
    """What is declared before and after, so that the full plan changes the objects that it has."""
    pool, old = (
        ObjectRef("karpenter.sh", "NodePool", "", "general"),
        DeclaredManifest(buffer_ref("old"), {}, SourcePosition("old.yaml", 1)),
    )
    place = SourcePosition("nodepools.yaml", 2)
    before = DeclaredManifest(pool, {"spec": {"weight": 10}}, place)
    after = DeclaredManifest(pool, {"spec": {"weight": 20, "limits": {"cpu": "64"}}}, place)
    return (before, old), (after, DeclaredManifest(buffer_ref("web"), {}, SourcePosition("buffers.yaml", 1)))


def full_plan() -> Plan:
    """One of each: a demand that is met, one that is short, one that is not ready; every kind of change and finding."""
    web, broken = buffer_ref("web"), buffer_ref("broken")
    return Plan(
        revision="main@sha1:" + "1a2b3c4d" * 5,
        now=NOW,
        demands=_demands(),
        node_claims=NodeClaimChanges(
            create=(
                NodeClaimCreation(
                    "general-headroom-1a2b3c4d5e", planned(Holding(web, 0, 2)), "for 2 of CapacityBuffer/shop/web"
                ),
            ),
            hold=(
                NodeClaimAction(
                    "general-x", "node-x", "general", "holds 1 of CapacityBuffer/shop/web", (Holding(web, 0, 1),), 0.2
                ),
            ),
            release=(NodeClaimAction("general-y", "node-y", "general", "holds nothing", (), 0.4),),
            delete=(NodeClaimAction("batch-z", None, "batch", "released and empty", (), None),),
        ),
        objects=_objects(),
        static_pools=(StaticPoolChange("reports", 0, 3, "m-4x", 0.2), StaticPoolChange("spare", 2, 1)),
        cost=Cost(1.5, 1.9, assumptions=("on-demand prices from the catalog file",)),
        findings=(
            Finding(
                "missing-target",
                Severity.ERROR,
                "spec.scalableRef names Deployment broken, which is nowhere",
                SourcePosition("buffers.yaml", 25, 7),
                broken,
                "spec.scalableRef.name",
                "name a Deployment of namespace shop",
            ),
        ),
        pending=PendingOutcome(2, 0, 1),
        occupied=(OccupiedBin("node-x", "general-x", (Holding(web, 0, 1),)),),
        blocked=("the repository was rewound 3 minutes ago",),
        notes=("2 of 5 nodes were left for the next pass: caps.newNodesPerPass is 3",),
    )

"""Small clusters to plan against, and what they become when a plan is carried out. Used by the tests of plan."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from reconciler.model.changes import Action, NodeClaimAction, NodeClaimCreation, ObjectChange, Plan
from reconciler.model.marks import PART_OF_LABEL
from reconciler.model.nodes import (
    CAPACITY_TYPE_LABEL,
    DO_NOT_DISRUPT,
    HELD_ANNOTATION,
    HELD_TAINT,
    HOLDS_ANNOTATION,
    INSTANCE_TYPE_LABEL,
    NODEPOOL_LABEL,
    PLACEHOLDER_LABEL,
    ZONE_LABEL,
    Labels,
    Node,
    NodeClaim,
)
from reconciler.model.placement import Holding, OccupiedBin, Placement, PlannedNode, words_of_holdings
from reconciler.model.quantity import Resources
from reconciler.model.refs import ObjectRef
from reconciler.model.requirements import Taint
from reconciler.model.view import ClusterView, LiveObject
from reconciler.plan.objects.objects import Owner
from tests.builders import buffer_ref, node, one_of, resources

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
APPLYSET = "applyset-test-v1"
OWNER = Owner(APPLYSET)
HELD = {DO_NOT_DISRUPT: "true", HELD_ANNOTATION: "true"}
HOLDS_ONE = HELD | {HOLDS_ANNOTATION: "1 of CapacityBuffer/shop/web"}
"""Of a node that holds one chunk and says so."""
A_PERSONS = {DO_NOT_DISRUPT: "true"}


def chunks(count: int = 1, name: str = "web") -> Holding:
    return Holding(buffer_ref(name), 0, count)


def waiting_pod(name: str = "web-1") -> Holding:
    return Holding(ObjectRef("", "Pod", "shop", name), 0, 1)


def claim(
    name: str = "general-x",
    *,
    node_name: str | None = "node-1",
    pool: str = "general",
    annotations: Mapping[str, str] | None = None,
    placeholder: bool = True,
    conditions: Mapping[str, str] | None = None,
    changed: Mapping[str, datetime] | None = None,
    labels: Mapping[str, str] | None = None,
    **fields: Any,
) -> NodeClaim:
    """An hour old unless its fields say otherwise."""
    registered = {"Launched": "True", "Registered": "True"} if node_name is not None else {}
    marks = {PLACEHOLDER_LABEL: "true"} if placeholder else {}
    found = NodeClaim(
        name=name,
        labels=pairs({NODEPOOL_LABEL: pool} | marks | dict(labels or {})),
        annotations=pairs(annotations or {}),
        uid=f"uid-{name}",
        node_name=node_name,
        conditions=pairs(registered | dict(conditions or {})),
        changed=tuple(sorted((changed or {}).items())),
        created=NOW - timedelta(hours=1),
    )
    return replace(found, **fields)


def pairs(mapping: Mapping[str, str]) -> Labels:
    return tuple(sorted(mapping.items()))


def pool_node(
    name: str = "node-1", *, annotations: Mapping[str, str] | None = None, taints: Sequence[Taint] = (), **fields: Any
) -> Node:
    """A placeholder's node; what is held has the taint for it."""
    is_held = (annotations or {}).get(HELD_ANNOTATION) == "true"
    taints = [*taints, *([HELD_TAINT] if is_held else [])]
    return node(name, annotations=annotations, taints=taints, labels={PLACEHOLDER_LABEL: "true"}, **fields)


def with_node(name: str, annotations: Mapping[str, str] | None = None, **fields: Any) -> ClusterView:
    """One placeholder, registered, its NodeClaim and node annotated alike."""
    return ClusterView(
        nodes=(pool_node(name, annotations=annotations),),
        node_claims=(claim(f"claim-of-{name}", node_name=name, annotations=annotations, **fields),),
    )


def together(*views: ClusterView) -> ClusterView:
    return ClusterView(
        nodes=tuple(sorted((item for view in views for item in view.nodes), key=lambda item: item.name)),
        node_claims=tuple(sorted((item for view in views for item in view.node_claims), key=lambda item: item.name)),
        pods=tuple(item for view in views for item in view.pods),
    )


def planned(
    *holdings: Holding,
    pool: str = "general",
    price: float = 0.2,
    instance_types: tuple[str, ...] = ("m-4x",),
    requests: Resources | None = None,
) -> PlannedNode:
    return PlannedNode(
        node_pool=pool,
        instance_types=instance_types,
        zones=("zone-a", "zone-b"),
        capacity_types=("on-demand",),
        price=price,
        requests=requests or resources("3", "6Gi", pods="3"),
        requirements=(one_of(INSTANCE_TYPE_LABEL, *instance_types),),
        holdings=holdings or (chunks(),),
    )


def occupied(**holdings: Iterable[Holding]) -> tuple[OccupiedBin, ...]:
    """Nodes by name, `_` for `-`."""
    return tuple(OccupiedBin(name.replace("_", "-"), None, tuple(held)) for name, held in sorted(holdings.items()))


def live(ref: ObjectRef, body: Mapping[str, Any], *owned: str) -> LiveObject:
    return LiveObject(ref, body, {"headroom": frozenset(owned)} if owned else {})


def carried_out(view: ClusterView, plan: Plan) -> ClusterView:
    """The cluster right after every write of the plan succeeded, before Karpenter has done anything."""
    changes = plan.node_claims
    gone = {action.node_claim for action in changes.delete}
    gone_nodes = {action.node for action in changes.delete}
    claims = {item.name: item for item in view.node_claims if item.name not in gone}
    nodes = {item.name: item for item in view.nodes if item.name not in gone_nodes}
    for action in (*changes.hold, *changes.release):
        value = "true" if action.holdings else None
        words = words_of_holdings(action.holdings) or None
        marks = {DO_NOT_DISRUPT: value, HELD_ANNOTATION: value, HOLDS_ANNOTATION: words}
        _annotate(action, marks, claims, nodes)
    for creation in changes.create:
        claims[creation.name] = made(creation, plan.now)
    objects = dict(view.objects)
    for change in plan.objects:
        _apply(change, objects)
    members = {
        ref for ref, item in objects.items() if PART_OF_LABEL in (item.body.get("metadata") or {}).get("labels", {})
    }
    return replace(
        view,
        nodes=tuple(nodes[name] for name in sorted(nodes)),
        node_claims=tuple(claims[name] for name in sorted(claims)),
        objects=objects,
        inventory=replace(view.inventory, members=frozenset(members), records=plan.records),
    )


def _annotate(
    action: NodeClaimAction, annotations: Mapping[str, str | None], claims: dict[str, NodeClaim], nodes: dict[str, Node]
) -> None:
    def merged(old: Labels) -> Labels:
        return pairs({key: value for key, value in {**dict(old), **annotations}.items() if value is not None})

    if action.node_claim is not None and action.node_claim in claims:
        side = claims[action.node_claim]
        claims[side.name] = replace(side, annotations=merged(side.annotations))
    if action.node is not None and action.node in nodes:
        other = nodes[action.node]
        others = tuple(taint for taint in other.taints if taint != HELD_TAINT)
        taints = (*others, HELD_TAINT) if action.closed else others
        nodes[other.name] = replace(other, annotations=merged(other.annotations), taints=taints)


def made(creation: NodeClaimCreation, now: datetime) -> NodeClaim:
    node_wanted = creation.planned
    pinned = {
        INSTANCE_TYPE_LABEL: node_wanted.instance_types,
        ZONE_LABEL: node_wanted.zones,
        CAPACITY_TYPE_LABEL: node_wanted.capacity_types,
    }
    others = tuple(need for need in node_wanted.requirements if need.key not in pinned)
    on_its_way = claim(
        creation.name,
        node_name=None,
        pool=node_wanted.node_pool,
        annotations=HELD | {HOLDS_ANNOTATION: words_of_holdings(node_wanted.holdings)},
        created=now,
        labels=dict(node_wanted.labels),
        requirements=(*others, *(one_of(key, *values) for key, values in sorted(pinned.items()))),
    )
    return replace(on_its_way, requests=node_wanted.requests)


def _apply(change: ObjectChange, objects: dict[ObjectRef, LiveObject]) -> None:
    """As server-side apply does it: fields that headroom owned and no longer declares go, others' stay."""
    before = objects.get(change.ref)
    if change.action is Action.DELETE:
        objects.pop(change.ref, None)
        return
    manifest = dict(change.manifest or {})
    spec = manifest.get("spec") or {}
    body: dict[str, Any] = dict(before.body) if before is not None else {}
    kept = {
        key: value
        for key, value in (body.get("spec") or {}).items()
        if before is not None and f"spec.{key}" not in before.managers.get("headroom", frozenset())
    }
    objects[change.ref] = LiveObject(
        change.ref,
        body | manifest | {"spec": kept | dict(spec)},
        {"headroom": frozenset(f"spec.{key}" for key in spec)},
    )


def settled(placement: Placement, plan: Plan) -> Placement:
    """What placement finds next time: the nodes to be made are on their way and hold what they were made for."""
    return Placement(
        occupied=(
            *placement.occupied,
            *(OccupiedBin(None, item.name, item.planned.holdings) for item in plan.node_claims.create),
        ),
        unplaced=placement.unplaced,
    )

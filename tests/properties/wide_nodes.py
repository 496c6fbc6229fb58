"""Nodes of generated worlds that are not up yet or on their way out, and NodeClaims without a node. Used by wide_worlds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import strategies as st

from reconciler.model.nodes import (
    CAPACITY_TYPE_LABEL,
    DISRUPTED_TAINT,
    HELD_ANNOTATION,
    INITIALIZED_LABEL,
    INSTANCE_TYPE_LABEL,
    NODEPOOL_LABEL,
    PLACEHOLDER_LABEL,
    UNREGISTERED_TAINT,
    ZONE_LABEL,
    InstanceType,
    Node,
    NodeClaim,
    NodePool,
)
from reconciler.model.quantity import Resources
from reconciler.model.requirements import Operator, Requirement, Taint
from tests.builders import one_of
from tests.properties.sampling import sampled_from
from tests.unit.placement.worlds import ZONES

YOUNG_TAINTS = (
    Taint("node.kubernetes.io/not-ready", "", "NoSchedule"),
    Taint(UNREGISTERED_TAINT, "", "NoExecute"),
    Taint("readiness.k8s.io/network", "", "NoSchedule"),
)


@st.composite
def node(draw: st.DrawFn, plain: Node, startup: Sequence[Taint]) -> Node:
    """The node as it is, young, or on its way out."""
    match draw(sampled_from(["old", "old", "old", "old", "young", "young", "leaving", "marked"])):
        case "young":
            labels = tuple(item for item in plain.labels if item[0] != INITIALIZED_LABEL)
            more = draw(st.lists(sampled_from([*startup, *YOUNG_TAINTS]), max_size=2, unique=True))
            return replace(plain, labels=labels, taints=(*plain.taints, *more), ready=draw(st.booleans()))
        case "leaving":
            going = draw(sampled_from(["cordoned", "deleting", "disrupted"]))
            disrupted = (Taint(DISRUPTED_TAINT, "", "NoSchedule"),) if going == "disrupted" else ()
            return replace(
                plain,
                unschedulable=going == "cordoned",
                deleting=going == "deleting",
                taints=(*plain.taints, *disrupted),
            )
        case "marked":
            return replace(plain, annotations=((HELD_ANNOTATION, "true"),))
        case _:
            return plain


def claim_of(item: Node, number: int, startup: Sequence[Taint], kinds: Sequence[InstanceType]) -> NodeClaim:
    """What a young node came from, which knows of the resources that it does not report yet."""
    kind = next((kind for kind in kinds if kind.name == item.label(INSTANCE_TYPE_LABEL)), None)
    return NodeClaim(
        name=f"claim-of-{item.name}",
        labels=tuple(sorted({**dict(item.labels), PLACEHOLDER_LABEL: "true" if number % 2 else "false"}.items())),
        startup_taints=tuple(startup),
        node_name=item.name,
        conditions=(("Launched", "True"), ("Registered", "True")),
        capacity=Resources() if kind is None else kind.capacity,
        allocatable=Resources() if kind is None else kind.allocatable,
    )


@st.composite
def node_claim(draw: st.DrawFn, number: int, pools: Sequence[NodePool], kinds: Sequence[InstanceType]) -> NodeClaim:
    """A NodeClaim on its way: Karpenter's or ours, launched or not, with more or less of it decided."""
    pool = draw(sampled_from(pools))
    asked = draw(
        st.lists(
            sampled_from(
                [
                    one_of(ZONE_LABEL, *ZONES[:1]),
                    one_of(ZONE_LABEL, *ZONES[1:]),
                    Requirement(ZONE_LABEL, Operator.NOT_IN, ZONES[:1]),
                    one_of(CAPACITY_TYPE_LABEL, "on-demand"),
                    one_of(CAPACITY_TYPE_LABEL, "reserved"),
                    Requirement(CAPACITY_TYPE_LABEL, Operator.EXISTS),
                ]
            ),
            max_size=2,
            unique_by=lambda item: item.key,
        )
    )
    names = draw(sampled_from([("small", "medium"), ("medium",), ("large", "medium")]))
    labels = {**dict(pool.template.labels), NODEPOOL_LABEL: pool.name}
    labels |= {PLACEHOLDER_LABEL: "true"} if draw(st.booleans()) else {}
    found = NodeClaim(
        name=f"claim-{number}",
        requirements=(*asked, one_of(INSTANCE_TYPE_LABEL, *names)),
        requests=Resources.parse({"cpu": "1", "memory": "1Gi", "pods": "2"}),
        taints=pool.template.taints,
        startup_taints=pool.template.startup_taints,
        deleting=draw(st.integers(0, 7)) == 0,
    )
    if draw(st.booleans()):
        return replace(found, labels=tuple(sorted(labels.items())))
    kind = next(kind for kind in kinds if kind.name == names[0])
    zone = draw(sampled_from(ZONES))
    labels |= {INSTANCE_TYPE_LABEL: kind.name, ZONE_LABEL: zone, CAPACITY_TYPE_LABEL: "on-demand"}
    return replace(
        found,
        labels=tuple(sorted(labels.items())),
        requirements=tuple(item for item in found.requirements if item.key == INSTANCE_TYPE_LABEL),
        conditions=(("Launched", "True"),),
        capacity=kind.capacity,
        allocatable=kind.allocatable,
    )

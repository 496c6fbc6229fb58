"""Pools, instance types and overlays of generated worlds: what is reserved, sold out, adjusted or asked for in unusual ways. Used
by wide_worlds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from reconciler.model.nodes import (
    CAPACITY_TYPE_LABEL,
    INSTANCE_TYPE_LABEL,
    NODEPOOL_LABEL,
    ZONE_LABEL,
    InstanceType,
    NodeOverlay,
    NodePool,
    Offering,
)
from reconciler.model.quantity import Resources
from reconciler.model.refs import ObjectRef
from reconciler.model.requirements import Operator, Requirement, Taint
from tests.builders import one_of
from tests.properties.sampling import sampled_from
from tests.properties.wide_shapes import GENERATION, GPU
from tests.unit.placement.worlds import ZONES

STARTUP = Taint("example.com/warming", "", "NoSchedule")
SOFT = Taint("example.com/rather-not", "", "PreferNoSchedule")
RESERVATION = "example.com/reservation-id"


_ASKED = (
    Requirement(INSTANCE_TYPE_LABEL, Operator.EXISTS, (), 2),
    Requirement(INSTANCE_TYPE_LABEL, Operator.NOT_IN, ("medium",)),
    one_of(GENERATION, "2", "4", "8"),
    Requirement(GENERATION, Operator.GT, ("1",)),
    Requirement(ZONE_LABEL, Operator.EXISTS, (), 2),
    one_of(CAPACITY_TYPE_LABEL, "on-demand"),
    one_of(CAPACITY_TYPE_LABEL, "on-demand", "reserved"),
    one_of(CAPACITY_TYPE_LABEL, "reserved"),
    one_of(RESERVATION, "cr-1", "cr-3"),
)


@st.composite
def pool(draw: st.DrawFn, plain: NodePool) -> NodePool:
    template = plain.template
    some = st.lists(sampled_from(_ASKED), max_size=2, unique_by=lambda item: item.key)
    asked = (*template.requirements, *draw(st.one_of(st.just([]), some)))
    return replace(
        plain,
        replicas=draw(sampled_from([*[None] * 9, 2])),
        unready="" if draw(st.integers(0, 15)) else "no node class",
        template=replace(
            template,
            requirements=asked,
            taints=(*template.taints, *draw(sampled_from([(), (), (), (SOFT,)]))),
            startup_taints=draw(sampled_from([(), (STARTUP,)])),
            labels=draw(sampled_from([(), (("example.com/owner", "shop"),)])),
        ),
    )


@st.composite
def _reserved(draw: st.DrawFn, names: tuple[str, ...]) -> Offering:
    """The same reservation may be told of by several types, not always alike."""
    zone = draw(sampled_from(ZONES))
    name = draw(sampled_from(names))
    labels = {ZONE_LABEL: zone, CAPACITY_TYPE_LABEL: "reserved"} | ({RESERVATION: name} if name else {})
    asked = tuple(one_of(key, value) for key, value in sorted(labels.items()))
    price = draw(sampled_from([0.0, 0.0, 0.05]))
    left = draw(sampled_from([None, 0, 1, 1, 2, 3]))
    return Offering(zone, "reserved", price, draw(st.integers(0, 5)) > 0, asked, left)


@st.composite
def kind(draw: st.DrawFn, plain: InstanceType) -> InstanceType:
    gone = draw(st.integers(0, 4))
    offerings = [
        replace(item, available=item.available and number != gone) for number, item in enumerate(plain.offerings)
    ]
    names = draw(sampled_from([("cr-1", "cr-2", "cr-3"), ("",)]))
    offerings += draw(st.one_of(st.just([]), st.lists(_reserved(names), max_size=2)))
    unpriced = draw(sampled_from(["none"] * 6 + ["all", *ZONES]))
    offerings = [
        replace(item, price=0.0, price_known=False) if unpriced in {"all", item.zone} else item for item in offerings
    ]
    more = Resources.parse({GPU: "2"}) if plain.name == "large" and draw(st.booleans()) else Resources()
    return replace(plain, capacity=plain.capacity + more, offerings=tuple(offerings))


_OVERLAID = (
    one_of(INSTANCE_TYPE_LABEL, "medium"),
    Requirement(INSTANCE_TYPE_LABEL, Operator.NOT_IN, ("large",)),
    one_of(ZONE_LABEL, *ZONES[:2]),
    one_of(CAPACITY_TYPE_LABEL, "spot", "reserved"),
    one_of(NODEPOOL_LABEL, "general"),
    Requirement(RESERVATION, Operator.DOES_NOT_EXIST),
    Requirement(GENERATION, Operator.GT, ("2",)),
    Requirement("example.com/owner", Operator.EXISTS),
)
_SET: tuple[Mapping[str, Any], ...] = (
    {"price": "0.05"},
    {"price_adjustment": "-60%"},
    {"price_adjustment": "+0.3"},
    {"capacity": Resources.parse({GPU: "1"})},
    {"price": "0.2", "capacity": Resources.parse({GPU: "3", "example.com/disk": "1"})},
    {"capacity": Resources.parse({"example.com/disk": "2"})},
)


@st.composite
def rival_overlays(draw: st.DrawFn) -> tuple[NodeOverlay, ...]:
    """Several, of weights that are often equal, so that some conflict with others."""
    asked = st.lists(sampled_from(_OVERLAID), max_size=2, unique_by=lambda item: item.key)
    return tuple(
        NodeOverlay(
            ObjectRef("karpenter.sh", "NodeOverlay", "", f"overlay-{number}"),
            tuple(draw(asked)),
            draw(sampled_from([0, 0, 1])),
            **draw(sampled_from(_SET)),
        )
        for number in range(draw(st.integers(2, 5)))
    )


@st.composite
def overlays(draw: st.DrawFn) -> tuple[NodeOverlay, ...]:
    if draw(st.integers(0, 3)) == 0:
        return draw(rival_overlays())
    ref = ObjectRef("karpenter.sh", "NodeOverlay", "", "first")
    medium = (one_of(INSTANCE_TYPE_LABEL, "medium"),)
    return draw(
        sampled_from(
            [
                (),
                (),
                (NodeOverlay(ref, medium, 10, price_adjustment="-60%"),),
                (NodeOverlay(ref, medium, 10, price="0.05"),),
                (
                    NodeOverlay(ref, medium, 10, price_adjustment="+0.3"),
                    NodeOverlay(ref._replace(name="second"), (), 5, price="0.2", capacity=Resources.parse({GPU: "3"})),
                ),
                (NodeOverlay(ref, (one_of(ZONE_LABEL, *ZONES[:1]),), 1, price_adjustment="-50%"),),
                (NodeOverlay(ref, medium, 10, capacity=Resources.parse({GPU: "1"})),),
            ]
        )
    )

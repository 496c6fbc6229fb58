"""Pools, instance types and overlays of generated worlds: what is reserved, sold out, adjusted or asked for in unusual ways. Used
by wide_worlds."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from reconciler.model.nodes import (
    CAPACITY_TYPE_LABEL,
    INSTANCE_TYPE_LABEL,
    ZONE_LABEL,
    InstanceType,
    NodePool,
    Offering,
)
from reconciler.model.overlays import NodeOverlay
from reconciler.model.quantity import Resources
from reconciler.model.refs import ObjectRef
from reconciler.model.requirements import Operator, Requirement, Taint
from tests.properties.wide_shapes import GENERATION, GPU
from tests.unit.placement.worlds import ZONES

STARTUP = Taint("example.com/warming", "", "NoSchedule")
SOFT = Taint("example.com/rather-not", "", "PreferNoSchedule")
RESERVATION = "example.com/reservation-id"


_ASKED = (
    Requirement(INSTANCE_TYPE_LABEL, Operator.EXISTS, (), 2),
    Requirement(INSTANCE_TYPE_LABEL, Operator.NOT_IN, ("medium",)),
    Requirement(GENERATION, Operator.IN, ("2", "4", "8")),
    Requirement(GENERATION, Operator.GT, ("1",)),
    Requirement(ZONE_LABEL, Operator.EXISTS, (), 2),
    Requirement(CAPACITY_TYPE_LABEL, Operator.IN, ("on-demand",)),
    Requirement(CAPACITY_TYPE_LABEL, Operator.IN, ("on-demand", "reserved")),
    Requirement(CAPACITY_TYPE_LABEL, Operator.IN, ("reserved",)),
    Requirement(RESERVATION, Operator.IN, ("cr-1", "cr-3")),
)


@st.composite
def pool(draw: st.DrawFn, plain: NodePool) -> NodePool:
    template = plain.template
    some = st.lists(st.sampled_from(_ASKED), max_size=2, unique_by=lambda item: item.key)
    asked = (*template.requirements, *draw(st.one_of(st.just([]), some)))
    return replace(
        plain,
        replicas=draw(st.sampled_from([*[None] * 9, 2])),
        ready=draw(st.integers(0, 15)) > 0,
        template=replace(
            template,
            requirements=asked,
            taints=(*template.taints, *draw(st.sampled_from([(), (), (), (SOFT,)]))),
            startup_taints=draw(st.sampled_from([(), (STARTUP,)])),
            labels=draw(st.sampled_from([(), (("example.com/owner", "shop"),)])),
        ),
    )


@st.composite
def _reserved(draw: st.DrawFn, names: tuple[str, ...]) -> Offering:
    """The same reservation may be told of by several types, not always alike."""
    zone = draw(st.sampled_from(ZONES))
    name = draw(st.sampled_from(names))
    labels = {ZONE_LABEL: zone, CAPACITY_TYPE_LABEL: "reserved"} | ({RESERVATION: name} if name else {})
    asked = tuple(Requirement(key, Operator.IN, (value,)) for key, value in sorted(labels.items()))
    price = draw(st.sampled_from([0.0, 0.0, 0.05]))
    left = draw(st.sampled_from([None, 0, 1, 1, 2, 3]))
    return Offering(zone, "reserved", price, draw(st.integers(0, 5)) > 0, asked, left)


@st.composite
def kind(draw: st.DrawFn, plain: InstanceType) -> InstanceType:
    gone = draw(st.integers(0, 4))
    offerings = [
        replace(item, available=item.available and number != gone) for number, item in enumerate(plain.offerings)
    ]
    names = draw(st.sampled_from([("cr-1", "cr-2", "cr-3"), ("",)]))
    offerings += draw(st.one_of(st.just([]), st.lists(_reserved(names), max_size=2)))
    more = Resources.parse({GPU: "2"}) if plain.name == "large" and draw(st.booleans()) else Resources()
    return replace(plain, capacity=plain.capacity + more, offerings=tuple(offerings))


@st.composite
def overlays(draw: st.DrawFn) -> tuple[NodeOverlay, ...]:
    ref = ObjectRef("karpenter.sh", "NodeOverlay", "", "first")
    medium = (Requirement(INSTANCE_TYPE_LABEL, Operator.IN, ("medium",)),)
    return draw(
        st.sampled_from(
            [
                (),
                (),
                (NodeOverlay(ref, medium, 10, price_adjustment="-60%"),),
                (NodeOverlay(ref, medium, 10, price="0.05"),),
                (
                    NodeOverlay(ref, medium, 10, price_adjustment="+0.3"),
                    NodeOverlay(replace(ref, name="second"), (), 5, price="0.2", capacity=Resources.parse({GPU: "3"})),
                ),
                (NodeOverlay(ref, (Requirement(ZONE_LABEL, Operator.IN, ZONES[:1]),), 1, price_adjustment="-50%"),),
                (NodeOverlay(ref, medium, 10, capacity=Resources.parse({GPU: "1"})),),
            ]
        )
    )

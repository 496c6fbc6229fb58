"""Small scenarios, drawn by number, for comparison with brute force: few pods, types and zones. Markets have several NodePools, limits and
capacity reservations too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from random import Random

from reconciler.model.demand import Demand
from reconciler.model.nodes import (
    CAPACITY_TYPE_LABEL,
    HOSTNAME_LABEL,
    INSTANCE_TYPE_LABEL,
    ZONE_LABEL,
    InstanceType,
    NodePool,
    Offering,
)
from reconciler.model.pods import PodAffinityTerm, PodShape, TopologySpread
from reconciler.model.view import ClusterView
from tests.builders import demand, instance_type, node, node_pool, one_of, pod, selects, shape

ZONES = ("zone-a", "zone-b")
NODE_CPU, NODE_MEMORY = "3", "8Gi"


@dataclass(frozen=True, slots=True)
class Scenario:
    view: ClusterView
    demands: tuple[Demand, ...]
    instance_types: tuple[InstanceType, ...]
    node_pools: tuple[NodePool, ...] = (node_pool(),)

    @property
    def shapes(self) -> tuple[PodShape, ...]:
        return tuple(group.shape for item in self.demands for group in item.groups for _ in range(group.count))


def scenario(number: int) -> Scenario:
    """The scenario of that number: up to two nodes with pods on them, and up to five pods to place."""
    random = Random(number)
    # Any two of the pods that are drawn fit on a node together.
    nodes = tuple(
        node(f"node-{index}", cpu=NODE_CPU, memory=NODE_MEMORY, zone=random.choice(ZONES))
        for index in range(random.choice((0, 0, 1, 2)))
    )
    bound = tuple(
        pod(f"bound-{index}", node=random.choice(nodes).name, pod_shape=_plain(random))
        for index in range(random.choice((0, 1, 2)) if nodes else 0)
    )
    demands = _demands(random, 5, _shape)
    types = tuple(_type(size, ZONES) for size in _sizes(random))
    return Scenario(ClusterView(nodes=nodes, pods=bound), demands, types)


def _demands(random: Random, most: int, draw: Callable[[Random], PodShape]) -> tuple[Demand, ...]:
    """Up to `most` pods, in demands of one shape each."""
    demands: list[Demand] = []
    left = random.randint(1, most)
    while left:
        count = random.randint(1, left)
        demands.append(demand(f"demand-{len(demands)}", count=count, pod_shape=draw(random)))
        left -= count
    return tuple(demands)


_Size = tuple[str, str, str, float]
_SIZES: tuple[_Size, ...] = (
    ("small", "2", "4Gi", 0.1),
    ("medium", "4", "16Gi", 0.22),
    ("large", "8", "16Gi", 0.36),
)


def _sizes(random: Random) -> list[_Size]:
    return random.sample(_SIZES, random.randint(1, 3))


def _type(size: _Size, zones: Sequence[str]) -> InstanceType:
    name, cpu, memory, price = size
    return instance_type(name, cpu=cpu, memory=memory, price=price, zones=zones)


def _plain(random: Random) -> PodShape:
    return shape(
        random.choice(("250m", "500m", "1", "1500m")),
        random.choice(("256Mi", "1Gi", "2Gi")),
        labels={"app": random.choice(("web", "api"))},
    )


def _shape(random: Random) -> PodShape:
    plain = _plain(random)
    own = selects(dict(plain.labels)["app"])
    other = selects(random.choice(("web", "api")))
    key = random.choice((ZONE_LABEL, HOSTNAME_LABEL))
    match random.choice(("none", "none", "zone", "spread", "apart", "apart", "together")):
        case "zone":
            return replace(plain, node_selector=((ZONE_LABEL, random.choice(ZONES)),))
        case "spread":
            return replace(plain, topology_spread=(TopologySpread(key, random.randint(1, 2), "DoNotSchedule", own),))
        case "apart":
            return replace(plain, pod_anti_affinity=(PodAffinityTerm(key, other),))
        case "together":
            return replace(plain, pod_affinity=(PodAffinityTerm(key, other),))
        case _:
            return plain


MARKET_ZONES = ("zone-a", "zone-b", "zone-c")


def market(number: int) -> Scenario:
    """The scenario of that number: one or two NodePools, up to two reservations and up to four pods to place."""
    random = Random(number)
    everywhere = random.random() < 0.6
    types = [
        _type(
            size,
            MARKET_ZONES if everywhere else sorted(random.sample(MARKET_ZONES, random.randint(2, 3))),
        )
        for size in _sizes(random)
    ]
    for index in range(random.choice((0, 1, 2, 2))):
        chosen = random.randrange(len(types))
        types[chosen] = _reserved(types[chosen], f"cr-{index}", random.choice(MARKET_ZONES), random.randint(1, 2))
    names = [kind.name for kind in types]
    zones = random.choice((MARKET_ZONES, MARKET_ZONES, MARKET_ZONES[:2]))
    pools = tuple(_pool(random, f"pool-{index}", names, zones) for index in range(random.choice((1, 2, 2, 2))))
    return Scenario(ClusterView(), _demands(random, 4, _market_shape), tuple(types), pools)


def _reserved(kind: InstanceType, name: str, zone: str, capacity: int) -> InstanceType:
    asked = ((CAPACITY_TYPE_LABEL, "reserved"), (ZONE_LABEL, zone), ("karpenter.test/reservation-id", name))
    requirements = tuple(one_of(key, value) for key, value in asked)
    offering = Offering(zone, "reserved", 0.0, True, requirements, capacity)
    return replace(kind, offerings=(*kind.offerings, offering))


def _pool(random: Random, name: str, types: Sequence[str], zones: Sequence[str]) -> NodePool:
    limits = random.choice((None, {"nodes": "1"}, {"nodes": "2"}, {"nodes": "3"}, {"cpu": "8"}, {"cpu": "6"}))
    kinds = random.choice((("on-demand",), ("on-demand", "reserved"), ("on-demand", "reserved")))
    asked = [one_of(CAPACITY_TYPE_LABEL, *kinds), one_of(ZONE_LABEL, *tuple(zones))]
    if random.random() < 0.25:
        asked.append(one_of(INSTANCE_TYPE_LABEL, random.choice(types)))
    return node_pool(name, weight=random.choice((0, 0, 10)), limits=limits, requirements=asked)


def _market_shape(random: Random) -> PodShape:  # noqa: PLR0911 - one for each kind
    plain = shape(
        random.choice(("500m", "1", "1500m", "3")),
        random.choice(("256Mi", "1Gi", "3Gi")),
        labels={"app": random.choice(("web", "api"))},
    )
    own = selects(dict(plain.labels)["app"])
    other = selects(random.choice(("web", "api")))
    apart = PodAffinityTerm(HOSTNAME_LABEL, own)
    spread = TopologySpread(ZONE_LABEL, 1, "DoNotSchedule", own, min_domains=random.choice((None, None, 2, 3)))
    match random.choice(("none", "zone", "spread", "spread", "spread apart", "hosts", "apart", "together")):
        case "zone":
            return replace(plain, node_selector=((ZONE_LABEL, random.choice(MARKET_ZONES)),))
        case "spread":
            return replace(plain, topology_spread=(spread,))
        case "spread apart":
            return replace(plain, topology_spread=(spread,), pod_anti_affinity=(apart,))
        case "hosts":
            return replace(plain, pod_anti_affinity=(apart,))
        case "apart":
            return replace(plain, pod_anti_affinity=(PodAffinityTerm(ZONE_LABEL, other),))
        case "together":
            return replace(plain, pod_affinity=(PodAffinityTerm(ZONE_LABEL, other),))
        case _:
            return plain

"""Small scenarios, drawn by number, for comparison with brute force: few pods, types and zones."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

from reconciler.model.demand import Demand
from reconciler.model.nodes import HOSTNAME_LABEL, ZONE_LABEL, InstanceType
from reconciler.model.pods import PodAffinityTerm, PodShape, TopologySpread
from reconciler.model.requirements import LabelSelector
from reconciler.model.view import ClusterView
from tests.builders import demand, instance_type, node, pod, shape

ZONES = ("zone-a", "zone-b")
NODE_CPU, NODE_MEMORY = "3", "8Gi"


@dataclass(frozen=True, slots=True)
class Scenario:
    view: ClusterView
    demands: tuple[Demand, ...]
    instance_types: tuple[InstanceType, ...]

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
    demands: list[Demand] = []
    left = random.randint(1, 5)
    while left:
        count = random.randint(1, left)
        demands.append(demand(f"demand-{len(demands)}", count=count, pod_shape=_shape(random)))
        left -= count
    types = _types(random)
    return Scenario(ClusterView(nodes=nodes, pods=bound), tuple(demands), types)


def _types(random: Random) -> tuple[InstanceType, ...]:
    sizes = (("small", "2", "4Gi", 0.1), ("medium", "4", "16Gi", 0.22), ("large", "8", "16Gi", 0.36))
    return tuple(
        instance_type(name, cpu=cpu, memory=memory, price=price, zones=ZONES)
        for name, cpu, memory, price in random.sample(sizes, random.randint(1, 3))
    )


def _plain(random: Random) -> PodShape:
    return shape(
        random.choice(("250m", "500m", "1", "1500m")),
        random.choice(("256Mi", "1Gi", "2Gi")),
        labels={"app": random.choice(("web", "api"))},
    )


def _shape(random: Random) -> PodShape:
    plain = _plain(random)
    own = LabelSelector((("app", dict(plain.labels)["app"]),))
    other = LabelSelector((("app", random.choice(("web", "api"))),))
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

"""Generated repositories for what becomes of full buffers when all of them are used: one to six buffers that share nodes.

Buffers differ in size and in where their pods may go: spread over zones or hosts, together with or apart from their own or another
workload, bound to a zone, a capacity type or a NodePool of their own. There are two or three NodePools, spot and on demand, and
sometimes nodes that run pods already.
"""

from __future__ import annotations

import random
from dataclasses import replace

from reconciler.model.nodes import CAPACITY_TYPE_LABEL, HOSTNAME_LABEL, NODEPOOL_LABEL, ZONE_LABEL, Node, NodePool
from reconciler.model.pods import Pod, PodAffinityTerm, PodShape, TopologySpread
from reconciler.model.view import ClusterView
from tests.builders import demand, instance_type, node, node_pool, one_of, pod, selects, shape
from tests.unit.placement.worlds import TAINT, TOLERATION, ZONES, World

TYPES = tuple(
    instance_type(
        f"{family}-{cpu}x",
        cpu=str(cpu),
        memory=f"{cpu * gigabytes}Gi",
        price=cpu * (0.02 + gigabytes * 0.0035),
        zones=ZONES,
        capacity_types=("on-demand", "spot"),
    )
    for family, gigabytes in (("c", 2), ("m", 4), ("r", 8))
    for cpu in (2, 4, 8, 16)
)
RULES = (
    "",
    "",
    "",
    "zones",
    "hosts",
    "apart",
    "together",
    "apart from",
    "together with",
    "zone",
    "spot",
    "batch",
    "batch",
)


def surge_world(seed: int) -> World:
    """Always the same one for a seed."""
    chance = random.Random(seed)
    count = chance.randint(1, 6)
    names = [f"app-{number}" for number in range(count)]
    demands = tuple(
        demand(name, count=chance.choice([2, 3, 4, 6, 9, 14]), pod_shape=_shape(chance, name, names)) for name in names
    )
    nodes, pods = _nodes(chance, names)
    namespaces: dict[str, dict[str, str]] = {"shop": {}}
    return World(ClusterView(nodes=nodes, pods=pods, namespaces=namespaces), _pools(chance), TYPES, demands)


def large_surge_world(seed: int) -> World:
    """Twenty buffers of 5 to 40 chunks, on 30 to 60 new nodes."""
    chance = random.Random(seed)
    names = [f"app-{number:02}" for number in range(20)]
    demands = tuple(
        demand(name, count=chance.choice([5, 10, 20, 40]), pod_shape=_shape(chance, name, names)) for name in names
    )
    return World(ClusterView(namespaces={"shop": {}}), _pools(chance), TYPES, demands)


def _pools(chance: random.Random) -> tuple[NodePool, ...]:
    capacity = one_of(CAPACITY_TYPE_LABEL, *chance.choice([("on-demand",), ("on-demand", "spot")]))
    spot = one_of(CAPACITY_TYPE_LABEL, "spot")
    pools = [
        node_pool("general", requirements=(capacity,)),
        node_pool("batch", weight=chance.choice([0, 0, 10]), taints=chance.choice([(), (TAINT,)])),
        node_pool("cheap", weight=chance.choice([0, 5]), requirements=(spot,)),
    ]
    return tuple(pools[: chance.choice([2, 2, 3])])


def _shape(chance: random.Random, name: str, names: list[str]) -> PodShape:
    rule = chance.choice(RULES)
    selectors = {"zone": {ZONE_LABEL: chance.choice(ZONES)}, "spot": {CAPACITY_TYPE_LABEL: "spot"}}
    plain = shape(
        chance.choice(["250m", "500m", "1", "1500m", "2", "3"]),
        chance.choice(["512Mi", "1Gi", "3Gi", "6Gi"]),
        labels={"app": name},
        node_selector=selectors.get(rule, {NODEPOOL_LABEL: "batch"} if rule == "batch" else {}),
        tolerations=(TOLERATION,) if rule in {"batch", "spot"} or chance.random() < 0.3 else (),
    )
    own, other = (selects(app) for app in (name, chance.choice(names)))
    match rule:
        case "zones" | "hosts":
            key = ZONE_LABEL if rule == "zones" else HOSTNAME_LABEL
            return replace(plain, topology_spread=(TopologySpread(key, chance.choice([1, 2]), "DoNotSchedule", own),))
        case "apart" | "apart from":
            selector = own if rule == "apart" else other
            return replace(plain, pod_anti_affinity=(PodAffinityTerm(HOSTNAME_LABEL, selector),))
        case "together" | "together with":
            selector = own if rule == "together" else other
            return replace(plain, pod_affinity=(PodAffinityTerm(ZONE_LABEL, selector),))
        case _:
            return plain


def _nodes(chance: random.Random, names: list[str]) -> tuple[tuple[Node, ...], tuple[Pod, ...]]:
    nodes, pods = [], []
    for number in range(chance.choice([0, 0, 1, 3])):
        own = f"node-{number}"
        nodes.append(node(own, cpu="8", memory="32Gi", zone=chance.choice(ZONES), instance_type="m-8x"))
        pods += [
            pod(f"{own}-{index}", node=own, pod_shape=shape("1", "2Gi", labels={"app": chance.choice(names)}))
            for index in range(chance.randint(0, 5))
        ]
    return tuple(nodes), tuple(pods)

"""Random lives of a buffer and its workload, and what they cost beside planning from scratch after each change.

python -m tests.properties.lives [SEED …]   prints dollars paid for each life
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from dataclasses import dataclass, field, replace

from reconciler.demand.combine import demand_of_pod
from reconciler.model.nodes import HELD_ANNOTATION, HOLDS_ANNOTATION
from reconciler.model.placement import read_holdings
from reconciler.placement.place import place
from reconciler.placement.problem import PlacementOptions, Problem
from tests.builders import instance_type
from tests.fakes.embedded import buffer, node_pool, workload, workload_ref
from tests.fakes.kept_cluster import KeptCluster

FAMILIES = (("c", 2, 0.0271), ("m", 4, 0.0330), ("r", 8, 0.0430))
"""Name, GiB a core, USD a core and hour."""
TYPES = tuple(
    instance_type(
        f"{name}-{cores}x",
        cpu=str(cores),
        memory=f"{cores * ratio}Gi",
        price=cores * price,
        capacity_types=("on-demand", "spot"),
    )
    for name, ratio, price in FAMILIES
    for cores in (1, 2, 4, 8, 16, 32, 64)
)
"""The NodePool buys them on demand only."""
PRICES = {item.name: item.offerings[0].price for item in TYPES}
STEP = 5
MOST_PODS, MOST_CHUNKS = 60, 14


@dataclass
class Life:
    """paid, from_scratch: dollars over the life. waited: pods that had no node though the buffer was full and large enough. short: seconds
    in which the buffer's condition was not True, outside of the minute after a change. moves: how often a chunk came to another node within one
    step, at most, on average over the buffer's chunks."""

    paid: float = 0.0
    from_scratch: float = 0.0
    waited: list[str] = field(default_factory=list)
    short: int = 0
    moves: float = 0.0

    @property
    def ratio(self) -> float:
        return self.paid / self.from_scratch


def chunks_in(holdings: str) -> int:
    """Of buffers; a node that is made for the pods of another names that one instead."""
    return sum(count for (demand, _), count in read_holdings(holdings).items() if not demand.startswith("Node/"))


class _Shop:
    def __init__(self, chance: random.Random) -> None:
        self.kept = KeptCluster(instance_types=TYPES, provisions_pending=True)
        self.kept.cluster.apply(node_pool(consolidate_after=chance.choice(["15s", "30s", "60s"])))
        self.pods, self.chunks = chance.randint(1, MOST_PODS), chance.randint(1, MOST_CHUNKS)
        shop = workload(replicas=self.pods, cpu=chance.choice(["250m", "500m", "900m", "1500m", "3"]))
        container = shop["spec"]["template"]["spec"]["containers"][0]
        container["resources"]["requests"]["memory"] = chance.choice(["256Mi", "2Gi", "6Gi"])
        self.kept.cluster.apply(shop)
        self.kept.cluster.apply(buffer(replicas=self.chunks))

    def change(self, chance: random.Random) -> int:
        """Scales the workload or the buffer; returns how many pods were added."""
        if chance.random() < 0.7:
            before, self.pods = self.pods, chance.randint(1, MOST_PODS)
            self.kept.cluster.scale(workload_ref(), self.pods)
            return max(0, self.pods - before)
        self.chunks = chance.randint(1, MOST_CHUNKS)
        self.kept.cluster.apply(buffer(replicas=self.chunks))
        return 0

    @property
    def is_full(self) -> bool:
        outcomes = self.kept.passes[-1].plan.demands
        told = [item for outcome in outcomes for item in outcome.conditions if item.type == "Provisioning"]
        return bool(told) and all(item.status == "True" for item in told)

    @property
    def price(self) -> float:
        nodes = self.kept.cluster.view().nodes
        return sum(PRICES[node.label("node.kubernetes.io/instance-type") or ""] for node in nodes)

    def price_from_scratch(self) -> float:
        """Of new nodes for all pods and chunks, planned together on an empty cluster."""
        view = self.kept.cluster.view()
        pods = [demand_of_pod(replace(pod, node_name=None), view, opens_nodes=True) for pod in view.pods]
        chunks = [item.demand for item in self.kept.passes[-1].plan.demands if not item.demand.is_pending_pod]
        problem = Problem(
            replace(view, nodes=(), node_claims=(), pods=()),
            tuple(self.kept.cluster._world.node_pools().values()),
            TYPES,
            [*pods, *chunks],
            options=PlacementOptions(include_pending=True),
        )
        answer = place(problem)
        assert not answer.unplaced
        return sum(node.price for node in answer.planned)

    def held(self) -> Counter[str]:
        """Chunks by node, as the nodes say."""
        nodes = (node for node in self.kept.cluster.view().nodes if node.annotation(HELD_ANNOTATION) == "true")
        return Counter({node.name: chunks_in(node.annotation(HOLDS_ANNOTATION) or "") for node in nodes})

    def waiting(self) -> list[str]:
        return [pod.name for pod in self.kept.cluster.view().pods if pod.node_name is None]


def live(seed: int, *, seconds: int = 3600) -> Life:
    """A workload and a buffer of its shape that change every four to ten minutes."""
    chance, life = random.Random(seed), Life()
    shop = _Shop(chance)
    shop.kept.keep(60)
    time, next_change, ideal = 0, 0, 0.0
    changed, came, held = 0, 0, shop.held()
    while time < seconds:
        if time >= next_change:
            next_change, changed = time + chance.randint(240, 600), time
            promised, before = shop.chunks if shop.is_full else 0, shop.chunks
            added = shop.change(chance)
            came = -added - max(0, shop.chunks - before)  # so many chunks are new, and have to come to some node
            shop.kept.wait(1)
            if added <= promised:
                life.waited += shop.waiting()
            shop.kept.keep(2)
            ideal = shop.price_from_scratch()
        shop.kept.keep(STEP, step=STEP)
        time += STEP
        life.paid += shop.price * STEP / 3600
        life.from_scratch += ideal * STEP / 3600
        now = shop.held()
        came, held = came + (now - held).total(), now
        life.moves = max(life.moves, came / shop.chunks)
        if time - changed > 60 and not shop.is_full:
            life.short += STEP
    return life


if __name__ == "__main__":
    for number in map(int, sys.argv[1:] or range(10)):
        one = live(number)
        sys.stdout.write(
            f"life {number}: ${one.paid:.4f}, {one.ratio:.3f} of planning from scratch; {one.short} s short,"
            f" {len(one.waited)} pods waited in vain, {one.moves:.1f} moves of a chunk at most\n"
        )

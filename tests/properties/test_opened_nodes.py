"""A buffer stays full while its held nodes are open to other nodes' pods, whichever nodes Karpenter consolidates meanwhile."""

from __future__ import annotations

import os
import random

import pytest

from tests.builders import instance_type
from tests.fakes.embedded import buffer, node_pool, workload, workload_ref
from tests.fakes.kept_cluster import KeptCluster

WORLDS = range(int(os.environ.get("HEADROOM_FUZZ", "40")))
TYPES = tuple(
    instance_type(f"m-{cores}x", cpu=str(cores), memory=f"{4 * cores}Gi", price=0.05 * cores) for cores in (2, 4, 8, 16)
)
SETTLED = 60
"""Seconds after pods went, in which Karpenter's choices may still take room that had just become free."""


def shrinking(seed: int) -> tuple[int, int]:
    """A buffer beside workloads that lose pods at random. Returns for how many seconds it was short, and how often nodes were opened."""
    chance = random.Random(seed)
    shop = KeptCluster(instance_types=TYPES, provisions_pending=True)
    shop.cluster.apply(node_pool(consolidate_after="15s"))
    names = ["web", "api", "jobs"]
    sizes = {name: chance.randint(2, 14) for name in names}
    for name in names:
        cpu = chance.choice(["400m", "700m", "1100m", "1900m"])
        shop.cluster.apply(workload(name, replicas=sizes[name], cpu=cpu))
        shop.keep(10)
    shop.cluster.apply(buffer(replicas=chance.randint(1, 6)))
    shop.keep(120, step=2)
    short = 0
    for _ in range(4):
        name = chance.choice(names)
        sizes[name] = max(1, sizes[name] - chance.randint(1, 5))
        shop.cluster.scale(workload_ref(name), sizes[name])
        for second in range(0, 180, 2):
            shop.keep(2)
            if second > SETTLED and shop.short():
                short += 2
    return short, shop.reasons().count("AdmittedToHeldNodes")


@pytest.fixture(scope="module")
def seen() -> dict[int, tuple[int, int]]:
    return {seed: shrinking(seed) for seed in WORLDS}


def test_no_buffer_is_short_while_nodes_are_open(seen: dict[int, tuple[int, int]]) -> None:
    assert {seed: short for seed, (short, _) in seen.items() if short} == {}


def test_nodes_are_opened_in_some_of_these_worlds(seen: dict[int, tuple[int, int]]) -> None:
    assert sum(bool(opened) for _, opened in seen.values()) >= len(seen) // 5

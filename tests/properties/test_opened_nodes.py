"""A buffer stays full while its held nodes are open to other nodes' pods, whichever nodes Karpenter consolidates meanwhile."""

from __future__ import annotations

import os
import random

import pytest

from tests.builders import instance_type
from tests.fakes.embedded import buffer, node_pool, workload, workload_ref
from tests.fakes.kept_cluster import KeptCluster

WORLDS = range(int(os.environ.get("HEADROOM_FUZZ", "8")))
TYPES = tuple(
    instance_type(f"m-{cores}x", cpu=str(cores), memory=f"{4 * cores}Gi", price=0.05 * cores)
    for cores in (2, 4, 8, 16, 32, 64)
)
SETTLED = 30
"""Seconds after pods went, in which Karpenter's choices may still take room that had just become free."""


def is_full(shop: KeptCluster) -> bool:
    conditions = (item for outcome in shop.passes[-1].plan.demands for item in outcome.conditions)
    return all(item.status == "True" for item in conditions if item.type == "Provisioning")


def shrinking(seed: int) -> tuple[int, int]:
    """A buffer beside a workload that loses pods at random. Returns for how many seconds it was short, and how often nodes were opened."""
    chance = random.Random(seed)
    shop = KeptCluster(instance_types=TYPES, provisions_pending=True)
    shop.cluster.apply(node_pool(consolidate_after="15s"))
    pods = chance.randint(10, 40)
    shop.cluster.apply(workload(replicas=pods, cpu=chance.choice(["1", "1500m", "3"])))
    shop.cluster.apply(buffer(replicas=chance.randint(2, 8)))
    shop.keep(120, step=2)
    short = 0
    for _ in range(4):
        pods = max(2, pods - chance.randint(3, 15))
        shop.cluster.scale(workload_ref(), pods)
        for second in range(0, 150, 2):
            shop.keep(2, step=2)
            if second > SETTLED and not is_full(shop):
                short += 2
    return short, shop.reasons().count("AdmittedToHeldNodes")


@pytest.fixture(scope="module")
def seen() -> dict[int, tuple[int, int]]:
    return {seed: shrinking(seed) for seed in WORLDS}


def test_no_buffer_is_short_while_nodes_are_open(seen: dict[int, tuple[int, int]]) -> None:
    assert {seed: short for seed, (short, _) in seen.items() if short} == {}


def test_nodes_are_opened_in_some_of_these_worlds(seen: dict[int, tuple[int, int]]) -> None:
    assert any(opened for _, opened in seen.values())

"""After any single event a few passes write something, and then none: on the embedded cluster, whatever happens to it."""

from __future__ import annotations

import os
import random
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reconciler.model.nodes import HELD_TAINT
from tests.builders import instance_type
from tests.fakes.embedded import LARGE, SMALL, buffer, node_pool, workload, workload_ref
from tests.fakes.kept_cluster import KeptCluster
from tests.properties.lives import Life, live

MOST_PASSES = 5
"""That write, after one event: what is short is asked for, it is on its way, it is there. What waiting pods would take is asked for and on its
way later, when Karpenter has had its time. A pod that takes held room later
is an event of its own: nobody else makes nodes here, so that pods wait for headroom's."""
LONG = 400
"""Seconds: longer than a launch, every grace, back-off and wait together."""
BUDGET = {"consolidateAfter": "20s", "budgets": [{"nodes": "1"}]}
Happening = tuple[str, Callable[[KeptCluster], None]]


def shop_of(chunks: int, pods: int) -> KeptCluster:
    """Pods beside a buffer of their size and one of small chunks, on nodes that are not to be consolidated by others."""
    shop = KeptCluster(instance_types=(SMALL, LARGE))
    shop.cluster.apply(node_pool(disruption=BUDGET))
    shop.add_node("old", "m-8x", cpu="7")
    shop.cluster.apply(workload(replicas=pods, cpu="1500m"))
    shop.cluster.apply(workload("small", replicas=0, cpu="300m"))
    shop.cluster.apply(buffer(replicas=chunks))
    shop.keep(LONG, buffer("small", of="small", replicas=2))
    return shop


def scale(replicas: int) -> Happening:
    return f"scale to {replicas}", lambda shop: shop.cluster.scale(workload_ref(), replicas)


def resize(replicas: int) -> Happening:
    return f"buffer of {replicas}", lambda shop: void(shop.cluster.apply(buffer(replicas=replicas)))


def of_a_node(name: str, act: Callable[[KeptCluster, str], None]) -> st.SearchStrategy[Happening]:
    def at(number: int) -> Happening:
        def do(shop: KeptCluster) -> None:
            names = shop.node_names()
            if names:
                act(shop, names[number % len(names)])

        return f"{name} {number}", do

    return st.integers(0, 5).map(at)


def void(_: object) -> None:
    return None


happenings: st.SearchStrategy[Happening] = st.one_of(
    st.integers(0, 6).map(scale),
    st.integers(0, 6).map(resize),
    of_a_node("interrupt", lambda shop, name: shop.cluster.interrupt(name)),
    of_a_node("lose", lambda shop, name: shop.cluster.lose(name)),
    of_a_node("not ready", lambda shop, name: shop.cluster.set_ready(name, ready=False)),
    of_a_node("ready", lambda shop, name: shop.cluster.set_ready(name, ready=True)),
    st.just(("restart", lambda shop: shop.restart())),
    st.just(("clock set back", lambda shop: void(shop.clock.advance(-3600)))),
)


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 4), st.integers(0, 4), st.lists(happenings, min_size=1, max_size=4))
def test_after_any_event_the_cluster_comes_to_rest(chunks: int, pods: int, story: list[Happening]) -> None:
    shop = shop_of(chunks, pods)
    for name, happen in story:
        shop.passes.clear()
        ran = shop.running_pods()
        happen(shop)
        shop.keep(LONG)
        came = len(shop.running_pods() - ran)
        told = [(made.at, [str(write.ref) for write in made.writes]) for made in shop.passes]
        assert len(shop.passes) <= MOST_PASSES + came, (name, told)
        assert max(shop.hold_changes().values(), default=0) <= 3, (name, told)
        assert shop.keep(LONG) == [], (name, told)
        for node in shop.cluster.view().nodes:
            assert (HELD_TAINT in node.taints) == node.is_held, (name, node.name)


# A buffer stays full while its workload shrinks, whichever nodes Karpenter consolidates meanwhile.

WORLDS = range(int(os.environ.get("HEADROOM_FUZZ", "5")))
TYPES = tuple(
    instance_type(f"m-{cores}x", cpu=str(cores), memory=f"{4 * cores}Gi", price=0.05 * cores)
    for cores in (2, 4, 8, 16, 32, 64)
)
SETTLED = 30
"""Seconds after pods went, in which Karpenter's choices may still take room that had just become free."""


def is_full(shop: KeptCluster) -> bool:
    conditions = (item for outcome in shop.passes[-1].plan.demands for item in outcome.conditions)
    return all(item.status == "True" for item in conditions if item.type == "Provisioning")


def shrinking(seed: int) -> int:
    """A buffer beside a workload that loses pods at random. Returns for how many seconds it was short."""
    chance = random.Random(seed)
    shop = KeptCluster(instance_types=TYPES, provisions_pending=True)
    shop.cluster.apply(node_pool(consolidate_after="15s"))
    pods = chance.randint(10, 40)
    shop.keep(
        120,
        workload(replicas=pods, cpu=chance.choice(["1", "1500m", "3"])),
        buffer(replicas=chance.randint(2, 8)),
        step=2,
    )
    short = 0
    for _ in range(4):
        pods = max(2, pods - chance.randint(3, 15))
        shop.cluster.scale(workload_ref(), pods)
        for second in range(0, 150, 2):
            shop.keep(2, step=2)
            if second > SETTLED and not is_full(shop):
                short += 2
    return short


@pytest.mark.parametrize("seed", WORLDS)
def test_no_buffer_is_short_while_its_workload_shrinks(seed: int) -> None:
    assert shrinking(seed) == 0


# What a buffer costs over an hour of its life, beside planning from scratch after each change, and that nobody waits meanwhile.

SEEDS = range(int(os.environ.get("HEADROOM_LIVES", "3")))
MOST = 1.2
"""Of the price from scratch, for one life. Karpenter's own choices are in it: it buys one large node for many pods and keeps it."""
MOST_TOGETHER = 1.10
"""1.07 was measured."""
MOST_MOVES = 2


@pytest.fixture(scope="module")
def lives() -> list[Life]:
    return [live(seed) for seed in SEEDS]


def test_no_pod_waits_while_its_buffer_is_full(lives: list[Life]) -> None:
    assert [life.waited for life in lives] == [[] for _ in lives]


def test_a_minute_after_a_change_the_buffer_is_full_and_stays_full(lives: list[Life]) -> None:
    assert [life.short for life in lives] == [0 for _ in lives]


def test_a_chunk_moves_twice_at_most_after_a_change(lives: list[Life]) -> None:
    assert max(life.moves for life in lives) <= MOST_MOVES


def test_a_life_costs_little_more_than_planning_from_scratch(lives: list[Life]) -> None:
    assert max(life.ratio for life in lives) <= MOST
    paid, ideal = sum(life.paid for life in lives), sum(life.from_scratch for life in lives)
    assert paid / ideal <= MOST_TOGETHER

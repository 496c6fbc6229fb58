"""After any single event a few passes write something, and then none: on the embedded cluster, whatever happens to it."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reconciler.model.nodes import HELD_TAINT
from reconciler.plan.bins import is_marked
from tests.fakes.embedded import LARGE, SMALL, buffer, node_pool, workload, workload_ref
from tests.fakes.kept_cluster import KeptCluster

MOST_PASSES = 3
"""That write, after one event: what is short is asked for, it is on its way, it is there. A pod that takes held room later
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
    target = {"apiGroup": "apps", "kind": "Deployment", "name": "small"}
    shop.cluster.apply(buffer("small", scalableRef=target, replicas=2))
    shop.keep(LONG)
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
            assert (HELD_TAINT in node.taints) == is_marked(node), (name, node.name)

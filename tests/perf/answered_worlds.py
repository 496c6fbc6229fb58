"""Worlds whose placement is recorded: generated ones, always the same for a number, and those of the benchmark. Used by answers.

Generated worlds come from Hypothesis' strategies, but not from its generator. That one prefers constants that it finds in the
project's own code, so it would draw other worlds whenever the code changes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from random import Random

from hypothesis.control import BuildContext
from hypothesis.internal.conjecture.data import ConjectureData
from hypothesis.internal.conjecture.providers import PrimitiveProvider
from hypothesis.internal.intervalsets import IntervalSet
from hypothesis.strategies import SearchStrategy

from reconciler.manifests.instance_types import synthetic_instance_types
from reconciler.model.quantity import Resources
from reconciler.model.view import ClusterView
from reconciler.placement.cache import Cache
from reconciler.placement.problem import PlacementOptions
from tests.perf.answer import Answer, Questions, of_placement
from tests.perf.decoded_cluster import buffers, cluster, some_pods_changed, workload_buffers
from tests.perf.pod_mix import decoded, demands_of, pod_manifests, pool, priced_by_zone
from tests.properties.crowded_worlds import crowded_worlds
from tests.properties.small_scenarios import market
from tests.properties.wide_worlds import wide_worlds
from tests.unit.placement.worlds import World, carried_out

WORLDS = {"wide": 200, "crowded": 100, "markets": 100}
"""How many of each kind; wide ones are the most varied."""


def generated_worlds(kind: str) -> Questions:
    """Each in the fast mode. Those with odd numbers in the optimal mode too, those with even ones in the pass after it."""
    for number in range(WORLDS[kind]):
        world = partial(_GENERATED[kind], number)
        yield f"{number:03}", partial(fast, world)
        if number % 2:
            yield f"{number:03} optimal", partial(optimal, world)
        else:
            yield f"{number:03} next pass", partial(_next_pass, world)


def mixes() -> Questions:
    for count in (1000, 5000):
        yield f"{count} pods", partial(fast, partial(_mix, count))
        yield f"{count} pods optimal", partial(optimal, partial(_mix, count))
    yield "1000 pods with prices by zone", partial(fast, _mix_priced_by_zone)
    yield "1000 pods in a limited NodePool", partial(fast, _limited_mix)
    yield "20 buffers of 500", partial(fast, _buffers)
    yield "20 buffers of 500 optimal", partial(optimal, _buffers)
    yield "500 nodes and 20 buffers", partial(fast, _cluster)
    yield "500 nodes and 20 buffers, some pods changed", _changed_cluster


def fast(world: Callable[[], World]) -> Answer:
    return of_placement(world().placed())


def optimal(world: Callable[[], World]) -> Answer:
    return of_placement(world().under(optimal=True).placed())


def _next_pass(world: Callable[[], World]) -> Answer:
    """By a pass that remembers the one before, once its plan is carried out."""
    drawn, memory = world(), Cache()
    first = drawn.placed(memory)
    return of_placement(carried_out(drawn, first).placed(memory))


class _Numbered(PrimitiveProvider):
    """Every value equally likely, from Python's own generator."""

    lifetime = "test_case"

    def draw_boolean(self, p: float = 0.5) -> bool:
        return self._lots().random() < p

    def draw_integer(
        self,
        min_value: int | None = None,
        max_value: int | None = None,
        *,
        weights: dict[int, float] | None = None,
        shrink_towards: int = 0,
    ) -> int:
        del shrink_towards
        assert min_value is not None
        assert max_value is not None
        assert weights is None
        return self._lots().randint(min_value, max_value)

    def draw_float(
        self,
        *,
        min_value: float = 0.0,
        max_value: float = 0.0,
        allow_nan: bool = True,
        smallest_nonzero_magnitude: float,
    ) -> float:
        raise NotImplementedError

    def draw_string(self, intervals: IntervalSet, *, min_size: int = 0, max_size: int = 0) -> str:
        raise NotImplementedError

    def draw_bytes(self, min_size: int = 0, max_size: int = 0) -> bytes:
        raise NotImplementedError

    def _lots(self) -> Random:
        assert self._cd is not None
        lots = self._cd._random
        assert lots is not None
        return lots


def _drawn(worlds: Callable[[], SearchStrategy[World]], number: int) -> World:
    data = ConjectureData(random=Random(number), provider=_Numbered)
    with BuildContext(data, wrapped_test=_drawn):
        return data.draw(worlds())


def _market(number: int) -> World:
    drawn = market(number)
    return World(ClusterView(), drawn.node_pools, drawn.instance_types, drawn.demands)


_GENERATED: dict[str, Callable[[int], World]] = {
    "wide": partial(_drawn, wide_worlds),
    "crowded": partial(_drawn, crowded_worlds),
    "markets": _market,
}


def _mix(count: int) -> World:
    demands = demands_of(decoded(pod_manifests(count)))
    options = PlacementOptions(include_pending=True)
    return World(ClusterView(), (pool(),), synthetic_instance_types(), demands, options=options)


def _mix_priced_by_zone() -> World:
    world = _mix(1000)
    return replace(world, instance_types=priced_by_zone(tuple(world.instance_types)))


def _limited_mix() -> World:
    """The limit is reached before all have a place."""
    limits = Resources.parse({"cpu": "500", "nodes": "120"}).amounts
    return replace(_mix(1000), node_pools=(replace(pool(), limits=limits),))


def _buffers() -> World:
    return World(ClusterView(), (pool(),), synthetic_instance_types(), buffers(20, chunks=500))


def _cluster() -> World:
    view = cluster(nodes=500, pods=15_000)
    return World(view, (pool(),), synthetic_instance_types(), workload_buffers(20, chunks=50))


def _changed_cluster() -> Answer:
    """By a pass that remembers the one before."""
    world, memory = _cluster(), Cache()
    world.placed(memory)
    return of_placement(replace(world, view=some_pods_changed(world.view, 100)).placed(memory))

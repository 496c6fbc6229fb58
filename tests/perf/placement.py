"""How fast and how cheaply chunks are placed, on inputs that are always the same. Part of `python -m tests.perf`.

python -m tests.perf.placement mix 5000 --karpenter
python -m tests.perf.placement mix 1000 --optimal --runs 1
python -m tests.perf.placement mix 1000 --zone-prices
python -m tests.perf.placement limited 5000
python -m tests.perf.placement buffers
python -m tests.perf.placement cluster

Each prints one line of JSON. Time is taken in process from decoded state: what the daemon holds when a pass begins. Every
run gets its input decoded anew, so that nothing kept by identity makes a later one look faster than it is. Of pods, the catalog
apart: a pass finds it as the one before left it, and Karpenter's scheduler gets it made ready outside its own figure; what a
placement takes that has to read it too is told as `cold`. Python looks for garbage as rarely as in `headroom` itself.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from reconciler.__main__ import collect_rarely
from reconciler.manifests.instance_types import synthetic_instance_types
from reconciler.model.demand import Demand
from reconciler.model.nodes import InstanceType, NodePool
from reconciler.model.placement import Placement
from reconciler.model.quantity import Resources
from reconciler.model.view import ClusterView
from reconciler.optimizer.bound import lower_bound, relaxation_of
from reconciler.optimizer.solver import WorkBudget
from reconciler.placement.cache import Cache
from reconciler.placement.checker.violations import violations
from reconciler.placement.place import solve as fast_solution
from reconciler.placement.problem import PlacementOptions, Problem
from tests.controlplane import builds
from tests.controlplane.go_modules import Module, Program
from tests.perf.decoded_cluster import buffers, cluster, some_pods_changed, workload_buffers
from tests.perf.pod_mix import decoded, demands_of, pod_manifests, pool, priced_by_zone
from tests.unit.placement.worlds import place_in_mode

TURNS = 3
"""How often both are timed, where that does not take long; the best counts for each."""
ENOUGH = 5.0
"""Seconds after which one more run is not worth the wait; the first, which may compile and load, is not counted."""


@dataclass(frozen=True, slots=True)
class Run:
    """What a placement came to; seconds: the best of some; cold: the best of those that read the catalog too; first: the first
    one in the process, with whatever it loads; check: seconds that the independent checker takes for it; broken: rules that it
    found broken."""

    seconds: float
    cold: float
    first: float
    check: float
    broken: int
    nodes: int
    price: float
    unplaced: int


Figures = dict[str, Any]
"""As they are printed: seconds, MiB, and USD an hour for prices and bounds."""


def mix(count: int, *, runs: int, with_karpenter: bool, optimal: bool = False, zone_prices: bool = False) -> Figures:
    """Pods of Karpenter's benchmark mix on an empty cluster, pending, with new nodes planned for them."""
    types = priced_by_zone(synthetic_instance_types()) if zone_prices else synthetic_instance_types()
    manifests = pod_manifests(count)
    program = solver() if with_karpenter else None
    found, theirs = [], []
    # By turns, so that a machine that is slow for a while slows both.
    for _ in range(TURNS if program and count <= 5000 else 1):
        inputs = [demands_of(decoded(manifests)) for _ in range(2 * runs)]
        found.append(_best([(ClusterView(), demands) for demands in inputs], optimal=optimal, types=types))
        if program:
            theirs.append(solve(program, manifests, runs=runs if count <= 1000 else 1))
    run = min(found, key=lambda item: item.seconds)
    return {
        "run": asdict(replace(run, cold=min(item.cold for item in found), first=found[0].first)),
        "bound": _bound(inputs[0], types),
        "karpenter": asdict(min(theirs, key=lambda item: item.seconds)) if theirs else None,
    }


def mix_in_limited_pool(count: int) -> Figures:
    """The mix in a NodePool with limits that are never reached, beside the same without."""
    manifests = pod_manifests(count)
    limits = Resources.parse({"cpu": "100000", "memory": "1Pi"}).amounts
    best: dict[bool, float] = {}
    for _ in range(3):
        for limited in (False, True):
            node_pool = replace(pool(), limits=limits) if limited else pool()
            seconds, _ = _timed(ClusterView(), demands_of(decoded(manifests)), node_pool=node_pool)
            best[limited] = min(seconds, best.get(limited, seconds))
    return {"plain": best[False], "limited": best[True]}


def buffers_on_nothing(*, runs: int, optimal: bool = False) -> Figures:
    """10,000 chunks in 20 buffers on an empty cluster."""
    inputs = [buffers(20, chunks=500) for _ in range(2 * runs)]
    run = _best([(ClusterView(), demands) for demands in inputs], optimal=optimal)
    return {"run": asdict(run), "bound": _bound(inputs[0], synthetic_instance_types())}


def large_cluster() -> Figures:
    """5,000 nodes with 150,000 bound pods, and buffers of 50 chunks for 20 of its workloads."""
    view = cluster(nodes=5000, pods=150_000)
    demands = workload_buffers(20, chunks=50)
    later = some_pods_changed(view, 100)
    memory = Cache()
    first, placement = _timed(view, demands, memory)
    changed, _ = _timed(later, demands, memory)
    unchanged, _ = _timed(later, demands, memory)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {
        "first": first,
        "changed": changed,
        "unchanged": unchanged,
        "peak": peak,
        "unplaced": _unplaced(placement),
    }


def _bound(demands: tuple[Demand, ...], types: tuple[InstanceType, ...]) -> float:
    """What new nodes for these demands cost at least, as the optimal mode says it."""
    options = PlacementOptions(include_pending=True)
    problem = Problem(ClusterView(), (pool(),), types, demands, options=options)
    bound = lower_bound(relaxation_of(fast_solution(problem, Cache()).state), WorkBudget(lambda: math.inf))
    assert bound is not None
    return bound


def _best(
    inputs: Sequence[tuple[ClusterView, tuple[Demand, ...]]],
    *,
    optimal: bool,
    types: tuple[InstanceType, ...] = synthetic_instance_types(),
) -> Run:
    """Every other one finds the catalog read, by a placement of a single demand before it."""
    cold: list[float] = []
    took: list[float] = []
    for number, (view, demands) in enumerate(inputs):
        memory = Cache()
        if number % 2:
            _timed(view, demands[:1], memory, types=types)
        seconds, placement = _timed(view, demands, memory, optimal=optimal, types=types)
        (took if number % 2 else cold).append(seconds)
        if took and sum(cold[1:]) + sum(took) > ENOUGH:
            break
    price = sum(node.price for node in placement.planned)
    began = time.perf_counter()
    broken = violations(Problem(view, (pool(),), types, demands), placement)
    check = time.perf_counter() - began
    return Run(min(took), min(cold), cold[0], check, len(broken), len(placement.planned), price, _unplaced(placement))


def _timed(
    view: ClusterView,
    demands: tuple[Demand, ...],
    memory: Cache | None = None,
    *,
    optimal: bool = False,
    node_pool: NodePool | None = None,
    types: tuple[InstanceType, ...] = synthetic_instance_types(),
) -> tuple[float, Placement]:
    pools = (node_pool or pool(),)
    options = PlacementOptions(include_pending=True, optimal=optimal)
    began = time.perf_counter()
    placement = place_in_mode(Problem(view, pools, types, demands, options=options), memory=memory)
    return time.perf_counter() - began, placement


def _unplaced(placement: Placement) -> int:
    return sum(item.count for item in placement.unplaced)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.perf.placement")
    cases = parser.add_subparsers(dest="case", required=True)
    of_mix = cases.add_parser("mix")
    of_mix.add_argument("pods", type=int)
    of_mix.add_argument("--karpenter", action="store_true", help="run Karpenter's scheduler too; needs Go")
    of_mix.add_argument("--runs", type=int, default=5)
    of_mix.add_argument("--optimal", action="store_true", help="in the optimal mode")
    of_mix.add_argument("--zone-prices", action="store_true", help="where each zone has prices of its own")
    of_buffers = cases.add_parser("buffers")
    of_buffers.add_argument("--optimal", action="store_true", help="in the optimal mode")
    of_limited = cases.add_parser("limited", help="the mix in a NodePool with limits, beside one without")
    of_limited.add_argument("pods", type=int)
    cases.add_parser("cluster")
    asked = parser.parse_args(arguments)
    collect_rarely()
    match asked.case:
        case "mix":
            figures = mix(
                asked.pods,
                runs=asked.runs,
                with_karpenter=asked.karpenter,
                optimal=asked.optimal,
                zone_prices=asked.zone_prices,
            )
        case "limited":
            figures = mix_in_limited_pool(asked.pods)
        case "buffers":
            figures = buffers_on_nothing(runs=1 if asked.optimal else 3, optimal=asked.optimal)
        case _:
            figures = large_cluster()
    print(json.dumps(figures))
    return 0


# Karpenter's own scheduler as a program: built with Go into the cache outside the repository, fed pods, its answer read.
#
# Used by the placement benchmark to hold headroom against it in the same run.

_PROGRAM = "karpenter-solver"


class _SolverModule(Module):
    """Lies beside the benchmark, and its own source counts for the cache's key."""

    @property
    def folder(self) -> Path:
        return Path(__file__).parent / "karpenter"

    def key(self) -> str:
        source = hashlib.sha256((self.folder / "main.go").read_bytes()).hexdigest()[:12]
        return f"{super().key()}-{source}"


_MODULE = _SolverModule(name="karpenter-solver", programs=(Program(_PROGRAM, "."),))


@dataclass(frozen=True, slots=True)
class KarpenterAnswer:
    """seconds: of the best run; price: USD an hour when each NodeClaim gets its cheapest offering."""

    seconds: float
    nodes: int
    price: float
    unplaced: int


def solver() -> Path | None:
    """The program, built when it is not there yet; None where there is no Go to build it with."""
    try:
        folder = builds.cached(_MODULE) or builds.build(_MODULE)
    except builds.ProgramsMissingError:
        return None
    return folder / _PROGRAM


def solve(program: Path, manifests: list[dict[str, Any]], *, runs: int) -> KarpenterAnswer:
    """Over pending pods on an empty cluster with one on-demand Linux NodePool and the catalog of its KWOK provider."""
    done = subprocess.run([program, str(runs)], input=json.dumps(manifests), capture_output=True, text=True, check=True)
    return KarpenterAnswer(**json.loads(done.stdout))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

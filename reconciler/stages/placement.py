"""Places every chunk, and lets the checker judge where that is asked for.

At a NodePool's limit pending pods come before chunks: it is Karpenter that makes their nodes. Where a change lowered a limit no node goes, but
none is added until enough have gone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import ClassVar

from reconciler.model import codes
from reconciler.model.demand import Demand
from reconciler.model.findings import Finding
from reconciler.model.nodes import NODEPOOL_LABEL, PLACEHOLDER_LABEL, InstanceType, NodePool, node_pool_ref
from reconciler.model.placement import Placement, PlannedNode
from reconciler.model.quantity import Resources, readable_amount
from reconciler.model.refs import ObjectRef
from reconciler.model.schedules import Edge
from reconciler.model.view import ClusterView
from reconciler.placement.cache import Cache
from reconciler.placement.constraints.limits import NODES, PoolLimits
from reconciler.placement.place import place
from reconciler.placement.problem import Problem
from reconciler.plan.bins import Bin, all_bins
from reconciler.plan.cost import Prices
from reconciler.plan.facts import rejections
from reconciler.plan.launching.caps import Cut, capped_nodes, refused_cuts, still_refused
from reconciler.spending.month import Basis
from reconciler.stages.state import PassState, Rules

_HEAD_START = timedelta(seconds=15)
"""How long Karpenter may take to choose nodes for pods: its longest batch takes ten seconds (BATCH_MAX_DURATION)."""


def place_in_mode(problem: Problem, *, cache: Cache, seconds_left: Callable[[], float]) -> Placement:
    """Fast, or optimal if the options ask for it. Only then the optimizer is loaded."""
    if not problem.options.optimal:
        return place(problem, cache=cache)
    from reconciler.optimizer.place_in_mode import place_optimally

    return place_optimally(problem, cache=cache, seconds_left=seconds_left)


def broken_rules(problem: Problem, placement: Placement, rules: Rules) -> tuple[str, ...]:
    """What the checker says, in sentences. Like the optimizer, it is loaded only where it is asked for."""
    if not rules.placement.check:
        return ()
    from reconciler.placement.checker.violations import violations

    return violations(problem, placement)


@dataclass(frozen=True, slots=True)
class Place:
    """cache: the previous placements, so that only what changed is computed again."""

    phase: ClassVar[str] = "placement"

    rules: Rules
    cache: Cache

    def run(self, state: PassState) -> PassState:
        latest = time.perf_counter() + self.rules.placement.optimal_within.total_seconds()

        def seconds_left() -> float:
            return latest - time.perf_counter()

        problem = state.problem
        placement = place_in_mode(problem, cache=self.cache, seconds_left=seconds_left)
        if not state.include_pending:
            narrower = with_promised(problem, placement, self.cache)
            if narrower is not problem:
                problem = narrower
                placement = place_in_mode(
                    problem, cache=self.cache.of("limits narrowed by pods"), seconds_left=seconds_left
                )
        problem, placement = self._with_attempts(state, problem, placement, seconds_left)
        problem, placement, refused = self._without_refused(state, problem, placement, seconds_left)
        broken = () if placement.checked else broken_rules(problem, placement, self.rules)
        crowding = no_room_findings(problem, placement, self.cache)
        options = state.prepared.options
        state = replace(
            state,
            demands=tuple(problem.demands),
            placement=placement,
            refused=refused,
            broken_rules=broken,
            prepared=replace(state.prepared, options=problem.options),
            findings=(*state.findings, *rejections(broken), *crowding),
        )
        booked = [item.request.booked_for for item in problem.demands if item.request is not None]
        booked_for = max(booked, default=self.rules.requests.booked_for)
        state = with_pods_first(state, self.cache)
        basis = Basis(
            state,
            state.prepared.room,
            self.rules.dialect,
            options,
            placement,
            cache=self.cache,
            booked_for=booked_for,
        )
        return replace(state, basis=basis)

    def _with_attempts(
        self, state: PassState, problem: Problem, placement: Placement, seconds_left: Callable[[], float]
    ) -> tuple[Problem, Placement]:
        """Places again where a request finds no room, with what only others leave alone: its attempts have waits of their own."""
        attempted = state.prepared.failed_in_attempts
        without = {item.demand for item in placement.unplaced}
        asking = {item.ref for item in problem.demands if item.whole and item.opens_nodes and item.ref in without}
        if not asking or attempted >= problem.options.back_offs:
            return problem, placement
        again = replace(problem, options=replace(problem.options, back_offs=attempted))
        found = place_in_mode(again, cache=self.cache.of("attempts of requests"), seconds_left=seconds_left)
        served = asking.difference(item.demand for item in found.unplaced)
        return (again, found) if served else (problem, placement)

    def _without_refused(
        self, state: PassState, problem: Problem, placement: Placement, seconds_left: Callable[[], float]
    ) -> tuple[Problem, Placement, tuple[Cut, ...]]:
        """Places again without new nodes for requests that are over a cap. Part of such a request would otherwise take room that others
        need."""
        whole = {demand.ref for demand in problem.demands if demand.whole and demand.opens_nodes}
        cuts: tuple[Cut, ...] = ()
        while any(holding.demand in whole for node in placement.planned for holding in node.holdings):
            bins = all_bins(state.view, placement.occupied)
            capped = capped_nodes(
                placement.planned, problem.demands, bins, Prices(state.instance_types), self.rules.caps
            )
            if not capped.refused:
                break
            cuts += refused_cuts(capped)
            demands = (
                replace(item, opens_nodes=False) if item.ref in capped.refused else item for item in problem.demands
            )
            problem = replace(problem, demands=tuple(demands))
            placement = place_in_mode(
                problem, cache=self.cache.of("without refused requests"), seconds_left=seconds_left
            )
        return problem, placement, still_refused(cuts, placement)


def with_pods_first(state: PassState, cache: Cache) -> PassState:
    """The state in which chunks get no new nodes that pods would take at once, as long as Karpenter is about to make nodes for these pods.

    It chooses no nodes while a NodeClaim has no instance (Cluster.Synced in pkg/controllers/state), so each for chunks would delay the pods'.
    In NodePools where Karpenter has just made nodes, or pods have waited for longer, chunks wait no more."""
    problem, placement, young = state.problem, state.placement, state.cluster_now - _HEAD_START
    waiting = () if state.include_pending or not placement.planned else _waiting(problem, placement)
    if not waiting:
        return state
    created = {(pod.namespace, pod.name): pod.created for pod in problem.view.pods if pod.node_name is None}
    since = {ref: time for ref in waiting if (time := created.get((ref.namespace, ref.name))) and time > young}
    pods: dict[str, set[ObjectRef]] = {}
    for node in _pods_alone(problem, cache).planned if since else ():
        pods.setdefault(node.node_pool, set()).update(holding.demand for holding in node.holdings)
    for claim in state.view.node_claims:
        if claim.created is not None and claim.created > young and claim.label(PLACEHOLDER_LABEL) != "true":
            pods.pop(claim.label(NODEPOOL_LABEL) or "", None)
    pods = {pool: refs for pool, refs in pods.items() if refs <= since.keys()}
    if not pods:
        return state
    requests = {demand.ref: demand.groups[0].shape.requests for demand in problem.demands if demand.ref in since}
    end = min(since[ref] for refs in pods.values() for ref in refs) + _HEAD_START + state.view.clock_skew
    return replace(
        state,
        pods_first={pool: frozenset(requests[ref] for ref in refs) for pool, refs in pods.items()},
        edges=(
            *state.edges,
            Edge(end, "chunks wait no longer for Karpenter to make nodes for pods", is_routine=True),
        ),
    )


def with_promised(problem: Problem, placement: Placement, cache: Cache) -> Problem:
    """The problem with what pending pods will use of the limits. The same object if chunks come near no limit."""
    limited = {pool.name for pool in problem.node_pools if pool.limits is not None}
    if not any(node.node_pool in limited for node in placement.planned) or not _waiting(problem, placement):
        return problem
    made = _pods_alone(problem, cache).planned
    promised = used_by(made, problem.instance_types, limited)
    return replace(problem, options=replace(problem.options, promised=promised)) if promised else problem


def no_room_findings(problem: Problem, placement: Placement, cache: Cache) -> tuple[Finding, ...]:
    """Names buffers whose empty placeholders use up a limit, so that pods cannot have a node."""
    limited = {pool.name for pool in problem.node_pools if pool.limits is not None}
    bins = all_bins(problem.view, placement.occupied)
    own = [item for item in bins if item.node_pool in limited and _is_only_for_chunks(item)]
    waiting = _waiting(problem, placement) if own else ()
    if not waiting:
        return ()
    missing = {item.demand for item in _pods_alone(problem, cache).unplaced}
    if not missing:
        return ()
    freed = _of_pods(replace(problem, view=_without(problem.view, own)))
    still = {item.demand for item in place(freed, cache=cache.of("pods without buffers")).unplaced}
    return tuple(_findings(own, sorted(missing - still), problem.demands))


def _waiting(problem: Problem, placement: Placement) -> tuple[ObjectRef, ...]:
    pods = {demand.ref for demand in problem.demands if demand.is_pending_pod}
    return tuple(item.demand for item in placement.unplaced if item.demand in pods)


def _of_pods(problem: Problem) -> Problem:
    """The problem without chunks, in which Karpenter makes nodes for the pods. What is promised to these pods is theirs, and not used twice."""
    pods = tuple(replace(demand, opens_nodes=True) for demand in problem.demands if demand.is_pending_pod)
    options = replace(problem.options, include_pending=True, optimal=False, promised=())
    return replace(problem, demands=pods, options=options)


def _pods_alone(problem: Problem, cache: Cache) -> Placement:
    return place(_of_pods(problem), cache=cache.of("pods alone"))


def used_by(
    planned: Iterable[PlannedNode], instance_types: Iterable[InstanceType], limited: set[str]
) -> tuple[tuple[str, Resources], ...]:
    """As Karpenter does, counts each new node against the limit as the largest type that it may still become."""
    capacities = {kind.name: kind.capacity for kind in instance_types}
    used: dict[str, Resources] = {}
    for node in planned:
        if node.node_pool in limited:
            largest = Resources.largest(capacities[name] for name in node.instance_types)
            used[node.node_pool] = used.get(node.node_pool, Resources()) + largest + Resources.of({NODES: 1})
    return tuple(sorted(used.items()))


def _is_only_for_chunks(item: Bin) -> bool:
    return bool(item.chunks) and not (item.in_use or item.pods or item.is_going)


def _without(view: ClusterView, bins: Iterable[Bin]) -> ClusterView:
    gone = {side.uid or side.name for item in bins for side in item.sides}
    return replace(
        view,
        nodes=tuple(item for item in view.nodes if (item.uid or item.name) not in gone),
        node_claims=tuple(item for item in view.node_claims if (item.uid or item.name) not in gone),
    )


def _findings(bins: Iterable[Bin], pods: Sequence[ObjectRef], demands: Iterable[Demand]) -> Iterator[Finding]:
    if not pods:
        return
    sources = {demand.ref: demand.source for demand in demands}
    by_demand: dict[ObjectRef, set[str]] = {}
    for item in bins:
        for holding in item.chunks:
            by_demand.setdefault(holding.demand, set()).add(item.node_pool)
    rest = f" and {len(pods) - 1:,} more" if len(pods) > 1 else ""
    for ref, pools in sorted(by_demand.items()):
        yield codes.BUFFER_LEAVES_NO_ROOM.finding(
            f"its nodes use up the limits of NodePool {', '.join(sorted(pools))}, so that {pods[0]}{rest} can have no node",
            sources.get(ref),
            ref,
            hint="raise the limit, make the buffer smaller, or give it a NodePool of its own",
        )


def lowered_limits(
    before: Sequence[NodePool], after: Sequence[NodePool], view: ClusterView, instance_types: Sequence[InstanceType]
) -> Iterator[Finding]:
    """A warning for each limit in `after` that the pool's nodes exceed, and did not exceed in `before`."""
    known, limits = (PoolLimits(pools, view, instance_types, {}) for pools in (before, after))
    for pool in after:
        was = known.left(pool.name)
        allowed = dict(pool.limits or ())
        for resource, left in sorted(limits.left(pool.name).items()):
            if left >= 0 or was.get(resource, 0) < 0:
                continue
            limit, used = (
                readable_amount(resource, amount) for amount in (allowed[resource], allowed[resource] - left)
            )
            message = f"it is over its {resource} limit of {limit}: {used} used"
            hint = "raise the limit, or expect no new node in it until enough of them have gone"
            ref = node_pool_ref(pool.name)
            yield codes.POOL_OVER_LIMIT.finding(message, pool.position, ref, f"spec.limits.{resource}", hint)

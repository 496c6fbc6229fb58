"""The cost of what is declared over the coming 30 days: a steady state for each distinct state that schedules bring about, added up.

Costs change at the instant at which demand changes. The time that nodes take to start and to go is not counted.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from reconciler.demand.combine import demands, leaving_demands, settled, with_leaving, without_leaving
from reconciler.demand.schedules import changes_with, followed_buffer
from reconciler.demand.timeline import State, followed_pieces
from reconciler.model.buffers import Dialect
from reconciler.model.declared import Declared
from reconciler.model.demand import REQUEST_KIND, Demand
from reconciler.model.machines import Machine
from reconciler.model.nodes import node_pool_ref
from reconciler.model.placement import Placement
from reconciler.model.quantity import format_duration
from reconciler.model.refs import ObjectRef
from reconciler.model.schedules import Following, following_of
from reconciler.model.timelines import HOUR, MONTH, CostSpan, Spending, SteadyState, WindowCost, aligned, joined
from reconciler.model.view import ClusterView, LiveObject
from reconciler.placement.cache import Cache
from reconciler.placement.place import place
from reconciler.placement.problem import PlacementOptions, Problem
from reconciler.plan.bins import all_bins
from reconciler.plan.facts import Facts
from reconciler.spending.steady import Accountant

MOST_STATES = 250
"""How many distinct states are placed one by one, those that last longest first. The rest is priced as their mean."""


@dataclass(frozen=True, slots=True, eq=False)
class Basis:
    """What a pass knew, and how it placed the demands of its instant. room: the cluster without pods that need another place."""

    facts: Facts
    room: ClusterView
    dialect: Dialect
    options: PlacementOptions
    placement: Placement | None
    """None: of another view, so the present state is placed too."""
    leaving: tuple[Demand, ...] = ()
    """Pods of nodes that will be replaced."""
    cache: Cache = field(default_factory=Cache)
    booked_for: timedelta = timedelta(minutes=10)
    """How long capacity is set aside for a provisioning request."""


def as_declared(basis: Basis, replaced: Collection[str] = ()) -> Basis:
    """The basis as if the cluster had settled on what is declared, so that what it costs does not depend on what headroom made earlier.

    Nodes that were made for chunks and run no pods are made anew. replaced: the names of other nodes that are, with the pods that may be
    evicted from them; a node with any other pod stays.
    """
    view = basis.room
    unused = {item.name for item in all_bins(view) if item.is_placeholder and not item.in_use}
    if not unused and not replaced:
        return basis
    machines = [item for item in view.machines if item.name not in unused]
    going = frozenset(item.name for item in machines if item.name in replaced)
    now = basis.facts.now - view.clock_skew
    leaving = leaving_demands(_with_machines(view, machines, going), now)
    moved = {(demand.ref.namespace, demand.ref.name) for demand in leaving}
    stuck = {
        pod.node_name
        for pod in view.pods
        if pod.node_name in going and not pod.is_daemon and (pod.namespace, pod.name) not in moved
    }
    going = going.difference(stuck)
    leaving = tuple(demand for demand in leaving if demand.leaves in going)
    settled_view = without_leaving(_with_machines(view, machines, going), leaving)
    return replace(basis, room=settled_view, placement=None, leaving=leaving)


def _with_machines(view: ClusterView, machines: Iterable[Machine], going: Collection[str]) -> ClusterView:
    """The cluster with these machines only. going: those that are being deleted."""
    kept = [(item.node, item.node_claim, item.name in going) for item in machines]
    return replace(
        view,
        nodes=tuple(replace(node, deleting=node.deleting or goes) for node, _, goes in kept if node is not None),
        node_claims=tuple(
            replace(claim, deleting=claim.deleting or goes) for _, claim, goes in kept if claim is not None
        ),
    )


def is_steady(basis: Basis) -> bool:
    """Whether the pass's placement holds for the whole span, so that nothing has to be placed again."""
    booked = any(demand.ref.kind == REQUEST_KIND for demand in basis.facts.demands)
    declared = basis.facts.effective
    followed = any(following_of(node_pool_ref(pool.name), pool.annotations) for pool in declared.node_pools) or any(
        changes_with(buffer, basis.room.objects.get(buffer.ref)) for buffer in declared.buffers
    )
    return not (booked or followed) and settled(basis.facts.demands, basis.room) is basis.facts.demands


def spending(basis: Basis, span: timedelta = MONTH) -> Spending:
    """The costs over the span. Percentages, quotas and the nodes of pods stay as they are now, since their future is unknown."""
    start, end = basis.facts.now, basis.facts.now + span
    states = States(basis.facts.effective, basis.room.objects, start, end)
    lasting = _lasting(states)
    accountant = Accountant(basis.room, basis.facts.instance_types)
    first = states.intervals[0].key
    present = _present(basis, states.at(first), accountant)
    is_booked = any(ref.kind == REQUEST_KIND for ref in present.demands)
    known: dict[Key, SteadyState] = {} if is_booked else {first: present}
    is_paid = any(cost.per_hour for ref, cost in present.demands.items() if ref.kind == REQUEST_KIND)
    notes = []
    if is_paid:
        notes.append(
            f"provisioning requests count for the {format_duration(basis.booked_for)} that their capacity is booked: how long their pods"
            " run after that cannot be foreseen"
        )
    for key in list(lasting)[:MOST_STATES]:
        if key not in known:
            known[key] = _placed(basis, states.at(key), accountant)
    left = {key: hours for key, hours in lasting.items() if key not in known}
    if left:
        mean = _mean(known, lasting)
        known |= dict.fromkeys(left, mean)
        notes.append(
            f"{len(left):,} of {len(lasting):,} states of the schedules, {sum(left.values()):,.1f} of"
            f" {span / HOUR:,.0f} hours, are priced as the mean of the others"
        )
    spans = [CostSpan(item.start, item.end, known[item.key]) for item in states.intervals]
    if is_booked:
        until = min(start + basis.booked_for, spans[0].end)
        spans[:1] = [
            CostSpan(start, until, present),
            *([replace(spans[0], start=until)] if until < spans[0].end else []),
        ]
    return Spending(
        start, end, tuple(joined(spans, lambda span: id(span.state))), _windows(states, known), tuple(notes)
    )


def _lasting(states: States) -> dict[Key, float]:
    hours: dict[Key, float] = {}
    for item in states.intervals:
        hours[item.key] = hours.get(item.key, 0.0) + (item.end - item.start) / HOUR
    return dict(sorted(hours.items(), key=lambda entry: -entry[1]))


def _placed(basis: Basis, declared: Declared, accountant: Accountant) -> SteadyState:
    found, _ = demands(declared, basis.room, dialect=basis.dialect, instance_types=basis.facts.instance_types)
    return _with_room(basis, declared, settled(found, basis.room), accountant)


def _present(basis: Basis, declared: Declared, accountant: Accountant) -> SteadyState:
    """The present state. The pass has already placed it, unless another party is to make nodes for some of it."""
    demands_now = settled(basis.facts.demands, basis.room)
    if demands_now is basis.facts.demands and basis.placement is not None:
        return accountant.steady_state(declared, demands_now, basis.placement)
    return _with_room(basis, declared, demands_now, accountant)


def _with_room(basis: Basis, declared: Declared, found: tuple[Demand, ...], accountant: Accountant) -> SteadyState:
    found = with_leaving(found, basis.leaving)
    problem = Problem(
        basis.room,
        node_pools=declared.node_pools,
        instance_types=basis.facts.instance_types,
        demands=found,
        overlays=declared.node_overlays,
        options=replace(basis.options, optimal=False, include_pending=bool(basis.leaving)),
    )
    return accountant.steady_state(declared, found, place(problem, cache=basis.cache))


def _mean(known: dict[Key, SteadyState], lasting: dict[Key, float]) -> SteadyState:
    total = sum(lasting[key] for key in known)
    price = sum(state.per_hour * lasting[key] for key, state in known.items()) / total
    nodes = round(sum(state.nodes * lasting[key] for key, state in known.items()) / total)
    return SteadyState(price, nodes, is_mean=True)


def _windows(states: States, known: dict[Key, SteadyState]) -> tuple[WindowCost, ...]:
    """One row for each schedule and value. A follower of two schedules counts for both."""
    hours: dict[tuple[ObjectRef, int | None], float] = {}
    costs: dict[tuple[ObjectRef, int | None], float] = {}
    for index, following in sorted(enumerate(states.followings), key=lambda entry: entry[1].lead):
        buffers, pools = states.followers(following)
        own_hours: dict[tuple[ObjectRef, int | None], float] = {}
        for item in states.intervals:
            value, active = item.key[index]
            state, lasts = known[item.key], (item.end - item.start) / HOUR
            price = sum(state.demands[ref].per_hour for ref in buffers if ref in state.demands)
            price += sum(state.pools[name].per_hour for name in pools if name in state.pools)
            for schedule in following.schedules:
                says = value if schedule == following.replicas_from else None if active else 0
                key = (schedule, says)
                own_hours[key] = own_hours.get(key, 0.0) + lasts
                costs[key] = costs.get(key, 0.0) + price * lasts
        hours = own_hours | hours  # of followers with the least lead, which are closest to the schedule itself
    rows = [WindowCost(schedule, value, lasts, costs[schedule, value]) for (schedule, value), lasts in hours.items()]
    return tuple(sorted(rows, key=lambda row: (row.schedule, row.value is not None, -(row.value or 0))))


Key = tuple[State, ...]
"""The value of every distinct following at an instant, in a fixed order."""


@dataclass(frozen=True, slots=True)
class Interval:
    """[start, end), in which no followed schedule changes."""

    start: datetime
    end: datetime
    key: Key


class States:
    """Followers of one declared capacity over [start, end). Objects whose schedule is unknown stay as they are."""

    def __init__(
        self, declared: Declared, objects: Mapping[ObjectRef, LiveObject], start: datetime, end: datetime
    ) -> None:
        self._declared = declared
        schedules = {schedule.ref: schedule for schedule in declared.schedules}
        buffers = {buffer.ref: changes_with(buffer, objects.get(buffer.ref)) for buffer in declared.buffers}
        manifests = {item.ref: item for item in declared.manifests}
        pools = {
            pool.name: following_of(node_pool_ref(pool.name), pool.annotations)
            for pool in declared.node_pools
            if node_pool_ref(pool.name) in manifests or pool.replicas is not None
        }
        wanted = dict.fromkeys(item for item in (*buffers.values(), *pools.values()) if item is not None)
        pieces = {item: followed_pieces(item, schedules, start, end) for item in wanted}
        self.followings = tuple(item for item in wanted if pieces[item])
        self._place = {item: index for index, item in enumerate(self.followings)}
        self._buffers = buffers
        self._pools = pools
        self.intervals = tuple(_intervals({item: pieces[item] for item in self.followings}, start, end))

    def at(self, key: Key) -> Declared:
        """What is declared while the state holds: followers with their sizes, all else as it is."""
        declared = self._declared
        buffers = []
        for buffer in declared.buffers:
            following = self._buffers[buffer.ref]
            state = self._state(following, key)
            if state is None or following is None:
                buffers.append(buffer)
                continue
            replicas, active = state
            asleep = "" if active else f"{following.active_during} is at 0"
            buffers.append(followed_buffer(buffer, following, replicas, asleep=asleep))
        pools = []
        for pool in declared.node_pools:
            state = self._state(self._pools.get(pool.name), key)
            sized = pool if state is None or state[0] is None else replace(pool, replicas=state[0])
            pools.append(sized)
        return replace(declared, buffers=tuple(buffers), node_pools=tuple(pools))

    def followers(self, following: Following) -> tuple[list[ObjectRef], list[str]]:
        """Buffers by reference, and static NodePools by name, with exactly this following."""
        return (
            [ref for ref, item in self._buffers.items() if item == following],
            [name for name, item in self._pools.items() if item == following],
        )

    def _state(self, following: Following | None, key: Key) -> State | None:
        place = None if following is None else self._place.get(following)
        return None if place is None else key[place]


def _intervals(
    pieces: Mapping[Following, list[tuple[datetime, datetime, State]]], start: datetime, end: datetime
) -> list[Interval]:
    every = aligned(*pieces.values()) if pieces else [(start, end, ())]
    return joined((Interval(*piece) for piece in every), lambda interval: interval.key)

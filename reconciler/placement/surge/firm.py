"""Changes a placement until no order that is rehearsed leaves a pod waiting: `placement.surge`.

The first thing that is tried costs nothing: nodes that hold chunks of those who wait get a taint that sends others elsewhere. Spare room,
as chunks that nobody comes for, and larger new nodes are tried too, and what costs least is taken. Spare chunks are demands of their own,
so that the nodes say what they hold them for, and the next pass finds them there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from reconciler.model.demand import REQUEST_KIND, SPARE_KIND, ChunkGroup, Demand
from reconciler.model.placement import Placement, read_holdings
from reconciler.model.quantity import CPU
from reconciler.model.refs import ObjectRef
from reconciler.model.surge import Wait
from reconciler.placement.problem import Problem
from reconciler.placement.scheduler.walk import compiled_walk
from reconciler.placement.surge.rehearsal import Rehearsal

MOST_ROUNDS = 16
"""Placements to which spare room is added."""
MOST_STEPS = 100_000_000
"""Pods times nodes of all rehearsals together: what compiled loops go through in four seconds."""
_FOR_ALL = 3
"""How many times its price a placement is taken to cost more if all pods wait."""
_PATIENCE = 1_000
"""Changes of an order for each demand, to see whether a placement leaves anybody waiting."""
_MOST_KNOWN = 20
"""Orders that every placement is tried with, of those in which somebody had to wait: the latest."""
_MOST_MARKED = 4
"""Demands for each of which the taint on its room alone is tried."""
_LAST = -(2**31)
"""The priority of spare room, below that of all pods: it takes no room that something else needs."""


class SurgeMode(StrEnum):
    """What a full buffer promises: room as it was planned, room when the buffer is used alone, or when all are used at once."""

    PLANNED = "planned"
    ALONE = "alone"
    ALL = "all"


@dataclass(frozen=True, slots=True)
class Firm:
    """A placement with what makes it firm. waiting: pods that wait all the same, in the worst order of each demand.

    spare: by demand, how many chunks beside its own. scarce: names of nodes that get the taint of scarce room."""

    problem: Problem
    placement: Placement
    waiting: int = 0
    spare: Counter[ObjectRef] = field(default_factory=Counter)
    scarce: frozenset[str] = frozenset()
    waits: tuple[Wait, ...] = ()

    @property
    def price(self) -> float:
        """USD an hour of the new nodes."""
        return sum(node.price for node in self.placement.planned)


@dataclass(slots=True)
class Firmer:
    """place: of a problem. names_of: those of planned nodes. known: orders in which somebody had to wait with one of the placements.
    steps: pods times nodes of all rehearsals so far."""

    mode: SurgeMode
    place: Callable[[Problem], Placement]
    names_of: Callable[[Placement], Sequence[str]]
    known: list[list[ObjectRef]] = field(default_factory=list)
    steps: int = 0

    def firm(self, problem: Problem, placement: Placement) -> Firm:
        """The firmest placement that is found, of those the one that costs least. problem: without spare room."""
        tight = Firm(problem, placement)
        known = spare_before(problem)
        if self.mode is SurgeMode.PLANNED:
            return tight
        if known:
            # The room stands there anyway until it is given back. So what counts is whether a plan from scratch would need it.
            anew = _without_placeholders(problem)
            if self._judged(Firm(anew, self.place(anew))).waiting:
                return self._firmest(problem, self._judged(self._with(problem, known)))
        return self._firmest(problem, self._judged(tight))

    def kept(self, problem: Problem, placement: Placement, scarce: frozenset[str]) -> Firm:
        """The placement with the spare room that nodes hold already, and the nodes that were marked before. Nothing is rehearsed."""
        known = spare_before(problem)
        found = self._with(problem, known) if known else Firm(problem, placement)
        return replace(found, scarce=scarce & {item.node or item.node_claim for item in found.placement.occupied})

    def _firmest(self, problem: Problem, begun: Firm) -> Firm:
        """Adds room for those who wait to the placement that promises most so far, until no cheaper one is in sight."""
        if not begun.waiting:
            return begun
        compiled_walk()  # from now on: what follows are dozens of rehearsals
        begun_with = [begun, *self._larger(problem, begun)]
        best = min(begun_with, key=_cost)
        open_ones = [item for item in begun_with if item.waiting]
        seen: set[tuple[int, frozenset[tuple[ObjectRef, int]]]] = set()
        for _ in range(MOST_ROUNDS):
            open_ones = [item for item in open_ones if best.waiting or item.price < best.price]
            if not open_ones or self.steps > MOST_STEPS:
                break
            now = min(open_ones, key=_promise)
            open_ones.remove(now)
            for spare in _further(now):
                way = (len(now.problem.instance_types), frozenset(spare.items()))
                if way not in seen:
                    seen.add(way)
                    found = self._judged(self._with(now.problem, spare))
                    open_ones += [found] if found.waiting else []
                    best = min(best, found, key=_cost)
        return self._trimmed(best)

    def _trimmed(self, item: Firm) -> Firm:
        """Without the spare chunks that were not needed in the end."""
        for ref in sorted(item.spare) if not item.waiting else ():
            while item.spare[ref]:
                less = self._judged(self._with(item.problem, item.spare - Counter({ref: 1})))
                if less.waiting or less.price > item.price:
                    break
                item = less
        return item

    def _larger(self, problem: Problem, begun: Firm) -> Iterable[Firm]:
        """New nodes of larger types only. Machines on their way may still become any type, so that all are needed then."""
        if begun.spare or not begun.placement.planned or any(item.node is None for item in problem.view.machines):
            return
        if any(item.ref.kind == REQUEST_KIND for item in problem.demands):
            return
        sizes = sorted({item.capacity.get(CPU) for item in problem.instance_types})
        for least in sizes[1:4]:
            types = tuple(item for item in problem.instance_types if item.capacity.get(CPU) >= least)
            limited = replace(problem, instance_types=types)
            placement = self.place(limited)
            if placement.missing <= begun.placement.missing:
                yield self._judged(Firm(limited, placement))

    def _with(self, problem: Problem, spare: Counter[ObjectRef]) -> Firm:
        extra = [spare_demand(item, spare[item.ref]) for item in problem.demands if spare[item.ref]]
        asked = (item for item in problem.demands if item.ref.kind != SPARE_KIND)
        larger = replace(problem, demands=(*asked, *extra))
        return Firm(larger, self.place(larger), spare=spare)

    def _judged(self, item: Firm) -> Firm:
        """With the taint of scarce room where that helps: on the nodes of all who wait, or of one of them."""
        rehearsal = self._rehearsal(item)
        plain = self._rehearsed(item, rehearsal)
        if not plain.waiting:
            return plain
        refs = [wait.demand for wait in plain.waits]
        rooms = dict.fromkeys(rehearsal.room_of(chosen) for chosen in (refs, *([ref] for ref in refs[:_MOST_MARKED])))
        marked = (replace(item, scarce=room) for room in rooms)
        steered = (self._rehearsed(each, self._rehearsal(each)) for each in marked)
        return min((plain, *steered), key=lambda found: found.waiting)

    def _rehearsed(self, item: Firm, rehearsal: Rehearsal) -> Firm:
        """Looks for worse orders only where nobody waits in those that come to mind, and in which somebody waited before."""
        waits = self._relevant(rehearsal, 0) or self._relevant(rehearsal, _PATIENCE)
        self.steps += rehearsal.steps
        for wait in waits:
            order = [binding.demand for binding in wait.bindings]
            if not wait.alone and order not in self.known:
                self.known.append(order)
        return replace(item, waiting=sum(wait.waiting for wait in waits), waits=waits)

    def _rehearsal(self, item: Firm) -> Rehearsal:
        return Rehearsal(item.problem, item.placement, self.names_of(item.placement), item.scarce)

    def _relevant(self, rehearsal: Rehearsal, patience: int) -> tuple[Wait, ...]:
        """No room helps pods that want to be beside others, while those are not there. Requests have attempts of their own: all or nothing."""
        found = rehearsal.waits(together=self.mode is SurgeMode.ALL, known=self.known[-_MOST_KNOWN:], patience=patience)
        return tuple(
            wait
            for wait in found
            if wait.demand.kind != REQUEST_KIND and not (wait.alone and wait.waiting == wait.promised)
        )


def spare_ref(demand: ObjectRef) -> ObjectRef:
    """What spare room for a demand is called."""
    return ObjectRef("headroom.dev", SPARE_KIND, demand.namespace, demand.name)


def spare_demand(demand: Demand, count: int) -> Demand:
    """Spare room for pods of the demand."""
    shape = demand.groups[0].shape
    return Demand(
        ref=spare_ref(demand.ref),
        groups=(ChunkGroup(shape, count),),
        desired=count,
        source=demand.source,
        priority=_LAST,
        explanation=(f"so that no pod of {demand.ref} waits, whatever order pods come in (placement.surge)",),
        shape=shape,
    )


def spare_before(problem: Problem) -> Counter[ObjectRef]:
    """By demand, the spare chunks that nodes are held for already."""
    found: Counter[str] = Counter()
    for machine in problem.view.machines:
        for (demand, _), count in read_holdings(machine.held_for).items():
            found[demand] += count
    there = ((item.ref, found[str(spare_ref(item.ref))]) for item in problem.demands if item.groups)
    return Counter({ref: count for ref, count in there if count})


def _without_placeholders(problem: Problem) -> Problem:
    """As if nodes that hold nothing but chunks were not there."""
    view = problem.view
    held = [item for item in view.machines if item.is_held and item.name not in view.nodes_in_use]
    gone = {id(side) for item in held for side in (item.node, item.node_claim)}
    nodes = tuple(node for node in view.nodes if id(node) not in gone)
    claims = tuple(claim for claim in view.node_claims if id(claim) not in gone)
    return replace(problem, view=replace(view, nodes=nodes, node_claims=claims))


def _cost(item: Firm) -> tuple[float, ...]:
    return item.waiting, item.price, item.spare.total()


def _promise(item: Firm) -> float:
    """The price, and more for the share of pods that wait: where a search goes on first."""
    chunks = sum(group.count for demand in item.problem.demands for group in demand.groups)
    return item.price * (1 + _FOR_ALL * item.waiting / max(1, chunks))


def _further(item: Firm) -> Iterable[Counter[ObjectRef]]:
    """More spare room than it has: for each of the first who wait, and for all of them."""
    waits = sorted(item.waits, key=lambda wait: (-wait.waiting, wait.demand))
    for wait in waits[:_MOST_MARKED]:
        yield item.spare + Counter({wait.demand: 1})
    yield item.spare + Counter({wait.demand: wait.waiting for wait in waits})

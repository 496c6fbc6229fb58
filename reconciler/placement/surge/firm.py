"""Changes a placement until no order that is rehearsed leaves a pod waiting: `placement.surge`.

The first thing that is tried costs nothing: nodes that hold chunks of those who wait get a taint that sends others elsewhere. Spare room,
as chunks that nobody comes for, and larger new nodes are tried too, and what costs least is taken. Spare chunks are demands of their own,
so that the nodes say what they hold them for, and the next pass finds them there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

from reconciler.model.demand import REQUEST_KIND, SPARE_KIND, ChunkGroup, Demand
from reconciler.model.placement import Placement, SurgeMode, Wait, read_holdings
from reconciler.model.quantity import CPU
from reconciler.model.refs import ObjectRef
from reconciler.placement.problem import Problem
from reconciler.placement.scheduler.walk import compiled_walk
from reconciler.placement.surge.free_changes import FreeChanges, Nodes, as_bound
from reconciler.placement.surge.rehearsal import MOST_TRIES, Rehearsal

MOST_PLACEMENTS = 120
"""With more spare room than before."""
MOST_STEPS = 100_000_000
"""Pods times nodes of all rehearsals together: what compiled loops go through in four seconds."""
_FOR_ALL = 3
"""How many times its price a placement is taken to cost more if all pods wait."""
_PATIENCE = (0, 1_000, MOST_TRIES)
"""Changes of an order for each demand, to see whether a placement leaves anybody waiting. In the end as many as for what is told."""
_MOST_KNOWN = 20
"""Orders that every placement is tried with, of those in which somebody had to wait: the latest."""
_MOST_MARKED = 4
"""Demands for each of which the taint on its room alone is tried."""
_FEW_WAIT, _FEW_NODES = 4, 12
"""Pods that wait, up to which free changes are tried; and nodes up to which the taint is tried then on one node, or on all but one."""
_MOST_CHANGES = 300
"""Free changes that are tried with the first placement; with the second half as many, with the third a third, and so on."""
_LAST = -(2**31)
"""The priority of spare room, below that of all pods: it takes no room that something else needs."""


@dataclass(frozen=True, slots=True)
class Firm:
    """A placement with what makes it firm. waits: of pods that wait all the same, the worst order of each demand.

    spare: by demand, how many chunks beside its own. scarce: by name of a node, how many taints of scarce room it gets. rehearsal: what waits are
    from; None where nothing was rehearsed."""

    problem: Problem
    placement: Placement
    spare: Counter[ObjectRef] = field(default_factory=Counter)
    scarce: Mapping[str, int] = field(default_factory=dict)
    waits: tuple[Wait, ...] = ()
    rehearsal: Rehearsal | None = None

    @property
    def price(self) -> float:
        """USD an hour of the new nodes."""
        return self.placement.price

    @property
    def waiting(self) -> int:
        """How many pods wait."""
        return sum(wait.waiting for wait in self.waits)


@dataclass(slots=True)
class Firmer:
    """place: of a problem. names_of: those of planned nodes. marked: nodes and NodeClaims that were marked before, with how many taints. known: orders in which somebody had to wait with one of the placements.
    steps: pods times nodes of all rehearsals so far. changed: placements with which free changes were tried."""

    mode: SurgeMode
    place: Callable[[Problem], Placement]
    names_of: Callable[[Placement], Sequence[str]]
    marked: Mapping[str, int] = field(default_factory=dict)
    known: list[list[ObjectRef]] = field(default_factory=list)
    steps: int = 0
    changed: list[Placement] = field(default_factory=list)

    def firm(self, problem: Problem, placement: Placement) -> Firm:
        """The firmest placement that is found, of those the one that costs least. problem: without spare room."""
        tight = Firm(problem, placement)
        known = spare_before(problem)
        if self.mode is SurgeMode.PLANNED:
            return tight
        # Spare room stands there anyway until it is given back. So what counts is whether a plan from scratch would need it.
        if known and self._judged(self._with(_without_placeholders(problem))).waiting:
            tight = self._with(problem, known)
        return self._firmest(self._judged(tight))

    def kept(self, problem: Problem, placement: Placement) -> Firm:
        """The placement with the spare room that nodes hold already, and the nodes that were marked before. Nothing is rehearsed."""
        known = spare_before(problem)
        found = self._with(problem, known) if known else Firm(problem, placement)
        there = {item.node or item.node_claim for item in found.placement.occupied}
        marked = self._marked_before(problem).items()
        return replace(found, scarce={name: count for name, count in marked if name in there})

    def _marked_before(self, problem: Problem) -> dict[str, int]:
        """A node that has come since was marked by the name of its NodeClaim."""
        machines = problem.view.machines
        found = ((item.name, max(self.marked.get(side.name, 0) for side in item.sides)) for item in machines)
        return {name: count for name, count in found if count}

    def _firmest(self, begun: Firm) -> Firm:
        """Adds room for those who wait to the placement that promises most so far, until no cheaper one is in sight."""
        if not begun.waiting:
            return begun
        compiled_walk()  # from now on: what follows are dozens of rehearsals
        open_ones, best = [begun], begun
        for made in sorted(self._mixes(begun), key=_cost):
            if best.waiting or made.price < best.price:
                open_ones.append(self._judged(made))
                best = min(best, open_ones[-1], key=_cost)
        seen: set[object] = set()
        while self.steps <= MOST_STEPS and len(seen) < MOST_PLACEMENTS:
            open_ones = [item for item in open_ones if item.waiting and (best.waiting or item.price < best.price)]
            if not open_ones:
                break
            now = min(open_ones, key=_promise)
            open_ones.remove(now)
            for spare in _further(now):
                way = (*(each.name for each in now.problem.instance_types), frozenset(spare.items()))
                if way in seen:
                    continue
                seen.add(way)
                made = self._with(now.problem, spare)
                if best.waiting or made.price < best.price:
                    open_ones.append(self._judged(made))
                    best = min(best, open_ones[-1], key=_cost)
        return self._trimmed(best)

    def _trimmed(self, item: Firm) -> Firm:
        """Without spare chunks that were not needed in the end, with another demand's in their place, or of another mix: what costs less."""
        if item.waiting or self.steps > 2 * MOST_STEPS:
            return item
        fewer = [item.spare - Counter({ref: 1}) for ref in sorted(item.spare)]
        others = [demand.ref for demand in item.problem.demands if demand.groups and demand.ref.kind != SPARE_KIND]
        swapped = (spare + Counter({ref: 1}) for spare in fewer for ref in others)
        for made in chain((self._with(item.problem, spare) for spare in chain(fewer, swapped)), self._mixes(item)):
            if made.price < item.price or (made.price == item.price and made.spare.total() < item.spare.total()):
                judged = self._judged(made)
                if not judged.waiting:
                    return self._trimmed(judged)
        return item

    def _mixes(self, item: Firm) -> Iterable[Firm]:
        """New nodes of larger types only, or without one size. Machines on their way may still become any type: all are needed then."""
        problem = item.problem
        is_awaited = any(machine.node is None for machine in problem.view.machines)
        if is_awaited or not item.placement.planned or any(each.ref.kind == REQUEST_KIND for each in problem.demands):
            return
        size = {each.name: each.capacity.get(CPU) for each in problem.instance_types}
        bought = sorted({size[node.instance_types[0]] for node in item.placement.planned})
        larger = [{other for other in size.values() if other >= least} for least in sorted(set(size.values()))[1:4]]
        for sizes in (*larger, *(set(size.values()) - {without} for without in bought)):
            types = tuple(each for each in problem.instance_types if size[each.name] in sizes)
            made = self._with(replace(problem, instance_types=types), item.spare)
            if made.placement.missing <= item.placement.missing:
                yield made

    def _with(self, problem: Problem, spare: Counter[ObjectRef] | None = None) -> Firm:
        spare = spare or Counter()
        extra = [spare_demand(item, spare[item.ref]) for item in problem.demands if spare[item.ref]]
        asked = (item for item in problem.demands if item.ref.kind != SPARE_KIND)
        larger = replace(problem, demands=(*asked, *extra))
        return Firm(larger, self.place(larger), spare)

    def _judged(self, item: Firm) -> Firm:
        """With the taint of scarce room where that helps: on the nodes of all who wait, or of one of them. Then with what else is free."""
        best = plain = self._rehearsed(item)
        refs = [wait.demand for wait in plain.waits]
        if plain.rehearsal is None or not refs:
            return best
        rooms = [plain.rehearsal.room_of(chosen) for chosen in (refs, *([ref] for ref in refs[:_MOST_MARKED]))]
        every = plain.rehearsal.room_of([demand.ref for demand in item.problem.demands])
        if plain.waiting <= _FEW_WAIT and len(every) <= _FEW_NODES:
            rooms += [marked for name in sorted(every) for marked in (frozenset({name}), every - {name})]
        marked = (dict.fromkeys(sorted(room), 1) for room in dict.fromkeys(rooms))
        for scarce in (self._marked_before(item.problem), *marked):
            if best.waiting and scarce:
                best = min(best, self._rehearsed(replace(item, scarce=scarce)), key=lambda found: found.waiting)
        few = 0 < best.waiting <= _FEW_WAIT and not item.spare
        if few and self.mode is SurgeMode.ALL and item.placement not in self.changed:
            self.changed.append(item.placement)
            return self._changed(best) or best
        return best

    def _changed(self, item: Firm) -> Firm | None:
        """With free changes, one after the other. Each is kept unless more pods wait: often none helps before two others are made.

        None if some pods wait in the end."""
        known, rehearsal, names = self.known[-_MOST_KNOWN:], item.rehearsal, self.names_of(item.placement)
        if rehearsal is None:
            return None
        marks = [item.scarce.get(name, 0) for name in names]
        there = sorted(rehearsal.room_of([demand.ref for demand in item.problem.demands]).difference(names))
        nodes = Nodes(
            tuple(zip(item.placement.planned, marks, strict=True)),
            tuple((name, item.scarce.get(name, 0)) for name in there),
        )
        changes, least = FreeChanges(item.problem), max(1, rehearsal.strain(known))
        for _ in range(_MOST_CHANGES // len(self.changed)):
            changed = changes.next(nodes)
            if self.steps > MOST_STEPS:
                break
            if changed == nodes:
                continue
            made, names = self._with_nodes(item, changed)
            rehearsal = Rehearsal(made.problem, made.placement, names, made.scarce)
            strain = rehearsal.strain(known)
            self.steps += rehearsal.steps
            if strain > least:
                continue
            if not strain:
                found = self._settled(item, made, changed, rehearsal)
                if found is None:
                    continue
                if not found.waiting:
                    return found
                known = self.known[-_MOST_KNOWN:]
                strain = max(1, rehearsal.strain(known))
            nodes, least = changed, strain
        return None

    def _with_nodes(self, item: Firm, nodes: Nodes) -> tuple[Firm, Sequence[str]]:
        """And the names of its planned nodes."""
        placement = replace(item.placement, planned=tuple(node for node, _ in nodes.planned))
        names = self.names_of(placement)
        marks = [*zip(names, (count for _, count in nodes.planned), strict=True), *nodes.there]
        return replace(item, placement=placement, scarce={name: count for name, count in marks if count}), names

    def _settled(self, before: Firm, item: Firm, nodes: Nodes, rehearsal: Rehearsal) -> Firm | None:
        """Rehearsed in full, with chunks where they have room. None if the checker finds fault with that."""
        from reconciler.placement.checker.violations import violations

        if violations(item.problem, item.placement):
            names, order = self.names_of(item.placement), rehearsal.orders()[0]
            placement = as_bound(item.problem, before.placement, item.placement, names, rehearsal.nodes, order)
            marks = (count for _, count in nodes.planned)
            nodes = replace(nodes, planned=tuple(zip(placement.planned, marks, strict=True)))
            item, _ = self._with_nodes(replace(item, placement=placement), nodes)
        return None if violations(item.problem, item.placement) else self._rehearsed(item)

    def _rehearsed(self, item: Firm) -> Firm:
        """Looks for worse orders only where nobody waits in those that come to mind, and in which somebody waited before.

        No room helps pods that want to be beside others, while those are not there. Requests have attempts of their own: all or nothing."""
        rehearsal = Rehearsal(item.problem, item.placement, self.names_of(item.placement), item.scarce)
        waits: tuple[Wait, ...] = ()
        together, known = self.mode is SurgeMode.ALL, self.known[-_MOST_KNOWN:]
        for patience in _PATIENCE if together else _PATIENCE[:1]:
            waits = tuple(
                wait
                for wait in rehearsal.waits(together=together, known=known, patience=patience)
                if wait.demand.kind != REQUEST_KIND and not (wait.alone and wait.waiting == wait.promised)
            )
            if waits:
                break
        self.steps += rehearsal.steps
        for wait in waits:
            order = [binding.demand for binding in wait.bindings]
            if not wait.alone and order not in self.known:
                self.known.append(order)
        return replace(item, waits=waits, rehearsal=rehearsal)


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

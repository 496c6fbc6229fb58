"""Full buffers and the pods that come: which may have to wait all the same, and what is changed so that none does (`placement.surge`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import ClassVar

from reconciler.model import codes
from reconciler.model.demand import REQUEST_KIND, SPARE_KIND
from reconciler.model.placement import Placement, SurgeMode, Wait
from reconciler.model.refs import abridged
from reconciler.placement.cache import Cache
from reconciler.placement.place import place
from reconciler.placement.problem import Problem
from reconciler.placement.surge.firm import Firm, Firmer
from reconciler.placement.surge.rehearsal import Rehearsal
from reconciler.plan.bins import creations
from reconciler.stages.state import PassState, Rules
from reconciler.timetable.agenda import Trigger

_NOTHING: tuple[tuple[Wait, ...], tuple[str, ...]] = ((), ())
HURRIED = frozenset({Trigger.TAKEN, Trigger.CAME, Trigger.CHANGE})
"""Triggers of passes that answer what pods do."""


@dataclass(frozen=True, slots=True)
class MakeFirm:
    """cache: the firm placement of the last rehearsal, so that an unchanged cluster costs nothing.

    A pass that refills what was just taken keeps the spare room and the marks; the next one at leisure looks again."""

    phase: ClassVar[str] = "placement"

    rules: Rules
    cache: Cache = field(default_factory=Cache)

    def run(self, state: PassState) -> PassState:
        mode = self.rules.placement.surge
        if mode is SurgeMode.PLANNED or state.blocked:
            return state
        if mode is SurgeMode.ALONE and not any(
            item.may_fail_alone for item in state.demands if item.ref.kind != REQUEST_KIND
        ):
            return state
        problem, tight = state.problem, state.placement
        up = Counter({node.name: node.scarce_taints for node in problem.view.nodes})
        marked = up | Counter(self.cache.latest("firm", Firm(problem, tight)).scarce)
        firmer = Firmer(mode, place, partial(_names, problem), marked)
        if state.trigger in HURRIED:
            found = firmer.kept(problem, tight)
        else:
            found = self.cache.once("firm", _seen(problem, tight), lambda: firmer.firm(problem, tight))
        # What was found before stands for equal facts; all else that a demand says is as it is now.
        spare = [item for item in found.problem.demands if item.ref.kind == SPARE_KIND]
        return replace(
            state,
            demands=(*state.demands, *spare),
            placement=tight if found.placement == tight else found.placement,
            scarce=found.scarce,
            rehearsal=found.rehearsal,
            notes=(*state.notes, *_notes(mode, found, tight)),
        )


@dataclass(frozen=True, slots=True)
class Rehearse:
    """cache: the waits of the last rehearsal, so that an unchanged cluster costs nothing.

    A pass that refills what was just taken does not wait for a rehearsal; the next one at leisure has it."""

    phase: ClassVar[str] = "placement"

    rules: Rules
    cache: Cache = field(default_factory=Cache)

    def run(self, state: PassState) -> PassState:
        rehearsed = [demand for demand in state.demands if demand.is_rehearsed]
        if len(rehearsed) <= 1 and not any(demand.may_fail_alone for demand in rehearsed):
            return state
        sources = {demand.ref: demand.source for demand in state.demands}
        known, doubts = self.cache.latest("waits", _NOTHING)
        if state.trigger not in HURRIED:
            inputs = (*_seen(state.problem, state.placement), state.scarce)
            known, doubts = self.cache.once("waits", inputs, lambda: self._rehearsed(state))
        waits = tuple(wait for wait in known if wait.demand in sources)
        findings = [
            codes.PODS_MAY_WAIT.finding(
                wait.words,
                sources.get(wait.demand),
                wait.demand,
                hint=f"headroom explain {wait.demand} --surge prints the order",
            )
            for wait in waits
        ]
        return replace(state, waits=waits, findings=(*state.findings, *findings), notes=(*state.notes, *doubts))

    def _rehearsed(self, state: PassState) -> tuple[tuple[Wait, ...], tuple[str, ...]]:
        """Who may wait, and what the checker has to say against that."""
        problem, placement, rehearsal = state.problem, state.placement, _rehearsal(state)
        waits = rehearsal.waits()
        if not self.rules.placement.check:
            return waits, ()
        from reconciler.placement.checker.pod_orders import rehearsal_violations

        found = rehearsal_violations(problem, placement, rehearsal.nodes, rehearsal.running, waits, rehearsal.orders())
        words = abridged(dict.fromkeys(found), 3)
        return waits, (f"the checker does not agree with the rehearsal of pods that come: {words}",) if words else ()


def _rehearsal(state: PassState) -> Rehearsal:
    """That of the firm placement, where no stage has changed it since."""
    made, placement = state.rehearsal, state.placement
    if made is not None and made.placement == placement:
        return made
    return Rehearsal(state.problem, placement, _names(state.problem, placement), state.scarce)


def _names(problem: Problem, placement: Placement) -> list[str]:
    return [item.name for item in creations(placement.planned, (claim.name for claim in problem.view.node_claims))]


def _seen(problem: Problem, placement: Placement) -> tuple[object, ...]:
    view = problem.view
    of_view = (view.nodes, view.node_claims, view.pods, view.daemon_sets, view.namespaces, view.storage)
    of_offers = (problem.node_pools, problem.instance_types, problem.overlays)
    return (*of_view, *of_offers, placement, problem.demands, problem.options)


def _notes(mode: SurgeMode, found: Firm, tight: Placement) -> Iterator[str]:
    """What firmness costs, as long as it changes anything."""
    before = tight.price
    spare = abridged((f"{count:,} for {ref}" for ref, count in sorted(found.spare.items())), 3)
    if found.price > before:
        share = f" ({(found.price - before) / before:.1%})" if before else ""
        yield f"placement.surge {mode}: new nodes cost ${found.price - before:.4f}/h{share} more, so that fewer pods may have to wait"
    if spare:
        yield f"placement.surge {mode}: spare chunks are kept so that nobody waits: {spare}"

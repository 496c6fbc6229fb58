"""Whether placed chunks can be scheduled one by one, each where topology spread allows it at that moment.

All nodes exist from the start, as they will for kube-scheduler. A domain counts if a node could be made in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from reconciler.model.nodes import HOSTNAME_LABEL
from reconciler.placement.constraints.constraint_set import ConstraintSet, allowed_in
from reconciler.placement.constraints.domain_counters import Domain
from reconciler.placement.constraints.topology_spread import SpreadRule
from reconciler.placement.engine.domains.combinations import Combination, combinations_of
from reconciler.placement.engine.domains.shares import Shares
from reconciler.placement.engine.journal import JournalEntry
from reconciler.placement.engine.state import State


@dataclass(frozen=True, slots=True)
class _Arrival:
    """What interchangeable chunks have in common. counted: the counters and domains in which one counts. under: its spread
    rules, each with the domain that the chunk goes to."""

    counted: tuple[tuple[int, Domain], ...]
    under: tuple[tuple[SpreadRule, Domain | None], ...]


def can_come_one_by_one(
    state: State,
    entries: Sequence[JournalEntry],
    constraint_sets: Mapping[int, ConstraintSet],
    closed: Mapping[int, Mapping[Combination, int]],
) -> bool:
    """Only for few chunks, since the work grows with the number of subsets of them.

    entries: the journal's, for the chunks in question. constraint_sets: rules by batch number. closed: by batch number, where no
    node can be made for it (see `closed_to`).
    """
    arrivals: list[_Arrival] = []
    domains: dict[SpreadRule, set[Domain]] = {}
    for entry in entries:
        constraints = constraint_sets[entry.batch.number]
        spread = [rule for rule in constraints.spread if rule.key != HOSTNAME_LABEL]
        under = tuple((rule, state.decided(entry.bin, rule.key)) for rule in spread)
        arrivals += [_Arrival(entry.counted_in.labels, under)] * entry.count
        if spread and not domains.keys() >= set(spread):
            combinations = combinations_of(state, entry.batch, constraints.keys)
            shares = Shares(state, spread, combinations, opening=entry.batch.opens_nodes)
            domains |= shares.domains_of(closed[entry.batch.number])
    return _Order(state, arrivals, domains).exists()


class _Order:
    def __init__(self, state: State, arrivals: Sequence[_Arrival], domains: Mapping[SpreadRule, set[Domain]]) -> None:
        self._arrivals = list(dict.fromkeys(arrivals))
        self._wanted = tuple(arrivals.count(arrival) for arrival in self._arrivals)
        self._domains = domains
        self._before: dict[tuple[int, Domain], int] = {}
        for rule, seen in domains.items():
            for domain in seen:
                self._before[rule.counter, domain] = state.topology.counters[rule.counter].count(domain)
        for arrival in arrivals:
            for position in arrival.counted:
                if position in self._before:
                    self._before[position] -= 1
        self._seen: set[tuple[int, ...]] = set()

    def exists(self) -> bool:
        return self._follows((0,) * len(self._arrivals))

    def _follows(self, here: tuple[int, ...]) -> bool:
        """Whether the remaining chunks can come once this many of each kind have."""
        if here == self._wanted:
            return True
        self._seen.add(here)
        counts = dict(self._before)
        for arrival, count in zip(self._arrivals, here, strict=True):
            for position in arrival.counted:
                if position in counts:
                    counts[position] += count
        for number, arrival in enumerate(self._arrivals):
            following = (*here[:number], here[number] + 1, *here[number + 1 :])
            fresh = here[number] < self._wanted[number] and following not in self._seen
            if fresh and self._may_come(arrival, counts) and self._follows(following):
                return True
        return False

    def _may_come(self, arrival: _Arrival, counts: Mapping[tuple[int, Domain], int]) -> bool:
        for rule, domain in arrival.under:
            seen = self._domains[rule]
            if domain not in seen:
                return False
            least = rule.least((counts[rule.counter, item] for item in seen), len(seen))
            if not allowed_in(rule, counts[rule.counter, domain], rule.bound(least)):
                return False
        return True

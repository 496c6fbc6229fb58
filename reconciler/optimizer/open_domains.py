"""Topology domains that chunks may leave: where prices differ by zone, the fast placement's choice is not the last word.

Chunks that count under spread constraints without having one themselves may be bound after all that have one. So they may be
anywhere, except for as many as those needed, when they came, in domains that were too empty without them. Those that have one stay:
where some of each kind count for the other, one domain has no order in which all of them could come.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np

from reconciler.model.nodes import HOSTNAME_LABEL
from reconciler.placement.batches import Batch
from reconciler.placement.constraints.topology_counters import Domain
from reconciler.placement.constraints.topology_spread import SpreadRule
from reconciler.placement.engine.journal import JournalEntry
from reconciler.placement.engine.state import State
from reconciler.placement.label_table import distinct
from reconciler.placement.offers.pool_offers import PoolOffers


class OpenDomains:
    """values: by label on which some chunks may be moved, where planned nodes are now: there, no constraint sees a new domain."""

    def __init__(self, state: State) -> None:
        self._state = state
        batches = {entry.batch.number: entry.batch for entry in state.entries()}
        spread = {rule: None for batch in batches.values() for rule in state.constraints(batch).spread}
        self.values: dict[str, tuple[str, ...]] = {}
        for key in sorted({rule.key for rule in spread} - {HOSTNAME_LABEL}):
            if all(differ_in_price(offers, key) for offers in state.offers):
                decided = {state.planned.decided(index, key) for index in range(state.planned.count)}
                self.values[key] = tuple(sorted(value for value in decided if value is not None))
        self._closed = {rule.counter for rule in spread if rule.min_domains > 1}
        self._missing: dict[tuple[int, Domain], int] = {}
        """By counter and domain, how many chunks must stay there for those to come that are under constraints."""
        self._let_come()

    def keys(self, entry: JournalEntry, domains: Mapping[str, str]) -> tuple[str, ...]:
        """Labels of which these chunks may have other values than where they are. Ask once for each entry.

        domains: where they are, by label. The first chunks that are asked for stay where a constraint needs some.
        """
        return tuple(key for key in self.values if key in domains and self._is_open(entry, key, domains[key]))

    def of_node(self, index: int) -> tuple[tuple[str, str], ...]:
        """Where a planned node stands, by the labels that may be open; () where it does not say."""
        decided = [(key, self._state.planned.decided(index, key)) for key in self.values]
        return tuple((key, value) for key, value in decided if value is not None)

    def _is_open(self, entry: JournalEntry, key: str, domain: str) -> bool:
        batch, counters = entry.batch, self._state.topology.counters
        if self._is_under(batch, key):
            return False
        counted = [
            number for number in self._state.topology.counts_of(batch.needs) if counters[number].counted.key == key
        ]
        if any(counters[number].counted.inclusion is None or number in self._closed for number in counted):
            return False  # some affinity or anti-affinity counts them
        needed = [number for number in counted if self._missing.get((number, domain), 0) > 0]
        for number in needed:
            self._missing[number, domain] -= entry.count
        return not needed

    def _is_under(self, batch: Batch, key: str) -> bool:
        return any(rule.key == key for rule in self._state.constraints(batch).rules)

    def _let_come(self) -> None:
        """Those that stay, once more in their order, without the others: what they lack in other domains is missing there."""
        state, entries = self._state, self._state.entries()
        counts: Counter[tuple[int, Domain]] = Counter()
        for number, counter in enumerate(state.topology.counters):
            if counter.counted.key in self.values:
                counts |= Counter({(number, domain): count for domain, count in counter.counts.items()})
        for entry in entries:
            for counted_in in entry.counted_in.labels:
                counts[counted_in] -= entry.count
        for entry in entries:
            for rule in state.constraints(entry.batch).spread:
                domain = state.decided(entry.bin, rule.key) if rule.key in self.values else None
                if domain is not None:
                    more = entry.count if rule.counts_itself else 0
                    self._note_missing(rule, counts, rule.least_beside(counts[rule.counter, domain] + more))
            for number, domain in entry.counted_in.labels:
                key = state.topology.counters[number].counted.key
                if entry.bin < state.base or self._is_under(entry.batch, key):
                    counts[number, domain] += entry.count

    def _note_missing(self, rule: SpreadRule, counts: Mapping[tuple[int, Domain], int], least: int) -> None:
        inclusion = self._state.topology.counters[rule.counter].counted.inclusion
        seen = self._state.topology.existing_domains(rule) | self._state.planned_domains(rule.key, inclusion)
        for place in ((rule.counter, domain) for domain in seen):
            self._missing[place] = max(self._missing.get(place, 0), least - counts[place])


def differ_in_price(offers: PoolOffers, key: str) -> bool:
    """Whether a label that every row decides is all that two prices of a type may differ by. Where all cost the same, to move
    chunks between domains saves little and there are several times as many columns."""
    table = offers.offerings.table
    if key not in table.keys:
        return False
    codes, cells = table.column(key)
    rows = np.flatnonzero(offers.rows & offers.priced)
    if not all(isinstance(cells[code], str) for code in distinct(codes[rows])):
        return False
    cheapest: dict[tuple[int, int], int] = {}
    for row in rows.tolist():
        place = (int(offers.offerings.types_of[row]), int(codes[row]))
        cheapest[place] = min(cheapest.get(place, int(offers.prices[row])), int(offers.prices[row]))
    return len({(number, price) for (number, _), price in cheapest.items()}) > len({number for number, _ in cheapest})

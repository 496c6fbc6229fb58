"""Topology domains that chunks may leave: where prices differ by zone, the fast placement's choice is not the last word.

Chunks that count under a spread constraint without having it themselves may be bound before or after those that have it. So
they may be anywhere, except for as many as the constraint needs in domains that are too empty without them.
"""

from __future__ import annotations

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
            if all(_differ_in_price(offers, key) for offers in state.offers):
                decided = {state.planned.decided(index, key) for index in range(state.planned.count)}
                self.values[key] = tuple(sorted(value for value in decided if value is not None))
        self._closed = {rule.counter for rule in spread if rule.min_domains > 1}
        self._missing: dict[int, dict[Domain, int]] = {}
        """By counter and domain, how many chunks must stay there for the constraint to hold, beside those that have it."""
        for rule in spread:
            if rule.key in self.values:
                before = self._missing.setdefault(rule.counter, {})
                for domain, missing in self._missing_under(rule).items():
                    before[domain] = max(missing, before.get(domain, 0))

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
        topology, batch = self._state.topology, entry.batch
        for rule in self._state.constraints(batch).rules:
            if rule.key == key and (
                not isinstance(rule, SpreadRule) or rule.counts_itself or rule.counter in self._closed
            ):
                return False
        counters = [
            number for number in topology.counts_of(batch.needs) if topology.counters[number].counted.key == key
        ]
        if any(topology.counters[number].counted.inclusion is None or number in self._closed for number in counters):
            return False  # some affinity or anti-affinity counts them
        needed = [number for number in counters if self._missing.get(number, {}).get(domain, 0) > 0]
        for number in needed:
            self._missing[number][domain] -= entry.count
        return not needed

    def _missing_under(self, rule: SpreadRule) -> dict[Domain, int]:
        """By domain that there is: what those that have the constraint lack of being within maxSkew by themselves."""
        state = self._state
        counter = state.topology.counters[rule.counter]
        seen = state.topology.existing_domains(rule) | state.planned_domains(rule.key, counter.counted.inclusion)
        counts: dict[Domain, int] = {domain: counter.count(domain) for domain in seen}
        for entry in state.entries():
            if entry.bin >= state.base and not self._has_like(entry.batch, rule):
                for number, domain in entry.counted_in.labels:
                    if number == rule.counter:
                        counts[domain] -= entry.count
        least = rule.least_beside(max(counts.values(), default=0))
        return {domain: least - count for domain, count in counts.items() if count < least}

    def _has_like(self, batch: Batch, rule: SpreadRule) -> bool:
        """Whether its shape brings a constraint that counts the same, for whatever nodes."""
        counters = self._state.topology.counters
        counted = counters[rule.counter].counted.anywhere
        return any(counters[own.counter].counted.anywhere == counted for own in self._state.constraints(batch).spread)


def _differ_in_price(offers: PoolOffers, key: str) -> bool:
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

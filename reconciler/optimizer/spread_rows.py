"""What spread constraints ask of topology domains, as rows of the bound's linear programs: where prices differ, or nodes are few.

In no domain count more of those that are under a constraint than maxSkew above the fewest that count in any domain. Chunks are told apart
by domain for that. All constraints count in sum: nodes of some hundred kinds of chunks would take too long to price.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from reconciler.optimizer.solver import Floats
from reconciler.placement.batches import Batch
from reconciler.placement.constraints.domain_counters import Domain
from reconciler.placement.constraints.topology_spread import SpreadRule
from reconciler.placement.engine.arrays import MINIMUM
from reconciler.placement.engine.journal import JournalEntry
from reconciler.placement.engine.state import State
from reconciler.placement.label_table import Mask, distinct
from reconciler.placement.offers.pool_offers import PoolOffers

FEW_NODES = 20
"""Up to so many, parts of nodes count more than those of chunks."""


@dataclass(frozen=True, slots=True)
class SpreadRows:
    """rules: constraints of chunks that count under them themselves; domains: those that all of them see.

    counted: by domain, what counts in it over all rules, without the chunks that the bound is about.
    """

    key: str = ""
    rules: tuple[SpreadRule, ...] = ()
    domains: tuple[Domain, ...] = ()
    counted: tuple[int, ...] = ()

    @property
    def least(self) -> list[float]:
        """By row, at least so much. Rows: what counts in each domain, then those under the constraints there."""
        return [
            *(-float(count) for count in self.counted),
            *[-float(sum(rule.max_skew for rule in self.rules))] * len(self.domains),
        ]

    @property
    def fewest(self) -> list[float]:
        """By row, what one more of the fewest that count anywhere takes from it."""
        return [*[-1.0] * len(self.domains), *[1.0] * len(self.domains)]

    def weights(self, state: State, batch: Batch) -> tuple[int, int]:
        """Under how many constraints its chunks count, and how many of these it has."""
        counters, own = state.topology.counts_of(batch.needs), state.constraints(batch).spread
        return sum(rule.counter in counters for rule in self.rules), sum(rule in own for rule in self.rules)

    def row(self, weights: tuple[int, int], place: int) -> Floats:
        """What a chunk in a domain adds to each row. place: number of the domain; -1 where that may be any, or none of them."""
        here = np.arange(len(self.domains)) == place
        return np.concatenate([weights[0] * (here | (place < 0)), -weights[1] * here.astype(np.float64)])

    def masks(self, offers: PoolOffers) -> list[Mask]:
        """Rows of a catalogue by domain, and last those of other domains."""
        codes, cells = offers.offerings.table.column(self.key)
        found = [np.array([cell == domain for cell in cells], dtype=np.bool_)[codes] for domain in self.domains]
        return [*found, ~np.any(found, axis=0)]


def spread_rows(state: State, placed: Mapping[Batch, int], entries: Sequence[JournalEntry]) -> SpreadRows:
    """For the first label on which there are any. placed: chunks that the bound is about; entries: theirs."""
    if any(batch.part == MINIMUM for batch in placed):
        return SpreadRows()
    own = {rule: None for batch in placed for rule in state.constraints(batch).spread if _is_told(rule)}
    for key in sorted({rule.key for rule in own}):
        if not all(_is_worth_it(state, item, key) for item in state.offers):
            continue
        rules = tuple(rule for rule in own if rule.key == key)
        domains = sorted(set[Domain].intersection(*(_domains(state, rule) for rule in rules)), key=str)
        counted = []
        for domain in domains:
            places = [(rule.counter, domain) for rule in rules]
            here = sum(state.topology.counters[counter].count(domain) for counter, _ in places)
            counted.append(
                here - sum(entry.count * places.count(place) for entry in entries for place in entry.counted_in.labels)
            )
        return SpreadRows(key, rules, tuple(domains), tuple(counted))
    return SpreadRows()


def _is_worth_it(state: State, offers: PoolOffers, key: str) -> bool:
    """Chunks are up to five item types each, which takes up to five times as long."""
    few = state.planned.count <= FEW_NODES and key in offers.offerings.table.keys
    return few or _differ_in_price(offers, key)


def _is_told(rule: SpreadRule) -> bool:
    return rule.counts_itself and rule.min_domains <= 1


def _domains(state: State, rule: SpreadRule) -> set[Domain]:
    inclusion = state.topology.counters[rule.counter].counted.inclusion
    return state.topology.existing_domains(rule) | state.planned_domains(rule.key, inclusion)


def _differ_in_price(offers: PoolOffers, key: str) -> bool:
    """Whether a label that every row decides is all that two prices of a type may differ by."""
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

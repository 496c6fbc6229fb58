"""Combinations of topology domains: one value for each label that rules make decisive for where a chunk goes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

from reconciler.placement.batches import Batch
from reconciler.placement.engine.state import State
from reconciler.placement.label_table import distinct, settled
from reconciler.placement.offers.pool_offers import NoRows
from reconciler.placement.requirements import ABSENT, ANYWHERE, Requirements, Values, one_of

MOST_COMBINATIONS = 512


@dataclass(frozen=True, slots=True)
class Combination:
    """One value for each deciding label (None: without the label). where: the same as requirements."""

    values: tuple[tuple[str, str | None], ...]
    makeable: bool
    where: Requirements = field(default=ANYWHERE, compare=False)
    by_key: Mapping[str, str | None] = field(default_factory=dict, compare=False)

    def value(self, key: str) -> str | None:
        return self.by_key[key]


def combination(values: tuple[tuple[str, str | None], ...], *, makeable: bool) -> Combination:
    where = Requirements.joined((key, ABSENT if value is None else one_of(value)) for key, value in values)
    return Combination(values, makeable, where, dict(values))


def combinations_of(state: State, batch: Batch, keys: Sequence[str]) -> list[Combination]:
    """Every combination of values that some bin has or a new node could have. Computed once for all shapes that ask for the
    same nodes."""
    needs = batch.needs
    asked = (id(needs.terms), id(needs.relaxations), tuple(keys), batch.opens_nodes)
    known = state.combinations.get(asked)
    if known is None:
        known = state.combinations[asked] = (needs, _combinations(state, batch, keys))
    return known[1]


def _combinations(state: State, batch: Batch, keys: Sequence[str]) -> list[Combination]:
    made = _makeable(state, batch, keys) if batch.opens_nodes else {}
    known = {key: _existing_values(state, batch, key) | made.get(key, set()) for key in keys}
    values = [sorted(known[key], key=lambda value: (value is None, value or "")) for key in keys]
    found = [
        combination(
            tuple(zip(keys, chosen, strict=True)),
            makeable=all(chosen[n] in made.get(key, ()) for n, key in enumerate(keys)),
        )
        for chosen in product(*values)
    ]
    if len(found) > MOST_COMBINATIONS:
        state.topology.assumptions.add(
            f"{batch.demand}: only {MOST_COMBINATIONS} of {len(found)} combinations of topology domains are tried"
        )
    return found[:MOST_COMBINATIONS]


def _existing_values(state: State, batch: Batch, key: str) -> set[str | None]:
    mask = state.bins.usable & state.bins.node_affinity.meeting(batch.needs.terms)
    codes, cells = state.bins.table.column(key)
    return set(settled(cells[code] for code in distinct(codes[mask])))


def _makeable(state: State, batch: Batch, keys: Sequence[str]) -> dict[str, set[str | None]]:
    made: dict[str, set[str | None]] = {key: set() for key in keys}
    for offers in state.offers:
        for relaxation in batch.needs.relaxations:
            rows = offers.rows_for(relaxation.wanted)
            if isinstance(rows, NoRows) or not rows.any():
                continue
            own = offers.own_labels(relaxation.wanted)
            for key in keys:
                if key in offers.offerings.table.keys:
                    codes, cells = offers.offerings.table.column(key)
                    made[key] |= settled(cells[code] for code in distinct(codes[rows]))
                else:
                    values = own.get(key)
                    made[key] |= _own_values(values)
    return made


def _own_values(values: Values | None) -> set[str | None]:
    if values is None:
        return {None}
    if values.complement:
        return {values.example()} | ({None} if values.absent else set())
    return set(values.names) | ({None} if values.absent else set())

"""The bins of the relaxation: what new nodes can be bought as, and the free room of existing ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from reconciler.model.nodes import HOSTNAME_LABEL
from reconciler.placement.amounts import PLENTY, Amounts, times
from reconciler.placement.batches import Batch
from reconciler.placement.engine.arrays import MINIMUM, RUNNING
from reconciler.placement.engine.state import State
from reconciler.placement.label_table import Mask

_MOST_EXISTING = 40
"""Different existing bins up to which each is looked at by itself; of more the free room is added up."""
_MOST_FITS = 1_000_000
"""Item types times existing bins up to which it is worked out at all which of them are alike."""

_ByKey = dict[str, frozenset[str]]


@dataclass(frozen=True, slots=True)
class RelaxedBin:
    """A new node of one type and price, an existing one, or the free room of all existing ones together.

    room: by resource, for all chunks but those of `KeepMinimum`; lean: by resource, for all but pods, without what runs; price:
    billionths of a USD an hour; fits: by item type, how many alone; most: how many such bins there are; pool: of a new node,
    else -1; single: rules on the hostname hold on it; domains: by label of an affinity group, where it may be (anywhere
    without an entry).
    """

    room: Amounts
    lean: Amounts
    price: int
    fits: Amounts
    most: int
    pool: int
    single: bool
    domains: Mapping[str, frozenset[str]]


def new_bins(
    state: State, rows: Sequence[Mapping[int, Mask]], requests: Amounts, pools: Sequence[int], keys: Sequence[str]
) -> list[RelaxedBin]:
    """rows: by item type and NodePool, a mask of what a new node may be bought as; requests: item types × resources; pools: those
    to look at; keys: labels of affinity groups."""
    found: list[RelaxedBin] = []
    for pool in pools:
        numbers: dict[int, int] = {}  # of masks by identity, since many item types share one
        masks = [np.zeros(len(state.offers[pool].rows), dtype=np.bool_)]
        owner = np.zeros(len(rows), dtype=np.int64)
        for item, by_pool in enumerate(rows):
            if pool in by_pool:
                mask = by_pool[pool]
                if id(mask) not in numbers:
                    numbers[id(mask)] = len(masks)
                    masks.append(mask)
                owner[item] = numbers[id(mask)]
        found += _bins_of_pool(state, pool, np.array(masks), owner, requests, keys)
    return found


def _bins_of_pool(  # noqa: PLR0917 - arrays
    state: State, pool: int, masks: Mask, owner: Amounts, requests: Amounts, keys: Sequence[str]
) -> list[RelaxedBin]:
    """Each type once for all places where it costs the same, for all that may be in any of them; without those that are no better
    than another in any respect. masks: × rows; owner: by item type, its mask."""
    offers = state.offers[pool]
    table = offers.offerings.table
    together: dict[tuple[int, int], list[int]] = {}
    for row in np.flatnonzero(masks.any(axis=0)).tolist():
        together.setdefault((int(offers.prices[row]), int(offers.offerings.types_of[row])), []).append(row)
    order = sorted(together)
    places = {key: table.column(key) for key in keys if key in table.keys}
    marks = []
    for price_and_type in order:
        rows = together[price_and_type]
        seen = [np.isin(np.arange(len(cells)), codes[rows]) for codes, cells in places.values()]
        marks.append(np.concatenate([masks[:, rows].any(axis=1), *seen]))
    rooms = offers.room[[kind for _, kind in order]]
    bins = []
    for number in _undominated(rooms, np.array(marks)):
        price, kind = order[number]
        fits = np.where(marks[number][: len(masks)][owner], _fits(rooms[number], requests), 0)
        domains: _ByKey = {}
        for key, (codes, cells) in places.items():
            named = [cells[code] for code in codes[together[price, kind]].tolist()]
            if all(isinstance(cell, str) for cell in named):
                domains[key] = frozenset(map(str, named))
        if fits.any():
            room = rooms[number]
            bins.append(RelaxedBin(room, room, price, fits, PLENTY, pool, single=True, domains=domains))
    return bins


def _undominated(rooms: Amounts, marks: Mask) -> list[int]:
    """rooms: bins × resources, the cheapest first; marks: bins × what else a bin must have to be as good as another."""
    keep: list[int] = []
    for number in range(len(rooms)):
        better = (rooms[keep] >= rooms[number]).all(axis=1) & (marks[keep] >= marks[number]).all(axis=1)
        if not better.any():
            keep.append(number)
    return keep


def _fits(room: Amounts, requests: Amounts) -> Amounts:
    parts = np.where(requests > 0, np.maximum(room, 0) // np.maximum(requests, 1), PLENTY)
    return np.asarray(parts.min(axis=1, initial=PLENTY), dtype=np.int64)


def existing_bins(state: State, batches: Sequence[Batch], keys: Sequence[str]) -> list[RelaxedBin]:
    """Free room as it was before these chunks came. batches: one of each item type; keys: labels of affinity groups."""
    if not state.base:
        return []
    running = state.resources.running.copy()
    for entry in state.entries():
        if entry.bin < state.base and entry.batch.part == RUNNING and not entry.batch.waits:
            running[entry.bin] -= entry.batch.needs.request * entry.count
    lean = np.maximum(state.bins.room, 0)
    room = np.maximum(state.bins.room - running, 0)
    compares = len(batches) * state.base <= _MOST_FITS
    known = np.zeros((len(batches), state.base if compares else 0), dtype=np.int64)
    total = np.zeros(len(batches), dtype=np.int64)
    is_useful = np.zeros(state.base, dtype=np.bool_)
    for number, batch in enumerate(batches):
        needs = batch.needs
        tolerated = state.bins.taint_toleration.tolerating(needs.shape.tolerations)
        able = state.bins.usable & state.bins.node_affinity.meeting(needs.terms) & tolerated
        if able.any():
            fits = np.where(able, times(lean if batch.part == MINIMUM else room, needs.request), 0)
            total[number] = min(float(fits.astype(np.float64).sum()), PLENTY / 2)
            is_useful |= fits > 0
            if compares:
                known[number] = fits
    useful = np.flatnonzero(is_useful)
    bins = _different(state, useful, room, lean, known, keys) if compares else []
    if compares and len(bins) <= _MOST_EXISTING:
        return bins
    rooms = room[useful].sum(axis=0), lean[useful].sum(axis=0)
    return [RelaxedBin(*rooms, 0, total, 1, -1, single=False, domains={})]


def _different(  # noqa: PLR0917 - arrays by bin
    state: State, useful: Amounts, room: Amounts, lean: Amounts, fits: Amounts, keys: Sequence[str]
) -> list[RelaxedBin]:
    """Existing bins that are alike as one. fits: item types × bins."""
    found: dict[tuple[object, ...], RelaxedBin] = {}
    for number in useful.tolist():
        labels = state.bins.origins[number].labels
        single = HOSTNAME_LABEL in labels
        domains: _ByKey = {key: frozenset({value}) for key in keys if isinstance(value := labels.get(key), str)}
        alike = (
            *(room[number].tobytes(), lean[number].tobytes(), fits[:, number].tobytes()),
            *(single, tuple(sorted(domains.items()))),
        )
        most = found[alike].most + 1 if alike in found else 1
        found[alike] = RelaxedBin(
            room[number], lean[number], 0, fits[:, number], most, -1, single=single, domains=domains
        )
    return list(found.values())

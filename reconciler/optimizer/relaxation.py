"""Chunks and nodes as the least possible price is reckoned with: whatever the rules leave open is open here. Used by least.

The fast placement chose a zone for those that want to be together, who shares a node with whom, which of equal NodePools,
and which chunks take the free room of nodes that are there. None of that is taken over, nor what a chunk's rules say of zones
and of company: whatever is left out can only make the least price lower, so it stays true.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from reconciler.model.nodes import HOSTNAME_LABEL
from reconciler.placement.amounts import PLENTY, Amounts, times
from reconciler.placement.batches import Batch
from reconciler.placement.constraints.inter_pod_affinity import AntiAffinityRule
from reconciler.placement.constraints.node_ports import ports_clash
from reconciler.placement.constraints.topology_spread import SpreadRule
from reconciler.placement.engine.arrays import MINIMUM, RUNNING
from reconciler.placement.engine.open import by_weight
from reconciler.placement.engine.state import State
from reconciler.placement.label_table import Mask
from reconciler.placement.needs import RelaxationStep
from reconciler.placement.requirements import ANYWHERE

_MOST_BINS = 40
"""Sorts of existing bins up to which each is looked at by itself; of more the free room is added up."""

_MOST_TAKES = 1_000_000
"""Kinds times existing bins up to which that is done at all."""
_MOST_CELLS = 8000
"""Kinds times sites up to which companies keep to a domain: each cell of theirs is a condition more."""


@dataclass(slots=True)
class OpenKind:
    """Chunks that ask for the same and are under the same rules. rows: by pool, what a new node that takes them may be bought as;
    most: of them on a new node, by rules; count: how many have a place."""

    batch: Batch
    rows: Mapping[int, Mask]
    most: int
    count: int = 0


@dataclass(frozen=True, slots=True)
class Company:
    """Kinds of which all chunks are in one domain of a label, whichever that is."""

    key: str
    members: frozenset[int]


@dataclass(frozen=True, slots=True)
class Site:
    """A node that may be made (its type in some places), or one that is there, or all of those together. room: for chunks that
    stand for pods or leave what is free as it is; lean: for those that count against what runs; price: billionths of a USD an
    hour; takes: by kind the most chunks as far as that goes, without a look at rules; most: how many there are of it; pool: number of its offers, -1 for what is there;
    whole: it is one node, for which rules on hosts hold; domains: by label of a company, where it may be (without an entry: anywhere)."""

    room: Amounts
    lean: Amounts
    price: int
    takes: Amounts
    most: int
    pool: int
    whole: bool
    domains: Mapping[str, frozenset[str]]


@dataclass(frozen=True, slots=True)
class Relaxation:
    """number_of: of a batch's kind; apart: which kinds exclude each other from a node, and on the diagonal themselves; nodes: most that may be made of a
    pool, by its number, where that is limited."""

    kinds: tuple[OpenKind, ...]
    number_of: Mapping[int, int]
    asked: Amounts
    apart: Mask
    companies: tuple[Company, ...]
    sites: tuple[Site, ...]
    nodes: Mapping[int, int]


@dataclass(slots=True)
class _Kinds:
    list: list[OpenKind] = field(default_factory=list)
    numbers: dict[tuple[object, ...], int] = field(default_factory=dict)
    of_batch: dict[int, int] = field(default_factory=dict)


def relaxation_of(state: State) -> Relaxation:
    """For all chunks that have a place; pods that wait for room keep theirs."""
    made = _Kinds()
    rows: dict[int, dict[int, Mask]] = {}
    for put in state.entries():
        batch = put.batch
        if batch.waits:
            continue
        number = made.of_batch.get(batch.number)
        if number is None:
            number = made.of_batch[batch.number] = _kind_of(state, made, batch, rows)
        made.list[number].count += put.count
    kinds = made.list
    asked = np.array([kind.batch.needs.request for kind in kinds], dtype=np.int64).reshape(
        len(kinds), len(state.columns.names)
    )
    pools = _pools(state, kinds)
    companies = _companies(state, kinds)
    sites = _sites(state, kinds, asked, pools, companies)
    if companies and len(kinds) * len(sites) > _MOST_CELLS:
        companies = ()
        sites = _sites(state, kinds, asked, pools, companies)
    return Relaxation(
        kinds=tuple(kinds),
        number_of=made.of_batch,
        asked=asked,
        apart=_apart(state, kinds),
        companies=companies if len({tuple(sorted(site.domains.items())) for site in sites}) > 1 else (),
        sites=sites,
        nodes={pool: most for pool in pools if (most := _nodes_of(state, pool)) is not None},
    )


def _sites(
    state: State, kinds: Sequence[OpenKind], asked: Amounts, pools: Sequence[int], companies: Sequence[Company]
) -> tuple[Site, ...]:
    keys = tuple(sorted({affinity.key for affinity in companies}))
    return (*_new_sites(state, kinds, asked, pools, keys), *_existing_sites(state, kinds, keys))


def _kind_of(state: State, made: _Kinds, batch: Batch, rows: dict[int, dict[int, Mask]]) -> int:
    needs = batch.needs
    opens = batch.opens_nodes and not needs.shape.resource_claims
    capped = None if state.per_node is None or batch.pods else batch.demand
    key = (
        *(needs.equivalence_class, needs.request.tobytes(), needs.shape.host_ports, batch.part, opens, capped),
        bool(batch.preferences),
    )
    if key not in made.numbers:
        if needs.equivalence_class not in rows:
            rows[needs.equivalence_class] = _rows(state, batch)
        made.numbers[key] = len(made.list)
        most = _most_on_host(state, batch, PLENTY if capped is None else state.per_node or PLENTY)
        made.list.append(OpenKind(batch, rows[needs.equivalence_class] if opens else {}, most))
    return made.numbers[key]


def _rows(state: State, batch: Batch) -> dict[int, Mask]:
    """By pool, whichever wish is met, in whatever domain."""
    found: dict[int, Mask] = {}
    for relaxation in batch.needs.relaxations:
        compatibility = state.compatibilities.get(batch.needs, relaxation, ANYWHERE)
        for pool in range(len(state.offers)):
            rows = compatibility.rows(pool) & state.offers[pool].priced
            if rows.any():
                found[pool] = found[pool] | rows if pool in found else rows
    return found


def _most_on_host(state: State, batch: Batch, most: int) -> int:
    """On a new node: beside it there may always be an empty host (see kinds)."""
    for rule in state.constraints(batch).on_hosts:
        if isinstance(rule, SpreadRule) and rule.counts_itself:
            most = min(most, rule.max_skew)
    return most


def _apart(state: State, kinds: Sequence[OpenKind]) -> Mask:
    """Worked out by kin, since rules depend on no more."""
    firsts = {kind.batch.needs.equivalence_class: kind.batch for kind in kinds}
    place = {equivalence_class: number for number, equivalence_class in enumerate(firsts)}
    members = [place[kind.batch.needs.equivalence_class] for kind in kinds]
    counts = [frozenset(state.topology.counts_of(batch.needs)) for batch in firsts.values()]
    among = np.zeros((len(firsts), len(firsts)), dtype=np.bool_)
    for number, batch in enumerate(firsts.values()):
        for rule in state.constraints(batch).on_hosts:
            if isinstance(rule, AntiAffinityRule):
                among[number] |= np.array([rule.counter in counted for counted in counts], dtype=np.bool_)
    apart = among[np.ix_(members, members)]
    for number, kind in enumerate(kinds):
        ports = kind.batch.needs.shape.host_ports
        if ports:
            apart[number] |= np.array([ports_clash(ports, other.batch.needs.shape.host_ports) for other in kinds])
    return np.asarray(apart | apart.T, dtype=np.bool_)


def _companies(state: State, kinds: Sequence[OpenKind]) -> tuple[Company, ...]:
    """Where all that count have the rule themselves, and nothing that runs counts: else the second may be somewhere else than the first."""
    counters = state.topology.counters
    placed: Counter[int] = Counter()
    for put in state.entries():
        if not put.batch.waits:
            for position, _ in put.touched.labels:
                placed[position] += put.count
    wanting: dict[int, set[int]] = {}
    counting: dict[int, set[int]] = {}
    for number, kind in enumerate(kinds):
        for rule in state.constraints(kind.batch).affinity:
            wanting.setdefault(rule.counter, set()).add(number)
        for position in state.topology.counts_of(kind.batch.needs):
            counting.setdefault(position, set()).add(number)
    found = {
        Company(counters[position].counted.key, frozenset(members)): None
        for position, members in wanting.items()
        if counters[position].total == placed[position] and counting.get(position, set()) <= members
        if counting.get(position)
    }
    return tuple(found)


def _pools(state: State, kinds: Sequence[OpenKind]) -> list[int]:
    """Numbers of those that nodes may be made of: for some chunk one of the heaviest that can make it a node, or a lighter one
    where it is not sure that a heavier can."""
    weights = by_weight(state)
    found: set[int] = set()
    seen: set[tuple[object, ...]] = set()
    for kind in kinds:
        if not kind.rows:
            continue
        batch = kind.batch
        unsure = bool(batch.preferences or state.constraints(batch).keys or batch.needs.shape.host_ports)
        key = (batch.needs.equivalence_class, batch.needs.request.tobytes(), unsure)
        if key not in seen:
            seen.add(key)
            for relaxation in batch.needs.relaxations:
                found |= _pools_for(state, batch, relaxation, weights, unsure=unsure)
    return sorted(found)


def _pools_for(
    state: State, batch: Batch, relaxation: RelaxationStep, weights: Sequence[tuple[int, ...]], *, unsure: bool
) -> set[int]:
    compatibility = state.compatibilities.get(batch.needs, relaxation, ANYWHERE)
    found: set[int] = set()
    for pools in weights:
        able = [
            pool
            for pool in pools
            if (compatibility.rows(pool) & state.offers[pool].rows_holding(batch.needs.request)).any()
        ]
        found |= set(able)
        if not unsure and any(pool not in state.limited and not state.offers[pool].minimums for pool in able):
            break
    return found


def _nodes_of(state: State, pool: int) -> int | None:
    left = state.limits.nodes_left(state.offers[pool].pool.name)
    if left is None:
        return None
    there = sum(state.planned.of(index).pool == pool for index in range(state.planned.count))
    return max(left + there, there)


def _new_sites(
    state: State, kinds: Sequence[OpenKind], asked: Amounts, pools: Sequence[int], keys: Sequence[str]
) -> list[Site]:
    found: list[Site] = []
    none = np.zeros(0, dtype=np.bool_)
    for pool in pools:
        masks: dict[int, int] = {}
        listed: list[Mask] = []
        owner = np.full(len(kinds), -1, dtype=np.int64)
        for number, kind in enumerate(kinds):
            rows = kind.rows.get(pool, none)
            if len(rows):
                if id(rows) not in masks:
                    masks[id(rows)] = len(listed)
                    listed.append(rows)
                owner[number] = masks[id(rows)]
        if not listed:
            continue
        able = _Able(np.array(listed), owner)
        found += _sites_of(state, pool, able, asked, keys)
    return found


@dataclass(frozen=True, slots=True)
class _Able:
    """masks: rows of the catalogue that some kinds may be on; owner: by kind which of them, -1 for none."""

    masks: Mask
    owner: Amounts


def _sites_of(state: State, pool: int, able: _Able, asked: Amounts, keys: Sequence[str]) -> list[Site]:
    """Each type once for all places where it costs the same, for all that may be in any of them; without those that another is no
    worse than in every respect."""
    offers = state.offers[pool]
    table = offers.offerings.table
    together: dict[tuple[int, int], list[int]] = {}
    for row in np.flatnonzero(able.masks.any(axis=0)).tolist():
        together.setdefault((int(offers.prices[row]), int(offers.offerings.types_of[row])), []).append(row)
    order = sorted(together)
    places = {key: table.column(key) for key in keys if key in table.keys}
    marks = []
    for price_and_type in order:
        rows = together[price_and_type]
        seen = [np.isin(np.arange(len(cells)), codes[rows]) for codes, cells in places.values()]
        marks.append(np.concatenate([able.masks[:, rows].any(axis=1), *seen]))
    rooms = offers.room[[kind for _, kind in order]]
    sites = []
    for number in _useful(rooms, np.array(marks)):
        price, kind = order[number]
        may_be = np.append(marks[number][: len(able.masks)], False)[able.owner]
        takes = np.where(may_be, _fits(rooms[number], asked), 0)
        rows = together[price, kind]
        domains = {}
        for key, (codes, cells) in places.items():
            named = [cells[code] for code in codes[rows].tolist()]
            if all(isinstance(cell, str) for cell in named):
                domains[key] = frozenset(map(str, named))
        if takes.any():
            sites.append(Site(rooms[number], rooms[number], price, takes, PLENTY, pool, whole=True, domains=domains))
    return sites


def _useful(rooms: Amounts, marks: Mask) -> list[int]:
    """rooms: by number, the cheapest first; marks: what else one must have to be as good as another."""
    keep: list[int] = []
    for number in range(len(rooms)):
        better = (rooms[keep] >= rooms[number]).all(axis=1) & (marks[keep] >= marks[number]).all(axis=1)
        if not better.any():
            keep.append(number)
    return keep


def _fits(room: Amounts, asked: Amounts) -> Amounts:
    """How many of each kind alone."""
    wanted = asked > 0
    parts = np.where(wanted, np.maximum(room, 0) // np.maximum(asked, 1), PLENTY)
    return np.asarray(parts.min(axis=1, initial=PLENTY), dtype=np.int64)


def _existing_sites(state: State, kinds: Sequence[OpenKind], keys: Sequence[str]) -> list[Site]:
    """Free room as it was before these chunks came."""
    if not state.base:
        return []
    running = state.resources.running.copy()
    for put in state.entries():
        if put.bin < state.base and put.batch.part == RUNNING and not put.batch.waits:
            running[put.bin] -= put.batch.needs.request * put.count
    lean = np.maximum(state.bins.room, 0)
    room = np.maximum(state.bins.room - running, 0)
    known = np.zeros((len(kinds), state.base if len(kinds) * state.base <= _MOST_TAKES else 0), dtype=np.int64)
    every = np.zeros(len(kinds), dtype=np.int64)
    is_useful = np.zeros(state.base, dtype=np.bool_)
    for number, kind in enumerate(kinds):
        needs = kind.batch.needs
        tolerated = state.bins.taint_toleration.tolerating(needs.shape.tolerations)
        able = state.bins.usable & state.bins.node_affinity.meeting(needs.terms) & tolerated
        if able.any():
            taken = np.where(able, times(lean if kind.batch.part == MINIMUM else room, needs.request), 0)
            every[number] = min(float(taken.astype(np.float64).sum()), PLENTY / 2)
            is_useful |= taken > 0
            if known.size:
                known[number] = taken
    useful = np.flatnonzero(is_useful)
    together = (room[useful].sum(axis=0), lean[useful].sum(axis=0), 0, every, 1, -1)
    sites = _sorts(state, useful, room, lean, known, keys) if known.size else []
    if known.size and len(sites) <= _MOST_BINS:
        return sites
    return [Site(*together, whole=False, domains={})]


def _sorts(  # noqa: PLR0917 - arrays by bin
    state: State, useful: Amounts, room: Amounts, lean: Amounts, takes: Amounts, keys: Sequence[str]
) -> list[Site]:
    """Bins that are alike as one site. takes: kinds × bins."""
    sorts: dict[tuple[object, ...], Site] = {}
    for number in useful.tolist():
        labels = state.bins.origins[number].labels
        domains = {key: frozenset({value}) for key in keys if isinstance(value := labels.get(key), str)}
        sort = (
            *(room[number].tobytes(), lean[number].tobytes(), takes[:, number].tobytes()),
            *(HOSTNAME_LABEL in labels, tuple(sorted(domains.items()))),
        )
        most = sorts[sort].most + 1 if sort in sorts else 1
        sorts[sort] = Site(
            *(room[number], lean[number], 0, takes[:, number], most, -1),
            whole=HOSTNAME_LABEL in labels,
            domains=domains,
        )
    return list(sorts.values())

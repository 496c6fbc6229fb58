"""Planned nodes whose lists keep `placement.spotShare`, and the demands for which it cannot be kept.

Whichever offerings Karpenter chooses, none can then hold more of a demand than the share allows.

First each node gets the cheapest offering that still has room for its chunks. Equal nodes with the same offering are a team. Then
the teams take turns to add to their lists: zones while there is one type, then types, cheapest first, in all zones. So lists are as
long as the share allows, and a node's price is that of the cheapest offering that others leave. If no offering has room, the one
least over the share is taken, and the share counts as that much larger. A node lists on-demand only if that costs less than the
offering left for it, or if no offering has room.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from reconciler.model.placement import ON_DEMAND, SPOT, Crowding, Holding, PlannedNode
from reconciler.model.quantity import Resources
from reconciler.model.refs import ObjectRef
from reconciler.placement.constraints.spot_share import (
    Load,
    SpotAccounts,
    SpotOffering,
    accounts_of_bins,
    crowdings,
    limits_of,
)
from reconciler.placement.engine.state import State
from reconciler.placement.label_table import Mask
from reconciler.placement.launch.offer import Narrowed, OfferedNode, Offerer
from reconciler.placement.offers.pool_offers import PoolOffers


def offered_within_share(
    state: State,
    offerer: Offerer,
    holdings: Mapping[int, tuple[Holding, ...]],
    totals: Mapping[ObjectRef, int],
    share: float,
) -> tuple[Sequence[OfferedNode], tuple[Crowding, ...]]:
    """Planned nodes in their order. holdings: by bin, existing bins first. totals: how many chunks each demand has.

    A demand that keeps the share with full lists is left alone, unless it shares new nodes with one that does not. minValues come
    first: a node whose shorter list would have too few values keeps its long one."""
    held = [holdings[state.base + index] for index in range(state.planned.count)]
    untouched = state.limits.accounts()
    wide = [offerer.planned_node(index, holding) for index, holding in enumerate(held)]
    limits = limits_of(totals, share)
    if not limits:
        return wide, ()

    def over(limits: Mapping[ObjectRef, int], offered: Sequence[OfferedNode]) -> tuple[Crowding, ...]:
        accounts = accounts_of_bins(limits, state.bins.origins, holdings)
        return crowdings(accounts, (item.node for item in offered), totals)

    crowded = over(limits, wide)
    if not crowded:
        return wide, ()
    state.limits.restore(untouched)
    touched = _touched({item.demand for item in crowded}, held, limits)
    accounts = accounts_of_bins({demand: limits[demand] for demand in sorted(touched)}, state.bins.origins, holdings)
    lists = narrowed_lists(state, [item.node for item in wide], accounts, most_types=offerer.most_types)
    offered = []
    for index, long in enumerate(wide):
        before = state.limits.accounts() if state.minimums else None
        short = offerer.planned_node(index, held[index], lists.get(index))
        if before is not None and long.meets_minimums and not short.meets_minimums:
            state.limits.restore(before)
            short = offerer.planned_node(index, held[index])
        offered.append(short)
    return offered, over(limits, offered)


def _touched(
    crowded: set[ObjectRef], held: Sequence[Sequence[Holding]], limits: Mapping[ObjectRef, int]
) -> set[ObjectRef]:
    """These demands, and all that share a new node with one of them, directly or through others."""
    together = [{holding.demand for holding in holdings} & limits.keys() for holdings in held]
    touched, size = set(crowded), 0
    while len(touched) > size:
        size = len(touched)
        for demands in together:
            if demands & touched:
                touched |= demands
    return touched


@dataclass(frozen=True, slots=True)
class _Alternatives:
    """What nodes of a team can be bought as. spot: rows of spot offerings that hold them, each offering once, cheapest first.
    offerings, prices: those of the rows. on_demand: rows that hold them on demand, cheapest first."""

    offers: PoolOffers
    spot: tuple[int, ...]
    offerings: tuple[SpotOffering, ...]
    prices: Mapping[SpotOffering, int]
    on_demand: tuple[int, ...]

    def types(self, zones: Sequence[str]) -> list[str]:
        """The types sold as spot in all of the zones, cheapest first."""
        by_type: dict[str, list[int]] = {}
        for (name, zone), price in self.prices.items():
            if zone in zones:
                by_type.setdefault(name, []).append(price)
        whole = [(min(prices), name) for name, prices in by_type.items() if len(prices) == len(zones)]
        return [name for _, name in sorted(whole)]


@dataclass(slots=True)
class _Team:
    """Equal nodes with one list. members: their numbers. load: of all of them together."""

    alternatives: _Alternatives
    primary: int
    types: list[str]
    zones: list[str]
    members: list[int]
    load: dict[ObjectRef, int]

    def rows(self) -> Mask:
        catalog = self.alternatives.offers.offerings
        names = np.isin([item.name for item in catalog.types], self.types)
        return np.asarray(names[catalog.types_of] & np.isin(catalog.zones, self.zones), dtype=np.bool_)


def narrowed_lists(
    state: State, planned: Sequence[PlannedNode], accounts: SpotAccounts, *, most_types: int
) -> dict[int, Narrowed]:
    """Lists by number of planned node, for nodes whose list must be shorter. planned: the nodes with full lists. accounts: of
    existing nodes. Charges pools for nodes that become larger."""
    known: dict[tuple[int, bytes], _Alternatives] = {}
    waiting: list[tuple[int, int, int, Load, _Alternatives]] = []
    for index, node in enumerate(planned):
        load = accounts.load(node.holdings)
        if not load or SPOT not in node.capacity_types:
            continue
        rows = state.planned.rows(index)
        key = (state.planned.of(index).pool, rows.tobytes())
        if key not in known:
            known[key] = _alternatives_of(state.planned.of(index).offers, rows)
        fullest = max(round(1000 * count / accounts.limits[demand]) for demand, count in load.items())
        waiting.append((len(known[key].spot), -fullest, index, load, known[key]))
    teams: dict[tuple[int, int], _Team] = {}
    lists: dict[int, Narrowed] = {}
    # Nodes with the least choice come first, and of equals those that fill most of an offering.
    for _, _, index, load, alternatives in sorted(waiting, key=lambda item: item[:3]):
        bought = _on_demand(state, index, load, alternatives, accounts)
        if bought is not None:
            lists[index] = bought
            continue
        row = _first_offering(state, index, load, alternatives, accounts)
        name, zone = alternatives.offerings[alternatives.spot.index(row)]
        accounts.add([(name, zone)], load)
        team = teams.setdefault((id(alternatives), row), _Team(alternatives, row, [name], [zone], [], {}))
        team.members.append(index)
        for demand, count in load.items():
            team.load[demand] = team.load.get(demand, 0) + count
    _grow(list(teams.values()), accounts, most_types)
    return lists | {
        index: Narrowed(rows, team.primary)
        for team in teams.values()
        for rows in [team.rows()]
        for index in team.members
    }


def _alternatives_of(offers: PoolOffers, rows: Mask) -> _Alternatives:
    catalog = offers.offerings
    there = [row for row in np.flatnonzero(rows).tolist() if catalog.capacity_types[row] == SPOT]
    first: dict[SpotOffering, int] = {}
    for row in sorted(there, key=lambda row: (int(offers.prices[row]), row)):
        first.setdefault((catalog.types[catalog.types_of[row]].name, catalog.zones[row]), row)
    prices = {offering: int(offers.prices[row]) for offering, row in first.items()}
    bought = [row for row in np.flatnonzero(rows & offers.priced).tolist() if catalog.capacity_types[row] == ON_DEMAND]
    bought.sort(key=lambda row: (int(offers.prices[row]), row))
    return _Alternatives(offers, tuple(first.values()), tuple(first), prices, tuple(bought))


def _on_demand(
    state: State, index: int, load: Load, alternatives: _Alternatives, accounts: SpotAccounts
) -> Narrowed | None:
    """Everything the node can be on demand, if that costs less than the cheapest spot offering with room, or none has room."""
    offers, charged = alternatives.offers, state.charged(index)
    cheapest = next(
        (price for offering, price in alternatives.prices.items() if accounts.takes([offering], load)), None
    )
    for row in alternatives.on_demand:
        if cheapest is not None and int(offers.prices[row]) >= cheapest:
            return None
        larger = _charge(offers, row, charged)
        if not state.limits.shortage(offers.pool.name, larger, charged, nodes=0):
            state.limits.charge(offers.pool.name, larger, charged, nodes=0)
            return Narrowed(np.isin(offers.offerings.capacity_types, [ON_DEMAND]), row)
    return None


def _first_offering(state: State, index: int, load: Load, alternatives: _Alternatives, accounts: SpotAccounts) -> int:
    """The row of the cheapest offering with room, or of the one least over the share. Within the pool's limits, which are charged."""
    offers, charged = alternatives.offers, state.charged(index)
    best: tuple[int, int] | None = None
    for row, offering in zip(alternatives.spot, alternatives.offerings, strict=True):
        if state.limits.shortage(offers.pool.name, _charge(offers, row, charged), charged, nodes=0):
            continue
        excess = accounts.excess(offering, load)
        if best is None or excess < best[0]:
            best = (excess, row)
        if not excess:
            break
    assert best is not None, "its own type is among them"
    row = best[1]
    accounts.stretch(alternatives.offerings[alternatives.spot.index(row)], load)
    state.limits.charge(offers.pool.name, _charge(offers, row, charged), charged, nodes=0)
    return row


def _charge(offers: PoolOffers, row: int, charged: Resources) -> Resources:
    """The charge of a node that will be bought as this row. With minValues, the charge of the list that they need."""
    capacity = offers.capacities[int(offers.offerings.types_of[row])]
    return charged.at_least(capacity) if offers.minimums else capacity


def _grow(teams: Sequence[_Team], accounts: SpotAccounts, most_types: int) -> None:
    """Adds zones and types to the lists, in turns, so that no team takes everything that is left."""
    for ways in (_more_zones, _more_types, _more_zones):
        turns = [(team, ways(team, accounts, most_types)) for team in teams]
        while turns:
            turns = [turn for turn in turns if next(turn[1], False)]


Turns = Iterator[bool]
_Way = Callable[[_Team, SpotAccounts, int], Turns]


def _more_zones(team: _Team, accounts: SpotAccounts, _most_types: int) -> Turns:
    for zone in sorted({zone for _, zone in team.alternatives.offerings} - set(team.zones)):
        added = [(name, zone) for name in team.types]
        if all(offering in team.alternatives.prices for offering in added) and accounts.takes(added, team.load):
            accounts.add(added, team.load)
            team.zones.append(zone)
            yield True


def _more_types(team: _Team, accounts: SpotAccounts, most_types: int) -> Turns:
    """Types to add: as many as the setting says. With minValues all of them, of which as many are listed as minValues needs."""
    most = len(team.alternatives.spot) if team.alternatives.offers.minimums else most_types
    for name in team.alternatives.types(team.zones):
        if len(team.types) >= most:
            return
        added = [(name, zone) for zone in team.zones]
        if name not in team.types and accounts.takes(added, team.load):
            accounts.add(added, team.load)
            team.types.append(name)
            yield True

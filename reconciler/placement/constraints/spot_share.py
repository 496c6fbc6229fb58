"""How many chunks of each demand may end up on spot nodes of each offering.

Which offering a node is bought as is up to Karpenter. So a node counts, with all of its chunks, at every offering it may become.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import product

from reconciler.model.nodes import CAPACITY_TYPE_LABEL, INSTANCE_TYPE_LABEL, ZONE_LABEL
from reconciler.model.placement import SPOT, Crowding, Holding, PlannedNode, most_on_one_offering
from reconciler.model.refs import ObjectRef
from reconciler.placement.batches import Batch
from reconciler.placement.label_table import Cell
from reconciler.placement.nodes.existing import BinOrigin

SpotOffering = tuple[str, str]
"""Instance type and zone."""
Load = Mapping[ObjectRef, int]
"""How many chunks, by demand; only demands that can exceed the share at all."""


class SpotAccounts:
    """limits: the most chunks of each demand on one offering. Demands with no more chunks than that are left out."""

    def __init__(self, limits: Mapping[ObjectRef, int]) -> None:
        self.limits = dict(limits)
        self._held: dict[SpotOffering, dict[ObjectRef, int]] = {}

    def load(self, holdings: Iterable[Holding]) -> Load:
        load: dict[ObjectRef, int] = {}
        for holding in holdings:
            if holding.demand in self.limits:
                load[holding.demand] = load.get(holding.demand, 0) + holding.count
        return load

    def add(self, offerings: Iterable[SpotOffering], load: Load) -> None:
        for offering in offerings if load else ():
            held = self._held.setdefault(offering, {})
            for demand, count in load.items():
                held[demand] = held.get(demand, 0) + count

    def held(self, offering: SpotOffering, demand: ObjectRef) -> int:
        return self._held.get(offering, {}).get(demand, 0)

    def excess(self, offering: SpotOffering, load: Load) -> int:
        """How many chunks over the limits the offering would be with this load added."""
        held = self._held.get(offering, {})
        return sum(max(0, held.get(demand, 0) + count - self.limits[demand]) for demand, count in load.items())

    def takes(self, offerings: Iterable[SpotOffering], load: Load) -> bool:
        return not any(self.excess(offering, load) for offering in offerings)

    def stretch(self, offering: SpotOffering, load: Load) -> None:
        """Raises the limits as far as this additional load requires."""
        held = self._held.get(offering, {})
        for demand, count in load.items():
            self.limits[demand] = max(self.limits[demand], held.get(demand, 0) + count)

    def fullest(self) -> dict[ObjectRef, tuple[int, str, tuple[str, ...]]]:
        """By demand: the most chunks on one offering, the offering's type, and the zones in which the type has that many.

        Of equal types the first by name is given.
        """
        found: dict[ObjectRef, tuple[int, str, tuple[str, ...]]] = {}
        for name, zone in sorted(self._held):
            for demand, count in self._held[name, zone].items():
                most, fullest, zones = found.get(demand, (0, "", ()))
                if count > most:
                    found[demand] = (count, name, (zone,))
                elif (count, name) == (most, fullest):
                    found[demand] = (most, name, (*zones, zone))
        return found


def totals_of(batches: Sequence[Batch]) -> dict[ObjectRef, int]:
    """Chunks of each demand; pending pods are no demand's chunks."""
    totals: dict[ObjectRef, int] = {}
    for batch in batches:
        if not batch.pods:
            totals[batch.demand] = totals.get(batch.demand, 0) + batch.count
    return totals


def limits_of(totals: Mapping[ObjectRef, int], share: float) -> dict[ObjectRef, int]:
    """The limits of demands that have more chunks than their limit."""
    limits = {demand: most_on_one_offering(share, total) for demand, total in totals.items()}
    return {demand: most for demand, most in limits.items() if most < totals[demand]}


def offerings_of_bin(origin: BinOrigin) -> list[SpotOffering]:
    """The spot offering that a node has, or all those that a NodeClaim on its way may get."""
    labels = origin.labels
    if SPOT not in _values(labels.get(CAPACITY_TYPE_LABEL)):
        return []
    return list(product(_values(labels.get(INSTANCE_TYPE_LABEL)), _values(labels.get(ZONE_LABEL))))


def _values(cell: Cell) -> Collection[str]:
    """The values of a label; none where they are not known."""
    values = [value for value in cell if value is not None] if isinstance(cell, tuple) else [cell] if cell else []
    return values or [""]


def offerings_of_planned(node: PlannedNode) -> list[SpotOffering]:
    return list(product(node.instance_types, node.zones)) if SPOT in node.capacity_types else []


def accounts_of_bins(
    limits: Mapping[ObjectRef, int], origins: Sequence[BinOrigin], holdings: Mapping[int, Sequence[Holding]]
) -> SpotAccounts:
    """The chunks that existing nodes, and those on their way, hold after this placement."""
    accounts = SpotAccounts(limits)
    for number, origin in enumerate(origins):
        load = accounts.load(holdings.get(number, ()))
        if load:
            accounts.add(offerings_of_bin(origin), load)
    return accounts


def crowdings(
    accounts: SpotAccounts, planned: Iterable[PlannedNode], totals: Mapping[ObjectRef, int]
) -> tuple[Crowding, ...]:
    """Adds the planned nodes to the accounts; returns the demands that may then exceed the share."""
    for node in planned:
        accounts.add(offerings_of_planned(node), accounts.load(node.holdings))
    return tuple(
        Crowding(demand, name, zones, count, accounts.limits[demand], totals[demand])
        for demand, (count, name, zones) in sorted(accounts.fullest().items())
        if count > accounts.limits[demand]
    )

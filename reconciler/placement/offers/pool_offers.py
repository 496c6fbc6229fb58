"""What each NodePool may buy: rows of the catalog, prices, and the room that each type has left after daemon pods."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, combinations, groupby, product

import numpy as np

from reconciler.model.nodes import (
    CAPACITY_TYPE_LABEL,
    INITIALIZED_LABEL,
    NODEPOOL_LABEL,
    REGISTERED_LABEL,
    ZONE_LABEL,
    NodeOverlay,
    NodePool,
)
from reconciler.model.pods import DaemonSet, HostPort
from reconciler.model.quantity import Resources
from reconciler.model.requirements import Taint
from reconciler.placement.arrays import PLENTY, Amounts, Numbers, ResourceColumns
from reconciler.placement.batches import Needs, needs_of
from reconciler.placement.constraints.node_rules import tolerated
from reconciler.placement.offers.offerings import Offerings, added_capacity, adjusted_prices, ruled_out_by
from reconciler.placement.requirements import Mask, Requirements, one_of

READY_LABELS = Requirements.labels([(REGISTERED_LABEL, "true"), (INITIALIZED_LABEL, "true")])
"""A node gets these once it is up. A DaemonSet may select nodes by them."""


@dataclass(frozen=True, slots=True)
class DaemonPod:
    """One DaemonSet with what its pods need."""

    namespace: str
    name: str
    needs: Needs

    def tolerates(self, taints: Sequence[Taint]) -> bool:
        return tolerated(taints, self.needs.shape.tolerations)


def daemons_of(daemon_sets: Sequence[DaemonSet], columns: ResourceColumns) -> tuple[DaemonPod, ...]:
    return tuple(
        DaemonPod(item.namespace, item.name, needs_of(item.pod_shape, columns.vector(item.shape.requests)))
        for item in sorted(daemon_sets, key=lambda item: (item.namespace, item.name))
    )


@dataclass(frozen=True, slots=True)
class PoolOffers:
    """What one NodePool may buy, or one of its capacity reservations.

    offerings: the catalog. template: the labels and requirements of its NodeClaims.
    rows: by row of the catalog, whether the pool may buy it.
    room: allocatable less daemon pods; daemon_load: what those take; both of shape (types, resources).
    overlaid: by number of type, the part of its room that overlays add.
    capacities: whole capacity by type, which is what counts against limits.
    prices: by row, in billionths of a USD an hour, overlays applied; priced: by row, whether the price is known.
    host_ports: those of daemon pods that could run on any of its nodes. minimums: Karpenter's minValues, by label; none for a reservation.
    reserved: by row, whether it is of a capacity reservation, which has offers of its own; None where there are none.
    """

    pool: NodePool
    offerings: Offerings
    template: Requirements
    rows: Mask
    room: Amounts
    daemon_load: Amounts
    overlaid: Mapping[int, Amounts]
    capacities: tuple[Resources, ...]
    prices: Amounts
    priced: Mask
    host_ports: tuple[HostPort, ...]
    minimums: tuple[tuple[str, int], ...]
    reserved: Mask | None = None
    _known: dict[Requirements, Mask] = field(default_factory=dict, compare=False)

    @property
    def taints(self) -> tuple[Taint, ...]:
        return self.pool.template.taints

    def least_prices(self, rows: Mask | Numbers | slice) -> Amounts:
        """By type, the least price of these rows in billionths of a USD an hour; PLENTY where there is none."""
        least: Amounts = np.full(len(self.room), PLENTY, dtype=np.int64)
        np.minimum.at(least, self.offerings.types_of[rows], self.prices[rows])
        return least

    def rows_holding(self, used: Amounts) -> Mask:
        """By row of the catalog, whether its type has that much room."""
        fits: Mask = np.all(self.room >= used, axis=1)
        return fits[self.offerings.types_of]

    def meets_minimums(self, rows: Mask) -> bool:
        """Whether a node that may be bought as any of the rows leaves enough values open for each of the pool's minValues.

        As in Karpenter (InstanceTypes.SatisfiesMinValues), only labels of the types themselves count. A label that the pool alone
        gives its nodes has no value there. All capacity types that the types are sold as count, reserved among them.
        """
        return all(self.values_left(key, rows) >= minimum for key, minimum in self.minimums)

    def values_left(self, key: str, rows: Mask) -> int:
        """How many values of a label count for minValues if a node may be bought as any of the rows."""
        if key == CAPACITY_TYPE_LABEL and self.reserved is not None:
            rows = rows | (self.reserved & self.offerings.types_in(rows)[self.offerings.types_of])
        return sum(cell is not None for cell in self.offerings.table.seen(key, rows))

    def rows_for(self, wanted: Requirements) -> Mask:
        """By row of the catalog, whether a node for `wanted` may be bought as that. None where a label rules all of them out."""
        if wanted not in self._known:
            table = self.offerings.table
            ruled_out = self.ruled_out_by(wanted) is not None
            self._known[wanted] = (
                np.zeros_like(self.rows) if ruled_out else self.rows & table.matching(wanted.only(table.keys))
            )
        return self._known[wanted]

    def ruled_out_by(self, wanted: Requirements) -> tuple[str, bool] | None:
        """See `ruled_out_by` in `offerings.py`."""
        return ruled_out_by(self.template, self.offerings.table.keys, wanted)

    def own_labels(self, wanted: Requirements) -> Requirements:
        """The part of `wanted` that the catalog does not decide, narrowed by the pool: labels to give to the node itself."""
        keys = self.offerings.table.keys
        return self.template.without(keys).both(wanted.without(keys))


def usable(pool: NodePool) -> bool:
    """Whether placeholders may be made from it: not from a static pool, one being deleted, or one that is not ready."""
    return pool.replicas is None and not pool.deleting and not pool.unready


def by_weight(offers: Sequence[PoolOffers]) -> list[tuple[int, ...]]:
    """Their numbers, in groups of equal weight: the heaviest group first, each group by name."""
    order = sorted(range(len(offers)), key=lambda number: (-offers[number].pool.weight, offers[number].pool.name))
    return [tuple(group) for _, group in groupby(order, key=lambda number: offers[number].pool.weight)]


def node_class_label(pool: NodePool) -> str:
    """The label with which Karpenter marks nodes of a node class; "" for a pool without one."""
    node_class = pool.template.node_class
    return "" if node_class is None else f"{node_class.group}/{node_class.kind.lower()}"


def pool_offers(
    pool: NodePool,
    offerings: Offerings,
    daemons: Sequence[DaemonPod],
    overlays: Sequence[NodeOverlay],
    columns: ResourceColumns,
) -> PoolOffers:
    labels = [*pool.template.labels, (NODEPOOL_LABEL, pool.name)]
    if pool.template.node_class is not None:
        labels.append((node_class_label(pool), pool.template.node_class.name))
    template = Requirements.of(pool.template.requirements).both(Requirements.labels(labels))
    rows = offerings.table.matching(template.only(offerings.table.keys))
    added = added_capacity(offerings, overlays, pool, rows)
    prices, priced = adjusted_prices(offerings, overlays, pool)
    more = [added.get(index, Resources()) for index in range(len(offerings.types))]
    offers = PoolOffers(
        pool=pool,
        offerings=offerings,
        template=template.without_minimums(),
        rows=rows,
        room=columns.matrix(own + extra for own, extra in zip(offerings.allocatable, more, strict=True)),
        daemon_load=np.zeros((len(offerings.types), len(columns.names)), dtype=np.int64),
        overlaid={index: columns.vector(resources) for index, resources in added.items()},
        capacities=tuple(item.capacity + extra for item, extra in zip(offerings.types, more, strict=True)),
        prices=prices,
        priced=priced,
        host_ports=(),
        minimums=template.minimums(),
    )
    return replace(offers, host_ports=_subtract_daemons(offers, daemons))


def _subtract_daemons(offers: PoolOffers, daemons: Sequence[DaemonPod]) -> tuple[HostPort, ...]:
    """A daemon pod counts on a type if it could run on any node of that type in this pool. Returns the host ports of those that count."""
    ports: list[HostPort] = []
    ready_keys = frozenset(key for key, _ in READY_LABELS.entries)
    for daemon in daemons:
        if not daemon.tolerates(offers.taints):
            continue
        on_types = np.zeros(len(offers.offerings.types), dtype=np.bool_)
        for term in daemon.needs.terms:
            rows = offers.rows_for(term.stable.without(ready_keys))
            if READY_LABELS.conflict(term.stable) is None:
                on_types |= offers.offerings.types_in(rows)
        offers.daemon_load[on_types] += daemon.needs.request
        ports += daemon.needs.shape.host_ports if on_types.any() else ()
    offers.room[:] -= offers.daemon_load
    return tuple(ports)


Place = tuple[tuple[str, ...], tuple[str, ...]]
"""Zones and capacity types."""
MOST_ZONES = 8
"""Up to this many zones, every set of them is tried. Clouds have at most six in a region."""


def listable(offers: PoolOffers, rows: Mask, primary: int) -> Iterator[tuple[Mask, Place]]:
    """Rows and places to list, best first.

    A type with a known price is listed with types whose price is known too, unless minValues needs more.
    rows: by row of the catalog, whether it may be listed at all. primary: the cheapest of them.
    """
    if offers.priced[primary] and not offers.priced[rows].all():
        known = rows & offers.priced
        yield from ((known, place) for place in _places(offers, known, primary))
    yield from ((rows, place) for place in _places(offers, rows, primary))


def sold_in(offers: PoolOffers, rows: Mask, place: Place) -> tuple[Mask, list[int]]:
    """The rows that are in a place, and the numbers of the types that are sold in all of it, cheapest first."""
    catalog = offers.offerings
    table = catalog.table
    there = rows & table.allowed(ZONE_LABEL, one_of(*place[0])) & table.allowed(CAPACITY_TYPE_LABEL, one_of(*place[1]))
    zones, capacity_types = table.column(ZONE_LABEL), table.column(CAPACITY_TYPE_LABEL)
    sold = np.zeros((len(catalog.types), len(zones[1]), len(capacity_types[1])), dtype=np.bool_)
    sold[catalog.types_of[there], zones[0][there], capacity_types[0][there]] = True
    complete = np.flatnonzero(sold.sum(axis=(1, 2)) == len(place[0]) * len(place[1]))
    prices = offers.least_prices(there)[complete]
    instance_types: list[int] = complete[np.argsort(prices, kind="stable")].tolist()
    return there, instance_types


def _places(offers: PoolOffers, rows: Mask, primary: int) -> Iterator[Place]:
    """Places to try, best first.

    First come as many zones and capacity types around the cheapest offering as its type is sold in. Fewer of them follow, since
    more types are sold there. Then comes each place alone, cheapest first, in case the first has too few types. Where the pool
    has minValues, every other set of zones and capacity types comes last.
    """
    seen = set[Place]()
    for place in chain(_around(offers, rows, primary), _alone(offers, rows)):
        if place not in seen:
            seen.add(place)
            yield place
    if not offers.minimums:
        return
    sold = {offers.offerings.places[row] for row in np.flatnonzero(rows).tolist()}
    zones, capacity_types = (sorted(set(names)) for names in zip(*sold, strict=True))
    if len(zones) <= MOST_ZONES:
        yield from (place for place in product(_subsets(zones), _subsets(capacity_types)) if place not in seen)


def _subsets(names: Sequence[str]) -> Iterable[tuple[str, ...]]:
    """All but the empty one, the largest first."""
    return [some for size in range(len(names), 0, -1) for some in combinations(names, size)]


def _around(offers: PoolOffers, rows: Mask, primary: int) -> Iterator[Place]:
    catalog = offers.offerings
    of_type = np.flatnonzero(rows & (catalog.types_of == catalog.types_of[primary])).tolist()
    sold, (zone, capacity_type) = {catalog.places[row] for row in of_type}, catalog.places[primary]
    zones = tuple(sorted(other for other, sold_as in sold if sold_as == capacity_type))
    others = sorted({sold_as for _, sold_as in sold} - {capacity_type})
    for size in range(len(others), 0, -1):
        for more in combinations(others, size):
            if all((other, sold_as) in sold for other in zones for sold_as in more):
                yield zones, tuple(sorted((capacity_type, *more)))
    for fewer in _subsets(zones):
        if zone in fewer:
            yield fewer, (capacity_type,)


def _alone(offers: PoolOffers, rows: Mask) -> Iterator[Place]:
    there = np.flatnonzero(rows)
    for row in there[np.argsort(offers.prices[there], kind="stable")].tolist():
        zone, capacity_type = offers.offerings.places[row]
        yield (zone,), (capacity_type,)


def unknown_prices(pools: Sequence[PoolOffers]) -> tuple[str, ...]:
    """A sentence on types without any known price, and one on types with a known price for some of their offerings only."""
    unknown: set[int] = set()
    known: set[int] = set()
    for offers in pools:
        for types, priced in ((known, offers.priced), (unknown, ~offers.priced)):
            types.update(np.flatnonzero(offers.offerings.types_in(offers.rows & priced)).tolist())
    never, partly = len(unknown - known), len(unknown & known)
    sentences = []
    if never:
        have, are = ("type has", "it is") if never == 1 else ("types have", "they are")
        sentences.append(
            f"{never} instance {have} no price in the catalog: {are} taken only where no type that has one will do, the smaller "
            "in CPU and memory first"
        )
    if partly:
        have, their = ("type has", "its") if partly == 1 else ("types have", "their")
        sentences.append(
            f"{partly} instance {have} a price for some of {their} offerings only: the others are taken only where no offering "
            "that has one will do"
        )
    return tuple(sentences)

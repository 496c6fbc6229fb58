"""What each NodePool may buy: rows of the catalog, prices, and the room that each type has left after daemon pods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from reconciler.model.nodes import CAPACITY_TYPE_LABEL, NODEPOOL_LABEL, NodePool
from reconciler.model.overlays import NodeOverlay
from reconciler.model.pods import HostPort
from reconciler.model.quantity import Resources
from reconciler.model.requirements import Taint
from reconciler.placement.amounts import Amounts, ResourceColumns
from reconciler.placement.constraints.overlays import added_capacity, adjusted_prices
from reconciler.placement.label_table import Mask, distinct
from reconciler.placement.offers.daemons import READY_LABELS, DaemonPod
from reconciler.placement.offers.offerings import Offerings
from reconciler.placement.requirements import Requirements

PoolType = tuple[str, str]
"""Names of a NodePool and an instance type."""
Observed = Mapping[PoolType, Resources]
"""Resources that nodes of a pool and type are seen to have beyond what the catalog says: devices, volumes."""


@dataclass(frozen=True, slots=True)
class NoRows:
    """Why a pool has nothing for a shape.

    key: the label. undefined: neither the pool nor the catalog defines it; else no value is allowed by both sides.
    """

    key: str
    undefined: bool


@dataclass(frozen=True, slots=True)
class PoolOffers:
    """What one NodePool may buy, or one of its capacity reservations.

    offerings: the catalog. template: the labels and requirements of its NodeClaims.
    rows: by row of the catalog, whether the pool may buy it.
    room: allocatable less daemon pods; daemon_load: what those take; both of shape (types, resources).
    overlaid: by number of type, the part of its room that overlays add.
    capacities: whole capacity by type, which is what counts against limits.
    prices: by row, in billionths of a USD an hour, overlays applied; priced: by row, whether the price is known.
    host_ports: those that daemon pods use on every node. minimums: Karpenter's minValues, by label.
    reserved: by row, whether it is of a capacity reservation, which has offers of its own; None where there are none.
    whole: for a reservation, the offers of its whole NodePool.
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
    whole: PoolOffers | None = None
    _known: dict[Requirements, Mask | NoRows] = field(default_factory=dict, compare=False)

    @property
    def taints(self) -> tuple[Taint, ...]:
        return self.pool.template.taints

    def rows_holding(self, used: Amounts) -> Mask:
        """By row of the catalog, whether its type has that much room."""
        fits: Mask = np.all(self.room >= used, axis=1)
        return fits[self.offerings.types_of]

    def meets_minimums(self, rows: Mask) -> bool:
        """Whether a node that may be bought as any of the rows leaves enough values open for each of the pool's minValues.

        As in Karpenter (InstanceTypes.SatisfiesMinValues), only labels of the types themselves count. A label that the pool alone
        gives its nodes has no value there. All capacity types that the types are sold as count, reserved among them. For a
        reservation only `has_choice` counts.
        """
        return self.whole is not None or all(self.values_left(key, rows) >= minimum for key, minimum in self.minimums)

    def values_left(self, key: str, rows: Mask) -> int:
        """How many values of a label count for minValues if a node may be bought as any of the rows."""
        if key == CAPACITY_TYPE_LABEL and self.reserved is not None:
            rows = rows | (self.reserved & self.offerings.types_in(rows)[self.offerings.types_of])
        codes, cells = self.offerings.table.column(key)
        return sum(cells[code] is not None for code in distinct(codes[rows]))

    def has_choice(self, wanted: Requirements, holds: Mask) -> bool:
        """Whether the NodePool of a reservation leaves enough values open for such a node. Always so if this is no reservation.

        Karpenter counts values before it narrows the NodeClaim to the reservation (NodeClaim.FinalizeScheduling).
        holds: by type, whether it has room for the node's chunks.
        """
        if self.whole is None:
            return True
        rows = self.whole.rows_for(wanted)
        return not isinstance(rows, NoRows) and self.whole.meets_minimums(rows & holds[self.offerings.types_of])

    def rows_for(self, wanted: Requirements) -> Mask | NoRows:
        """By row of the catalog, whether a node for `wanted` may be bought as that.

        A label that neither the catalog nor the pool defines rules all of them out, unless the node may lack it.
        """
        if wanted not in self._known:
            self._known[wanted] = self._rows_for(wanted)
        return self._known[wanted]

    def _rows_for(self, wanted: Requirements) -> Mask | NoRows:
        for key, values in wanted.entries:
            known = self.template.get(key)
            if known is not None:
                if known.intersection(values).is_empty:
                    return NoRows(key, undefined=False)
            elif key not in self.offerings.table.keys and not values.absent:
                return NoRows(key, undefined=True)
        return self.rows & self.offerings.table.matching(wanted.only(self.offerings.table.keys))

    def own_labels(self, wanted: Requirements) -> Requirements:
        """The part of `wanted` that the catalog does not decide, narrowed by the pool: labels to give to the node itself."""
        keys = self.offerings.table.keys
        return self.template.without(keys).both(wanted.without(keys))


def usable(pool: NodePool) -> bool:
    """Whether placeholders may be made from it: not from a static pool, one being deleted, or one that is not ready."""
    return pool.replicas is None and not pool.deleting and pool.ready


def node_class_label(pool: NodePool) -> str:
    """The label with which Karpenter marks nodes of a node class; "" for a pool without one."""
    node_class = pool.template.node_class
    return "" if node_class is None else f"{node_class.group}/{node_class.kind.lower()}"


def template_of(pool: NodePool) -> Requirements:
    labels = [*pool.template.labels, (NODEPOOL_LABEL, pool.name)]
    if pool.template.node_class is not None:
        labels.append((node_class_label(pool), pool.template.node_class.name))
    return Requirements.of(pool.template.requirements).both(Requirements.labels(labels))


def pool_offers(
    pool: NodePool,
    offerings: Offerings,
    daemons: Sequence[DaemonPod],
    overlays: Sequence[NodeOverlay],
    columns: ResourceColumns,
    *,
    observed: Observed,
) -> PoolOffers:
    template = template_of(pool)
    rows = offerings.table.matching(template.only(offerings.table.keys))
    added = added_capacity(offerings, overlays, pool, rows)
    prices, priced = adjusted_prices(offerings, overlays, pool)
    more = [
        added.get(index, Resources()) + observed.get((pool.name, instance_type.name), Resources())
        for index, instance_type in enumerate(offerings.types)
    ]
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
        host_ports=tuple(
            port
            for daemon in daemons
            if daemon.tolerates(pool.template.taints)
            for port in daemon.needs.shape.host_ports
        ),
        minimums=template.minimums(),
    )
    _subtract_daemons(offers, daemons)
    return offers


def _subtract_daemons(offers: PoolOffers, daemons: Sequence[DaemonPod]) -> None:
    """A daemon pod counts on a type if it could run on any node of that type in this pool."""
    ready_keys = frozenset(key for key, _ in READY_LABELS.entries)
    for daemon in daemons:
        if not daemon.tolerates(offers.taints):
            continue
        on_types = np.zeros(len(offers.offerings.types), dtype=np.bool_)
        for term in daemon.needs.terms:
            rows = offers.rows_for(term.stable.without(ready_keys))
            if READY_LABELS.conflict(term.stable) is None and not isinstance(rows, NoRows):
                on_types |= offers.offerings.types_in(rows)
        offers.daemon_load[on_types] += daemon.needs.request
    offers.room[:] -= offers.daemon_load

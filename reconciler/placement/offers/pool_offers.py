"""NodePools and what each can make: rows of the catalogue, the room each type has after daemons, prices. Used by pack."""

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
from reconciler.placement.label_table import Mask
from reconciler.placement.offers.daemons import READY_LABELS, Daemon
from reconciler.placement.offers.offerings import Offerings
from reconciler.placement.requirements import Requirements

PoolType = tuple[str, str]
"""Names of a NodePool and an instance type."""
Observed = Mapping[PoolType, Resources]
"""What a node of a pool and type has beside what the catalogue says (see examples)."""


@dataclass(frozen=True, slots=True)
class NoRows:
    """Why a pool has nothing for a shape: the label, and whether nobody defines it (else values do not meet)."""

    key: str
    undefined: bool


@dataclass(frozen=True, slots=True)
class PoolOffers:
    """One NodePool that nodes may be made from.

    template: its labels and requirements; rows: what of the catalogue it may buy; room: allocatable less daemons, by type
    and resource; daemon_load: what those daemons take; capacities: whole capacity by type, for limits; prices: by row;
    priced: by row, whether that is known; host_ports: those daemons use; minimums: Karpenter's minValues by label;
    reserved: rows of its capacity reservations, which are apart (see reservations), None where there are none; whole: of a
    reservation, all that its NodePool may buy.
    """

    pool: NodePool
    offerings: Offerings
    template: Requirements
    rows: Mask
    room: Amounts
    daemon_load: Amounts
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
        """Rows of types with that much room."""
        fits: Mask = np.all(self.room >= used, axis=1)
        return fits[self.offerings.types_of]

    def meets_minimums(self, rows: Mask) -> bool:
        """Whether a node that may be bought as any of the rows leaves enough values open for each of the pool's minValues.

        Only what types have themselves is counted, as in Karpenter (InstanceTypes.SatisfiesMinValues): of a label that none of them
        has no value is left, whatever the pool gives its nodes. Of capacity types all that the types are sold as count, reserved
        too; a reservation itself needs no choice, but that its NodePool had one (see `has_choice`)."""
        return self.whole is not None or all(self.values_left(key, rows) >= minimum for key, minimum in self.minimums)

    def values_left(self, key: str, rows: Mask) -> int:
        """How many values of a label count for minValues, of a node that may be bought as any of the rows."""
        if key == CAPACITY_TYPE_LABEL and self.reserved is not None:
            rows = rows | (self.reserved & self.offerings.types_in(rows)[self.offerings.types_of])
        codes, cells = self.offerings.table.column(key)
        return sum(cells[code] is not None for code in np.unique(codes[rows]).tolist())

    def has_choice(self, wanted: Requirements, holds: Mask) -> bool:
        """Whether the NodePool of a reservation has enough values open for such a node: Karpenter counts them before it narrows the
        NodeClaim to the reservation (NodeClaim.FinalizeScheduling). holds: types that have room for it. True for others."""
        if self.whole is None:
            return True
        rows = self.whole.rows_for(wanted)
        return not isinstance(rows, NoRows) and self.whole.meets_minimums(rows & holds[self.offerings.types_of])

    def rows_for(self, wanted: Requirements) -> Mask | NoRows:
        """The rows a node for `wanted` may be bought from. A label that neither the catalogue nor the pool defines is
        denied, unless the node may do without it."""
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
        """What of `wanted` the catalogue cannot judge, with what the pool says on it: to be met by the node's own labels."""
        keys = self.offerings.table.keys
        return self.template.without(keys).both(wanted.without(keys))


def usable(pool: NodePool) -> bool:
    """Static pools (a fixed number of nodes), and those going away or not ready, take no placeholders."""
    return pool.replicas is None and not pool.deleting and pool.ready


def node_class_label(pool: NodePool) -> str:
    """The label by which Karpenter marks nodes with their node class; "" for a pool without one."""
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
    daemons: Sequence[Daemon],
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
        added.get(index, Resources()) + observed.get((pool.name, kind.name), Resources())
        for index, kind in enumerate(offerings.types)
    ]
    offers = PoolOffers(
        pool=pool,
        offerings=offerings,
        template=template.without_minimums(),
        rows=rows,
        room=columns.matrix(kind.allocatable + extra for kind, extra in zip(offerings.types, more, strict=True)),
        daemon_load=np.zeros((len(offerings.types), len(columns.names)), dtype=np.int64),
        capacities=tuple(kind.capacity + extra for kind, extra in zip(offerings.types, more, strict=True)),
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


def _subtract_daemons(offers: PoolOffers, daemons: Sequence[Daemon]) -> None:
    """A daemon pod is reckoned with on a type when it could run on any node of that type in this pool."""
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

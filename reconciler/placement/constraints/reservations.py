"""Capacity reservations: offerings of capacity type `reserved`, with a number of nodes left.

Each reservation that a NodePool may use becomes a pool of its own beside it. That pool has the same template, the reservation's
offerings alone, and a limit on nodes. So all code that knows limits knows reservations. A node planned in one asks for this
reservation by name, as Karpenter's own NodeClaims do, and for no other offering. Its price is the reservation's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from reconciler.model.nodes import CAPACITY_TYPE_LABEL, NODEPOOL_LABEL, NodePool
from reconciler.model.placement import PlannedNode
from reconciler.model.requirements import Operator, Requirement
from reconciler.model.view import ClusterView
from reconciler.placement.constraints.limits import RESERVATION_MARK
from reconciler.placement.label_table import Mask
from reconciler.placement.offers.offerings import RESERVED, Offerings
from reconciler.placement.offers.pool_offers import PoolOffers
from reconciler.placement.requirements import Requirements


def account_name(pool: str, reservation: str) -> str:
    return f"{pool}{RESERVATION_MARK}{reservation}"


def is_reservation(offers: PoolOffers) -> bool:
    """Whether these offers stand for a reservation beside a NodePool."""
    return RESERVATION_MARK in offers.pool.name


@dataclass(frozen=True, slots=True)
class Reservations:
    """By name of a reservation, how many nodes are left of it."""

    left: dict[str, int]

    def names_of(self, offers: PoolOffers) -> list[str]:
        rows = np.flatnonzero(offers.rows).tolist()
        return sorted({offers.offerings.reservations[row] for row in rows} & self.left.keys())


def reservations_of(catalog: Offerings, view: ClusterView) -> Reservations:
    """Subtracts a node for each NodeClaim that asks for reserved capacity and is not launched yet.

    The catalog's number does not include those."""
    left = dict(catalog.reserved)
    if not left:
        return Reservations(left)
    for claim in view.node_claims:
        asked = Requirements.of(claim.requirements).both(Requirements.labels(claim.labels))
        instance_types = asked.get(CAPACITY_TYPE_LABEL)
        if (
            instance_types is None
            or instance_types.single != RESERVED
            or claim.condition("Launched") == "True"
            or claim.deleting
        ):
            continue
        rows = np.flatnonzero(catalog.table.matching(asked.only(catalog.table.keys))).tolist()
        for name in {catalog.reservations[row] for row in rows} & left.keys():
            left[name] = max(0, left[name] - 1)
    return Reservations(left)


def with_reservations(offers: PoolOffers, reservations: Reservations) -> list[PoolOffers]:
    """The pool without reserved offerings, then one for each reservation it may use."""
    reserved = _rows(offers.offerings)
    if not (offers.rows & reserved).any():
        return [offers]
    plain = replace(offers, rows=offers.rows & ~reserved, reserved=offers.rows & reserved, _known={})
    return [plain, *(_reservation(offers, name) for name in reservations.names_of(offers))]


def _rows(catalog: Offerings, name: str | None = None) -> Mask:
    return np.array([item != "" if name is None else item == name for item in catalog.reservations], dtype=np.bool_)


def _reservation(offers: PoolOffers, name: str) -> PoolOffers:
    rows = offers.rows & _rows(offers.offerings, name)
    first = int(np.flatnonzero(rows)[0])
    asked = [Requirement(CAPACITY_TYPE_LABEL, Operator.IN, (RESERVED,))]
    key = offers.offerings.reservation_keys[first]
    if key:
        asked.append(Requirement(key, Operator.IN, (name,)))
    template = offers.pool.template
    pool = replace(
        offers.pool,
        name=account_name(offers.pool.name, name),
        template=replace(template, requirements=(*map(_without_minimum, template.requirements), *asked)),
    )
    both = offers.template.both(Requirements.of(asked))
    return replace(offers, pool=pool, rows=rows, template=both, whole=offers, _known={})


def _without_minimum(requirement: Requirement) -> Requirement:
    """Drops minValues. The API server refuses a requirement that lists fewer values, and a reservation leaves only one."""
    return replace(requirement, min_values=None)


def in_its_pool(planned: PlannedNode) -> PlannedNode:
    """The planned node with its NodePool's name in place of the account's."""
    pool, mark, _ = planned.node_pool.partition(RESERVATION_MARK)
    if not mark:
        return planned
    requirements = tuple(
        replace(item, values=(pool,)) if item.key == NODEPOOL_LABEL else item for item in planned.requirements
    )
    return replace(planned, node_pool=pool, requirements=requirements)


def usable_offers(every: Sequence[PoolOffers], pools: Sequence[NodePool], left: Reservations) -> list[PoolOffers]:
    """The offers of these pools, each followed by those of its reservations."""
    names = {pool.name for pool in pools}
    return [item for offers in every if offers.pool.name in names for item in with_reservations(offers, left)]

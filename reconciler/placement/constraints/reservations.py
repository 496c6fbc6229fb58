"""Capacity reservations: offerings of capacity type `reserved`, with a number of nodes left.

Each reservation that a NodePool may use becomes a pool of its own beside it. That pool has the same template, the reservation's
offerings alone, and a limit on nodes. So all code that knows limits knows reservations. A node planned in one asks for this
reservation by name, as Karpenter's own NodeClaims do, and for no other offering. Its price is the reservation's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from reconciler.model.nodes import CAPACITY_TYPE_LABEL, NODEPOOL_LABEL, NodePool
from reconciler.model.placement import PlannedNode
from reconciler.model.requirements import Operator, Requirement
from reconciler.model.view import ClusterView
from reconciler.placement.constraints.limits import RESERVATION_MARK
from reconciler.placement.offers.offerings import RESERVED, Offerings
from reconciler.placement.offers.pool_offers import PoolOffers
from reconciler.placement.requirements import Mask, Requirements


def is_reservation(offers: PoolOffers) -> bool:
    """Whether these offers stand for a reservation beside a NodePool."""
    return RESERVATION_MARK in offers.pool.name


def reservations_of(catalog: Offerings, view: ClusterView) -> dict[str, int]:
    """By name of a reservation, how many nodes are left of it.

    The catalog's number does not include NodeClaims that ask for reserved capacity and are not launched yet."""
    left = dict(catalog.reserved)
    for claim in view.node_claims if left else ():
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
    return left


def usable_offers(every: Sequence[PoolOffers], pools: Sequence[NodePool], left: Mapping[str, int]) -> list[PoolOffers]:
    """The offers of these pools, without reserved offerings, each followed by those of its reservations. left: see `reservations_of`."""
    names = {pool.name for pool in pools}
    return [item for offers in every if offers.pool.name in names for item in _apart(offers, left)]


def _apart(offers: PoolOffers, left: Mapping[str, int]) -> list[PoolOffers]:
    reserved = offers.rows & _rows(offers.offerings)
    if not reserved.any():
        return [offers]
    names = {offers.offerings.reservations[row] for row in np.flatnonzero(reserved).tolist()} & left.keys()
    plain = replace(offers, rows=offers.rows & ~reserved, reserved=reserved, _known={})
    return [plain, *(_reservation(offers, name) for name in sorted(names))]


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
        name=f"{offers.pool.name}{RESERVATION_MARK}{name}",
        template=replace(template, requirements=(*map(_without_minimum, template.requirements), *asked)),
    )
    both = offers.template.both(Requirements.of(asked))
    return replace(offers, pool=pool, rows=rows, template=both, minimums=(), _known={})


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

"""What each NodePool's limits still allow, and its capacity reservations, which are limits too.

Usage is counted by the catalog's capacities where they are known, since some providers report less than a node has. A NodeClaim
whose type is undecided counts as the largest type it may become. Nodes that are being deleted count until they are gone.

Reservations are offerings of capacity type `reserved`, with a number of nodes left. Each that a NodePool may use becomes a pool of its own
beside it. That pool has the same template, the reservation's offerings alone, and a limit on nodes. So all code that knows limits knows
reservations. A node planned in one asks for this reservation by name, as Karpenter's own NodeClaims do, and for no other offering. Its
price is the reservation's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from reconciler.model.launch_options import RESERVED
from reconciler.model.machines import Machine
from reconciler.model.nodes import (
    CAPACITY_TYPE_LABEL,
    INSTANCE_TYPE_LABEL,
    InstanceType,
    NodePool,
)
from reconciler.model.quantity import Resources, readable_amount
from reconciler.model.requirements import Operator, Requirement
from reconciler.model.view import ClusterView
from reconciler.placement.arrays import PLENTY, Amounts, LimitArrays, Numbers
from reconciler.placement.offers.offerings import Offerings
from reconciler.placement.offers.pool_offers import PoolOffers
from reconciler.placement.requirements import Mask, Requirements

NODES = "nodes"
"""The limit on the number of nodes, beside resources."""
NOTHING = Resources()
RESERVATION_MARK = "\0"
"""Separates a NodePool's name from a reservation's in the name of their account. Object names cannot contain it."""


@dataclass(frozen=True, slots=True)
class Shortage:
    """The limit that is in the way: how much it allows, and how much of that is used."""

    resource: str
    limit: int
    used: int


class PoolLimits:
    """Running account of every pool's limits. Charges of an attempt that is undone are taken back.

    A reservation is an account too, with a limit on nodes, which all NodePools share that may use it."""

    def __init__(
        self,
        pools: Sequence[NodePool],
        view: ClusterView,
        instance_types: Sequence[InstanceType],
        reservations: Mapping[str, int],
        promised: Iterable[tuple[str, Resources]] = (),
    ) -> None:
        """reservations: how many nodes are left of each.

        promised: what pools will use in addition, for pending pods."""
        of_pools = {pool.name: dict(pool.limits) for pool in pools if pool.limits is not None}
        self._limits = of_pools | {f"{RESERVATION_MARK}{name}": {NODES: left} for name, left in reservations.items()}
        self._reserves = bool(reservations)
        self._promised = dict(promised)
        types = {instance_type.name: instance_type for instance_type in instance_types}
        usage = _usage(view, types, frozenset(of_pools))
        self._used = {
            account: {
                name: usage.get(account, NOTHING).get(name) + self._promised.get(account, NOTHING).get(name)
                for name in limits
            }
            for account, limits in self._limits.items()
        }

    def _accounts(self, pool: str) -> list[str]:
        """Those that new nodes of a pool are charged to: of the reservation and of the NodePool, where they are limited."""
        name, mark, reservation = pool.partition(RESERVATION_MARK)
        return [account for account in (mark + reservation, name) if account in self._limits]

    def is_limited(self, pool: str) -> bool:
        return bool(self._accounts(pool))

    def left(self, pool: str) -> dict[str, int]:
        """By limited resource, how much of it may still be used; below 0 where the pool is over its limit."""
        left: dict[str, int] = {}
        for account in self._accounts(pool):
            for name, limit in self._limits[account].items():
                left[name] = min(left.get(name, PLENTY), limit - self._used[account][name])
        return left

    def are_near(self, asked: Mapping[str, float]) -> bool:
        """Whether some limit leaves less than twice what chunks ask for in all, of each resource and of nodes."""
        left = (item for pool in self._limits for item in self.left(pool).items())
        return self._reserves or any(amount < 2 * asked.get(name, PLENTY) for name, amount in left)

    def shortage(
        self, pool: str, more: Resources, instead_of: Resources = NOTHING, *, nodes: int = 1
    ) -> Shortage | None:
        """The first limit, by name, that `nodes` more nodes of capacity `more` (replacing `instead_of`) would break."""
        for account in self._accounts(pool):
            limits, used = self._limits[account], self._used[account]
            for name in sorted(limits):
                wanted = nodes if name == NODES else more.get(name) - instead_of.get(name)
                # A pool that is over its limit may still take a node that needs none of that resource.
                if wanted > 0 and used[name] + wanted > limits[name]:
                    return Shortage(name, limits[name], used[name])
        return None

    def words(self, offers: PoolOffers, shortages: Sequence[Shortage], fitting: Sequence[int]) -> str:
        """What is in the way of a pool's new nodes, if each of these types that would do (given by number) is short of something."""
        least = min(shortages, key=lambda item: item.resource)
        limit, used = (readable_amount(least.resource, amount) for amount in (least.limit, least.used))
        if least.used == least.limit:
            counted = offers.minimums and least.resource != NODES
            so = ", new nodes counted as the largest type that each lists for minValues" if counted else ""
            words = f"is at its {least.resource} limit of {limit}{so}"
        elif least.used > least.limit:
            words = f"is over its {least.resource} limit of {limit}: {used} used"
        else:
            types = offers.offerings.types
            amount, name = min(
                (offers.capacities[number].get(least.resource), types[number].name) for number in fitting
            )
            smallest = f"{name}, the smallest that would do, has {readable_amount(least.resource, amount)}"
            words = f"has used {used} of its {least.resource} limit of {limit}, and {smallest}"
        promised = self._promised.get(offers.pool.name)  # part of the usage is for nodes that pending pods need
        return f"{words}; the nodes that pending pods need are counted in" if promised else words

    def charge(self, pool: str, more: Resources, instead_of: Resources = NOTHING, *, nodes: int = 1) -> None:
        for account in self._accounts(pool):
            used = self._used[account]
            for name in used:
                used[name] += nodes if name == NODES else more.get(name) - instead_of.get(name)


def _usage(view: ClusterView, types: Mapping[str, InstanceType], pools: frozenset[str]) -> dict[str, Resources]:
    usage: dict[str, list[Resources]] = {name: [] for name in pools}
    if not pools:
        return {}
    for machine in view.machines:
        if machine.node_pool in pools:
            usage[machine.node_pool].append(_capacity(machine, types))
    return {name: Resources.total((*lists, Resources.of({NODES: len(lists)}))) for name, lists in usage.items()}


def _capacity(machine: Machine, types: Mapping[str, InstanceType]) -> Resources:
    node, claim = machine.node, machine.node_claim
    reported = [side.capacity for side in machine.sides]
    if node is not None:
        known = types.get(machine.label(INSTANCE_TYPE_LABEL) or "")
        return Resources.largest([*reported, node.allocatable, *([known.capacity] if known else ())])
    if claim is None:
        return Resources()
    asked = Requirements.of(claim.requirements).both(Requirements.labels(claim.labels)).get(INSTANCE_TYPE_LABEL)
    possible = [item.capacity for item in types.values() if asked is not None and asked.allows(item.name)]
    return Resources.largest([*reported, claim.requests, *possible])


class RunningLimits:
    """What the limits allow at the moment, as arrays over instance types: the account that `PoolLimits` keeps. Columns are the resources that any pool limits, except the number of nodes."""

    def __init__(self, offers: Sequence[PoolOffers], limits: PoolLimits) -> None:
        self._limits = limits
        self._pools = [item.pool.name for item in offers]
        names = {name for pool in self._pools for name in limits.left(pool)}
        self._names = sorted(names - {NODES})
        self._capacities = self.charges(capacity for item in offers for capacity in item.capacities)
        self._uncharged: Amounts = np.zeros((0, len(self._names)), dtype=np.int64)
        self._ends = np.cumsum([len(item.capacities) for item in offers])[:-1]
        """By pool but the last, where its types end."""
        self._of_pool = np.split(self._capacities, self._ends) if offers else []
        self.largest: Amounts = np.zeros((len(offers), len(self._names)), dtype=np.int64)
        """By pool, the most of each resource that any of its types has."""
        for pool, capacities in enumerate(self._of_pool):
            self.largest[pool] = capacities.max(axis=0, initial=0)

    def now(self, charged: Amounts | None = None) -> LimitArrays:
        """Three arrays: capacity by type (numbered across all pools) and resource; what is left by pool and resource; and charges.

        charged: see `charges`; None where each node is charged for its type's capacity."""
        charged = self._uncharged if charged is None else charged
        left = [self._left(pool) for pool in self._pools]
        return self._capacities, np.array(left, dtype=np.int64).reshape(len(left), len(self._names)), charged

    def charges(self, charged: Iterable[Resources]) -> Amounts:
        """A row for each list of resources, a column for each that is limited."""
        rows = [[min(item.get(name), PLENTY) for name in self._names] for item in charged]
        return np.array(rows, dtype=np.int64).reshape(len(rows), len(self._names))

    def charge(self, change: Numbers) -> None:
        """change: by type (numbered across all pools), how many more nodes there are, below 0 for fewer."""
        for name, counts, capacities in zip(self._pools, np.split(change, self._ends), self._of_pool, strict=True):
            more = Resources.of(zip(self._names, (counts @ capacities).tolist(), strict=True))
            self._limits.charge(name, more, nodes=int(counts.sum()))

    def new_types(self, pool: int) -> Mask:
        """By type of the pool (given by number), whether one more node of it stays within the limits."""
        capacities = self._of_pool[pool]
        if self._limits.shortage(self._pools[pool], NOTHING) is not None:  # the number of nodes
            return np.zeros(len(capacities), dtype=np.bool_)
        return _within(capacities, self._left(self._pools[pool]))

    def larger_types(self, pool: int, charged: Resources) -> Mask:
        """By type of the pool, whether a node that is now charged so much may become it."""
        return _within(self._of_pool[pool] - self.charges((charged,)), self._left(self._pools[pool]))

    def _left(self, pool: str) -> list[int]:
        left = self._limits.left(pool)
        return [max(-PLENTY, min(PLENTY, left.get(name, PLENTY))) for name in self._names]


def _within(more: Amounts, left: Sequence[int]) -> Mask:
    """Whether each row of `more` is left. A pool over its limit may still take what needs none of that resource."""
    return np.asarray(((more <= 0) | (more <= np.array(left, dtype=np.int64))).all(axis=1), dtype=np.bool_)


def is_reservation(offers: PoolOffers) -> bool:
    """Whether these offers stand for a reservation beside a NodePool."""
    return RESERVATION_MARK in offers.pool.name


def node_pool_of(offers: PoolOffers) -> str:
    """The name of the NodePool, with which that of a reservation's offers begins."""
    return offers.pool.name.partition(RESERVATION_MARK)[0]


def reservations_of(catalog: Offerings, view: ClusterView) -> dict[str, int]:
    """By name of a reservation, how many nodes are left of it.

    The catalog's number does not include NodeClaims that ask for reserved capacity and are not launched yet."""
    left = dict(catalog.reserved)
    for claim in view.node_claims if left else ():
        asked = Requirements.of(claim.requirements).both(Requirements.labels(claim.labels))
        values = asked.get(CAPACITY_TYPE_LABEL)
        is_counted = values is None or values.single != RESERVED or claim.condition("Launched") == "True"
        if is_counted or claim.deleting:
            continue
        rows = np.flatnonzero(catalog.table.matching(asked.only(catalog.table.keys))).tolist()
        for name in {catalog.reservations[row][0] for row in rows} & left.keys():
            left[name] = max(0, left[name] - 1)
    return left


def reservations_apart(offers: PoolOffers, left: Mapping[str, int]) -> list[PoolOffers]:
    """The offers without reserved offerings, followed by those of the pool's reservations. left: see `reservations_of`."""
    reserved = offers.rows & _rows(offers.offerings)
    if not reserved.any():
        return [offers]
    names = {offers.offerings.reservations[row][0] for row in np.flatnonzero(reserved).tolist()} & left.keys()
    plain = replace(offers, rows=offers.rows & ~reserved, reserved=reserved, _known={})
    return [plain, *(_reservation(offers, name) for name in sorted(names))]


def _rows(catalog: Offerings, name: str | None = None) -> Mask:
    return np.array([own != "" if name is None else own == name for own, _ in catalog.reservations], dtype=np.bool_)


def _reservation(offers: PoolOffers, name: str) -> PoolOffers:
    rows = offers.rows & _rows(offers.offerings, name)
    asked = [Requirement(CAPACITY_TYPE_LABEL, Operator.IN, (RESERVED,))]
    _, key = offers.offerings.reservations[int(np.flatnonzero(rows)[0])]
    if key:
        asked.append(Requirement(key, Operator.IN, (name,)))
    template = offers.pool.template
    # The API server refuses a requirement that lists fewer values than its minValues, and a reservation leaves only one.
    own = [replace(item, min_values=None) for item in template.requirements]
    named = f"{offers.pool.name}{RESERVATION_MARK}{name}"
    pool = replace(offers.pool, name=named, template=replace(template, requirements=(*own, *asked)))
    both = offers.template.both(Requirements.of(asked))
    return replace(offers, pool=pool, rows=rows, template=both, minimums=(), _known={})

"""Every way to buy nodes for a few pods from several NodePools, within their limits and what is left of reservations.

What the engine's answers for `small_markets` are compared with; see brute_force, which judges whether pods can be bound. A node
of a lighter NodePool counts only if some pod on it can have no new node of a heavier one, with the heavier ones used as they
are in the end: then there is an order in which the heaviest pool that could make a node did so each time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

from reconciler.model.nodes import (
    CAPACITY_TYPE_LABEL,
    INSTANCE_TYPE_LABEL,
    ZONE_LABEL,
    InstanceType,
    NodePool,
    Offering,
)
from reconciler.model.pods import PodShape
from reconciler.model.quantity import Resources
from tests.properties.brute_force import Spot, Way, can_be_bound, groupings
from tests.properties.small_markets import ZONES, Market

_CPU = "cpu"


@dataclass(frozen=True, slots=True)
class _Bought:
    pool: NodePool
    kind: InstanceType
    offering: Offering

    @property
    def reservation(self) -> str:
        return self.offering.requirements[-1].values[0] if self.offering.reservation_capacity is not None else ""


@dataclass(frozen=True, slots=True)
class _Seller:
    """A NodePool and what it may buy."""

    pool: NodePool
    goods: tuple[_Bought, ...]

    def choices(self, zone: str, requests: Resources) -> Iterator[_Bought]:
        """The cheapest type on demand, and each reservation, that holds the pods in that zone."""
        holding = [item for item in self.goods if item.offering.zone == zone and requests.fits(item.kind.allocatable)]
        plain = [item for item in holding if not item.reservation]
        if plain:
            yield min(plain, key=lambda item: item.offering.price)
        yield from (item for item in holding if item.reservation)


def cheapest_purchase(market: Market) -> Way | None:
    """The least dear way to place all pods, None when there is none."""
    sellers = tuple(_seller(pool, market.instance_types) for pool in market.node_pools)
    ways = sorted(_ways(market.shapes, sellers), key=lambda found: found.price)
    closed = _closed(market.shapes, sellers)
    return next((way for way in ways if can_be_bound(replace(way, closed=closed))), None)


def _closed(pods: Sequence[PodShape], sellers: Sequence[_Seller]) -> frozenset[tuple[int, str]]:
    """Pods and zones in which nobody can make a node for them, whatever else is made."""
    return frozenset(
        (number, zone)
        for number, pod in enumerate(pods)
        for zone in ZONES
        if not any(
            _is_within((item,))
            for seller in sellers
            for item in seller.goods
            if item.offering.zone == zone and pod.requests.fits(item.kind.allocatable)
        )
    )


def _seller(pool: NodePool, types: Sequence[InstanceType]) -> _Seller:
    asked = {item.key: item.values for item in pool.template.requirements}
    goods = tuple(
        _Bought(pool, kind, offering)
        for kind in types
        for offering in kind.offerings
        if kind.name in asked.get(INSTANCE_TYPE_LABEL, (kind.name,))
        if offering.zone in asked[ZONE_LABEL] and offering.capacity_type in asked[CAPACITY_TYPE_LABEL]
    )
    return _Seller(pool, goods)


def _ways(pods: tuple[PodShape, ...], sellers: Sequence[_Seller]) -> Iterator[Way]:
    zones = tuple(sorted({item.offering.zone for seller in sellers for item in seller.goods}))
    for where in groupings(len(pods), 0):
        new = max(where) + 1
        on = [[pod for pod, index in zip(pods, where, strict=True) if index == number] for number in range(new)]
        held = [Resources.total(pod.requests for pod in group) for group in on]
        choices = [
            [
                bought
                for zone in zones
                if all(value == zone for pod in group for _, value in pod.node_selector)
                for seller in sellers
                for bought in seller.choices(zone, requests)
            ]
            for group, requests in zip(on, held, strict=True)
        ]
        for chosen in product(*choices):
            if _is_within(chosen) and _is_heaviest(chosen, on, sellers):
                spots = tuple(
                    Spot(f"new-{number}", item.offering.zone, item.kind.allocatable, price=item.offering.price)
                    for number, item in enumerate(chosen)
                )
                yield Way(pods, where, spots, zones)


def _is_within(chosen: Sequence[_Bought]) -> bool:
    """The limits of pools, and what is left of reservations."""
    taken = Counter(item.reservation for item in chosen if item.reservation)
    left = {item.reservation: item.offering.reservation_capacity or 0 for item in chosen}
    return all(count <= left[name] for name, count in taken.items()) and all(
        _left(item.pool, chosen, resource) >= 0 for item in chosen for resource in dict(item.pool.limits or ())
    )


def _left(pool: NodePool, chosen: Sequence[_Bought], resource: str) -> int:
    limit = dict(pool.limits or ())[resource]
    own = [item for item in chosen if item.pool is pool]
    return limit - (len(own) if resource == "nodes" else sum(item.kind.capacity.get(resource) for item in own))


def _is_heaviest(chosen: Sequence[_Bought], on: Sequence[Sequence[PodShape]], sellers: Sequence[_Seller]) -> bool:
    for item, pods in zip(chosen, on, strict=True):
        heavier = [seller for seller in sellers if seller.pool.weight > item.pool.weight]
        if heavier and not any(
            all(not _can_open(seller, pod, item.offering.zone, chosen) for seller in heavier) for pod in pods
        ):
            return False
    return True


def _can_open(seller: _Seller, pod: PodShape, zone: str, chosen: Sequence[_Bought]) -> bool:
    """In that zone, or anywhere for pods to which no rule on zones applies."""
    for item in seller.goods:
        if item.offering.zone != zone and _minds_zones(pod):
            continue
        if item.reservation or not pod.requests.fits(item.kind.allocatable):
            continue
        if all(
            _left(seller.pool, chosen, resource) >= (1 if resource == "nodes" else item.kind.capacity.get(resource))
            for resource in dict(seller.pool.limits or ())
        ):
            return True
    return False


def _minds_zones(pod: PodShape) -> bool:
    keys = {term.topology_key for term in (*pod.pod_anti_affinity, *pod.pod_affinity)}
    keys |= {constraint.topology_key for constraint in pod.topology_spread}
    return bool(pod.node_selector) or ZONE_LABEL in keys

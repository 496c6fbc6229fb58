"""Every way to place a few pods, tried in order of price: what the engine's answers for small scenarios are compared with.

It shares nothing with the engine but the model. A way counts when there is an order in which kube-scheduler would bind each
pod to the node meant for it, with all nodes there from the start. Only what `small_scenarios` draws is judged: CPU and
memory, node selectors by zone, spread (DoNotSchedule), inter-pod affinity and anti-affinity inside one namespace. In one thing
Karpenter's rule is kept to, which is stricter: a zone in which a node can be made is a domain that spread looks at, node or no
node, and so is a host yet to come when any is made (unless asked to do without, as kube-scheduler alone would).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

from reconciler.model.nodes import HOSTNAME_LABEL, ZONE_LABEL, InstanceType
from reconciler.model.pods import PodAffinityTerm, PodShape
from reconciler.model.quantity import Resources


@dataclass(frozen=True, slots=True)
class Spot:
    """A node as one way has it, there or to be made. hostname: its label, which another may carry too, or None where it has none;
    bound: pods on it before."""

    hostname: str | None
    zone: str
    room: Resources
    bound: tuple[PodShape, ...] = ()
    price: float = 0.0

    def label(self, key: str) -> str | None:
        return self.hostname if key == HOSTNAME_LABEL else self.zone


@dataclass(frozen=True, slots=True)
class Way:
    """Which node each pod is on; pods and where are parallel."""

    pods: tuple[PodShape, ...]
    where: tuple[int, ...]
    spots: tuple[Spot, ...]
    zones: tuple[str, ...]
    hosts_to_come: bool = True
    closed: frozenset[tuple[int, str]] = frozenset()
    """Pods by their place among `pods`, with zones in which no node can be made for them."""

    @property
    def price(self) -> float:
        return sum(spot.price for spot in self.spots)


def cheapest_way(
    pods: Sequence[PodShape], there: Sequence[Spot], types: Sequence[InstanceType], *, hosts_to_come: bool = True
) -> Way | None:
    """The least dear way to place all pods, None when there is none. hosts_to_come: spread over hosts looks at one more,
    empty, when any is made."""
    ordered = tuple(sorted(pods, key=repr))
    ways = sorted(_ways(ordered, tuple(there), types), key=lambda way: way.price)
    if not hosts_to_come:
        ways = [replace(way, hosts_to_come=False) for way in ways]
    return next((way for way in ways if can_be_bound(way)), None)


def _ways(pods: tuple[PodShape, ...], there: tuple[Spot, ...], types: Sequence[InstanceType]) -> Iterator[Way]:
    """Ways that differ only in which of equal pods is where, or in the order of new nodes, are one."""
    zones = sorted({offering.zone for kind in types for offering in kind.offerings})
    shop = _Shop(types)
    firsts = [pods.index(pod) for pod in pods]
    seen = set()
    for where in groupings(len(pods), len(there)):
        new = max((*where, len(there) - 1)) + 1 - len(there)
        on = [
            tuple(first for first, at in zip(firsts, where, strict=True) if at == index)
            for index in range(len(there) + new)
        ]
        held = [
            Resources.total(
                pod.requests for pod, index in zip(pods, where, strict=True) if index == len(there) + number
            )
            for number in range(new)
        ]
        for chosen in product(zones, repeat=new):
            way = (*on[: len(there)], *sorted(zip(on[len(there) :], chosen, strict=True)))
            if way in seen:
                continue
            seen.add(way)
            made = [
                shop.cheapest_spot(number, zone, requests)
                for number, (zone, requests) in enumerate(zip(chosen, held, strict=True))
            ]
            spots = [spot for spot in made if spot is not None]
            if len(spots) == new:
                yield Way(pods, where, (*there, *spots), tuple(zones))


def groupings(pods: int, there: int) -> Iterator[tuple[int, ...]]:
    """Each pod on a node that is there, on a new node that an earlier pod is on, or on the next new one."""

    def extend(found: tuple[int, ...], nodes: int) -> Iterator[tuple[int, ...]]:
        if len(found) == pods:
            yield found
            return
        for index in range(nodes + 1):
            yield from extend((*found, index), max(nodes, index + 1))

    yield from extend((), there)


class _Shop:
    """What can be bought, cheapest first. The same is asked for in thousands of ways, so it is looked up once."""

    def __init__(self, types: Sequence[InstanceType]) -> None:
        offers = [
            (offering.price, offering.zone, room)
            for kind in types
            for room in (kind.allocatable,)
            for offering in kind.offerings
            if offering.available
        ]
        self._offers = sorted(offers, key=lambda offer: offer[0])
        self._known: dict[tuple[int, str, Resources], Spot | None] = {}

    def cheapest_spot(self, number: int, zone: str, requests: Resources) -> Spot | None:
        key = (number, zone, requests)
        if key not in self._known:
            fitting = ((price, room) for price, where, room in self._offers if where == zone and requests.fits(room))
            price, room = next(fitting, (0.0, None))
            self._known[key] = None if room is None else Spot(f"new-{number}", zone, room, price=price)
        return self._known[key]


def can_be_bound(way: Way) -> bool:
    """Looks for an order, pod by pod; which are bound decides all, so each set is looked at once. Equal pods on one node keep their order."""
    seen: set[frozenset[int]] = set()
    meant = list(zip(way.pods, way.where, strict=True))
    before = [{other for other in range(number) if meant[other] == meant[number]} for number in range(len(meant))]
    stack = [frozenset[int]()]
    while stack:
        bound = stack.pop()
        if len(bound) == len(way.pods):
            return True
        for number in range(len(way.pods)):
            following = bound | {number}
            if number in bound or following in seen or not before[number] <= bound:
                continue
            if _accepts(way, bound, number):
                seen.add(following)
                stack.append(following)
    return False


def _accepts(way: Way, bound: frozenset[int], number: int) -> bool:
    pod, spot = way.pods[number], way.spots[way.where[number]]
    beside = [way.pods[other] for other in bound if way.where[other] == way.where[number]]
    used = Resources.total(item.requests for item in (*spot.bound, *beside, pod))
    if not used.fits(spot.room) or not _selects(pod, spot):
        return False
    on: list[list[PodShape]] = [list(item.bound) for item in way.spots]
    for other in bound:
        on[way.where[other]].append(way.pods[other])
    return (
        _is_apart(pod, spot, way.spots, on)
        and _has_company(pod, spot, way.spots, on)
        and _is_balanced(number, spot, way, on)
    )


def _selects(pod: PodShape, spot: Spot) -> bool:
    return all(key == ZONE_LABEL and spot.zone == value for key, value in pod.node_selector)


def _matches(term: PodAffinityTerm, pod: PodShape) -> bool:
    return term.selector is not None and term.selector.matches(dict(pod.labels))


def _is_apart(pod: PodShape, spot: Spot, spots: Sequence[Spot], on: Sequence[Sequence[PodShape]]) -> bool:
    for other_spot, others in zip(spots, on, strict=True):
        for other in others:
            if not (pod.pod_anti_affinity or other.pod_anti_affinity):
                continue
            for owner, met in ((pod, other), (other, pod)):
                for term in owner.pod_anti_affinity:
                    near = spot.label(term.topology_key) == other_spot.label(term.topology_key)
                    if near and spot.label(term.topology_key) is not None and _matches(term, met):
                        return False
    return True


def _has_company(pod: PodShape, spot: Spot, spots: Sequence[Spot], on: Sequence[Sequence[PodShape]]) -> bool:
    """The first pod of its like needs none: nobody matches anywhere, and it matches all of its own terms. Nodes must have the labels."""
    terms = pod.pod_affinity
    if not terms:
        return True
    if any(spot.label(term.topology_key) is None for term in terms):
        return False
    company = [
        (other_spot, other)
        for other_spot, others in zip(spots, on, strict=True)
        for other in others
        if all(_matches(term, other) for term in terms)
        if any(other_spot.label(term.topology_key) is not None for term in terms)
    ]
    if not company:
        return all(_matches(term, pod) for term in terms)
    return all(
        any(other_spot.label(term.topology_key) == spot.label(term.topology_key) for other_spot, _ in company)
        for term in terms
    )


def _is_balanced(number: int, spot: Spot, way: Way, on: Sequence[Sequence[PodShape]]) -> bool:
    pod = way.pods[number]
    for constraint in pod.topology_spread:
        counts = _empty_domains(number, constraint.topology_key, way)
        for other_spot, others in zip(way.spots, on, strict=True):
            if not _selects(pod, other_spot):
                continue  # nodeAffinityPolicy: Honor
            matching = [
                other
                for other in others
                if constraint.selector is not None and constraint.selector.matches(dict(other.labels))
            ]
            domain = other_spot.label(constraint.topology_key)
            if domain is not None:
                counts[domain] = counts.get(domain, 0) + len(matching)
        itself = constraint.selector is not None and constraint.selector.matches(dict(pod.labels))
        own = spot.label(constraint.topology_key)
        least = min(counts.values(), default=0) if len(counts) >= (constraint.min_domains or 1) else 0
        if own is None or counts[own] + itself - least > constraint.max_skew:
            return False
    return True


def _empty_domains(number: int, key: str, way: Way) -> dict[str, int]:
    if key == HOSTNAME_LABEL:
        return {"a host yet to come": 0} if way.hosts_to_come and any(spot.price for spot in way.spots) else {}
    asked = way.pods[number].node_selector
    return {
        zone: 0 for zone in way.zones if all(value == zone for _, value in asked) and (number, zone) not in way.closed
    }

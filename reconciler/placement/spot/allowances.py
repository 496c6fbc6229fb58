"""What nodes may hold of a demand, so that its share of a spot offering can be kept at all: one node alone is in one offering.
Used by place, which places again where nodes would hold more.

Chunks that were on a node before stay there, over the share or not. What is new goes elsewhere, to new nodes if need be, as long
as that leaves none without a place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import fsum, isclose
from typing import Protocol, TypeVar

from reconciler.model.placement import Holding, Placement, read_holdings
from reconciler.model.refs import ObjectRef
from reconciler.model.spot import SPOT
from reconciler.placement.engine.batches import Allowance
from reconciler.placement.nodes.existing import Bins
from reconciler.placement.spot.accounts import (
    SpotAccounts,
    SpotOffering,
    accounts_of_bins,
    offerings_of_bin,
    offerings_of_planned,
)

Allowances = Mapping[ObjectRef, Allowance]
_MOST_TIMES = 16
"""Placements of one pass at most; each either keeps more of the share or asks for less of it."""


class Attempt(Protocol):
    """A placement, the bins that it was made for, and what nodes were allowed to hold."""

    @property
    def bins(self) -> Bins: ...

    @property
    def allowances(self) -> Allowances: ...

    @property
    def placement(self) -> Placement: ...


Answer = TypeVar("Answer", bound=Attempt)


def within_share(
    first: Answer, place_again: Callable[[Allowances], Answer], limits: Mapping[ObjectRef, int], *, always: bool
) -> Answer:
    """The placement that keeps most of the share. limits: most chunks of each demand on one offering; always: though no node
    holds more yet, since somebody is about to fill nodes anew.

    Smaller nodes that come to stand on the same offerings all the same are paid for in vain. So where a demand cannot keep the
    share, its nodes may hold as much as one offering comes to hold of it anyway, as long as none comes to hold more by that and
    it costs no more."""
    found = _kept(first, place_again, limits, always=always)
    reached = _reached(found, limits)
    while reached:
        larger = _kept(first, place_again, {**limits, **reached}, always=always)
        if missing(larger) > missing(found) or _dearer(larger, found):
            return found
        worse = _fuller(larger, found, limits)
        if not worse:
            return larger
        if not worse & reached.keys():
            return found
        reached = {demand: most for demand, most in reached.items() if demand not in worse}
    return found


def _kept(
    first: Answer, place_again: Callable[[Allowances], Answer], limits: Mapping[ObjectRef, int], *, always: bool
) -> Answer:
    """Placed with as many limits as it takes. Where a demand would lose a place to it, twice as much is allowed, and so on."""
    answer, slack = first, 1
    allowances: dict[ObjectRef, Allowance] = {}
    for _ in range(_MOST_TIMES):
        wider = {demand: most * slack for demand, most in limits.items()}
        wanted = _allowances(answer, allowances, wider, always=always)
        if wanted == allowances:
            return answer
        found = place_again(wanted)
        if missing(found) > missing(first):
            answer, allowances, slack = first, {}, 2 * slack
        else:
            answer, allowances = found, wanted
    return answer


def _reached(answer: Attempt, limits: Mapping[ObjectRef, int]) -> dict[ObjectRef, int]:
    """Of demands over the share, the most chunks on an offering that new nodes of theirs may become, where that is more than
    the share. What other offerings have had too much of before allows new nodes nothing."""
    crowded = {item.demand for item in answer.placement.crowded}
    if not crowded:
        return {}
    accounts = _accounts(answer, {demand: most for demand, most in limits.items() if demand in crowded})
    found: dict[ObjectRef, int] = {}
    for node in answer.placement.planned:
        load = accounts.load(node.holdings)
        for offering in offerings_of_planned(node) if load else ():
            for demand in load:
                most = accounts.held(offering, demand)
                if most > max(limits[demand], found.get(demand, 0)):
                    found[demand] = most
    return found


def _fuller(answer: Attempt, before: Attempt, limits: Mapping[ObjectRef, int]) -> set[ObjectRef]:
    """Demands over the share of which one offering comes to hold more than before, or a new node's offering does."""
    chunks = {item.demand: item.chunks for item in before.placement.crowded}
    reached = _reached(before, limits)
    more = {item.demand for item in answer.placement.crowded if item.chunks > chunks.get(item.demand, 0)}
    return more | {
        demand for demand, most in _reached(answer, limits).items() if most > reached.get(demand, limits[demand])
    }


def _dearer(answer: Attempt, before: Attempt) -> bool:
    """False where a price is not known."""
    if not (is_priced(answer) and is_priced(before)):
        return False
    now, then = price_of(answer), price_of(before)
    return now > then and not isclose(now, then)


def is_priced(answer: Attempt) -> bool:
    """Whether the price of every node to be made is known."""
    return all(node.price_known for node in answer.placement.planned)


def price_of(answer: Attempt) -> float:
    """Of all nodes to be made, USD an hour."""
    return fsum(node.price for node in answer.placement.planned)


def _accounts(answer: Attempt, limits: Mapping[ObjectRef, int]) -> SpotAccounts:
    numbers = {origin.name: number for number, origin in enumerate(answer.bins.origins)}
    there = {numbers[item.node or item.node_claim or ""]: item.holdings for item in answer.placement.occupied}
    accounts = accounts_of_bins(limits, answer.bins.origins, there)
    for node in answer.placement.planned:
        accounts.add(offerings_of_planned(node), accounts.load(node.holdings))
    return accounts


def missing(answer: Attempt) -> int:
    """Chunks without a place."""
    return sum(item.count for item in answer.placement.unplaced)


def _allowances(
    answer: Attempt, before: Allowances, limits: Mapping[ObjectRef, int], *, always: bool
) -> dict[ObjectRef, Allowance]:
    """Those from before, and what this placement shows to be needed beside them. Where one demand has to move, all that are on new
    spot nodes are limited, since it takes others' places."""
    found = dict(before)
    on_spot = [
        (demand, count)
        for node in answer.placement.planned
        if SPOT in node.capacity_types
        for demand, count in _counts(node.holdings).items()
        if demand in limits
    ]
    if always or any(count > limits[demand] for demand, count in on_spot):
        for demand, _ in on_spot:
            found[demand] = Allowance(limits[demand], found.get(demand, Allowance()).bins)
    for demand, bins in _fuller_bins(answer, limits).items():
        known = found.get(demand, Allowance())
        # New nodes will be needed in their place.
        found[demand] = Allowance(limits[demand], tuple(sorted((dict(known.bins) | bins).items())))
    return found


def _fuller_bins(answer: Attempt, limits: Mapping[ObjectRef, int]) -> dict[ObjectRef, dict[int, int]]:
    """How many chunks bins of spot offerings that have too many may hold of each demand: those that were there, and of new ones
    what is left of the share, in the order of the bins."""
    numbers = {origin.name: number for number, origin in enumerate(answer.bins.origins)}
    there: dict[tuple[ObjectRef, SpotOffering], list[tuple[int, int]]] = {}
    for occupied in answer.placement.occupied:
        number = numbers[occupied.node or occupied.node_claim or ""]
        for demand, count in _counts(occupied.holdings).items():
            for offering in offerings_of_bin(answer.bins.origins[number]) if demand in limits else ():
                there.setdefault((demand, offering), []).append((number, count))
    found: dict[ObjectRef, dict[int, int]] = {}
    for (demand, _), bins in sorted(there.items()):
        if sum(count for _, count in bins) <= limits[demand]:
            continue
        stayed = {number: min(count, _held_before(answer.bins, number, demand)) for number, count in bins}
        left = max(0, limits[demand] - sum(stayed.values()))
        for number, count in sorted(bins):
            more = min(left, count - stayed[number])
            left -= more
            own = found.setdefault(demand, {})
            own[number] = min(own.get(number, count), stayed[number] + more)
    return found


def _held_before(bins: Bins, number: int, demand: ObjectRef) -> int:
    words = bins.holding.get(number, "")
    return sum(count for (name, _), count in read_holdings(words).items() if name == str(demand))


def _counts(holdings: Sequence[Holding]) -> dict[ObjectRef, int]:
    counts: dict[ObjectRef, int] = {}
    for holding in holdings:
        counts[holding.demand] = counts.get(holding.demand, 0) + holding.count
    return counts

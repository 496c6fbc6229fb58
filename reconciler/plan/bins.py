"""Every node and NodeClaim with what it holds now and whether it is protected. And new NodeClaims: their names, and who makes them in a forecast.

A name follows from the pool, from what is asked for, and from how many equal NodeClaims come before it. Names that are taken are
skipped. A pass may be repeated, because the last one was cut short or its result is not visible yet. It then asks for
the very same objects, and nothing is made twice."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from types import MappingProxyType

from reconciler.model.changes import NodeClaimCreation
from reconciler.model.demand import Demand, Keeper, autoscaler_of, keeper_of
from reconciler.model.machines import Machine
from reconciler.model.nodes import HELD_TAINT, INITIALIZED_LABEL
from reconciler.model.placement import Holding, OccupiedBin, PlannedNode, chunk_words, read_holdings, words_of_holdings
from reconciler.model.provisioning_requests import reserved_taints
from reconciler.model.refs import POD_KIND, ObjectRef, by_key
from reconciler.model.view import ClusterView


@dataclass(frozen=True, slots=True)
class Bin(Machine):
    """A machine with what it holds in this plan."""

    chunks: tuple[Holding, ...] = ()
    """Of buffers and requests."""
    pods: tuple[Holding, ...] = ()
    """Pending pods that are to run here."""
    in_use: bool = False
    """Whether real pods other than daemons run here."""
    watched: tuple[Holding, ...] = ()
    """Chunks whose capacity somebody else keeps, so that the node is not held for them."""
    is_served_elsewhere: bool = False
    """Whether an autoscaler also looks for room for every one of its chunks."""
    scarce: int = 0
    """How many taints it is to get that keep its room for pods with few other places."""

    @property
    def is_karpenters(self) -> bool:
        return self.node_claim is not None or bool(self.node_pool)

    @property
    def is_placeholder(self) -> bool:
        """Whether headroom made its NodeClaim."""
        return any(side.is_placeholder for side in self.sides)

    @property
    def is_on_its_way(self) -> bool:
        """Not there yet: no node, or a node of Karpenter's that is not initialized."""
        if self.node is None:
            return True
        return self.is_karpenters and self.node.label(INITIALIZED_LABEL) != "true"

    @property
    def is_protected(self) -> bool:
        """Karpenter leaves it alone: headroom's mark is on node and NodeClaim, or a person's do-not-disrupt on the one that counts.

        Karpenter reads the node's annotations once the node is there, and the NodeClaim's before.
        """
        counted = self.node if self.node is not None else self.node_claim
        if counted is not None and counted.is_kept and not counted.is_held:
            return True
        return all(side.is_kept and side.is_held for side in self.sides)

    @property
    def is_kept_by_a_person(self) -> bool:
        """Whether node or NodeClaim has a do-not-disrupt that is not headroom's."""
        return any(side.is_kept and not side.is_held for side in self.sides)

    @property
    def is_tainted(self) -> bool:
        """It carries the taint of held nodes, so Karpenter plans no pods onto it."""
        return self.node is not None and HELD_TAINT in self.node.taints

    @property
    def is_reserved(self) -> bool:
        """For the pods of one request: a taint keeps all others off."""
        return self.node is not None and bool(reserved_taints(self.node.taints))

    @property
    def says_what_it_holds(self) -> bool:
        """Its annotation is up to date, so that the next pass can read its chunks there."""
        return read_holdings(self.held_for) == read_holdings(words_of_holdings(self.chunks))


def by_node_pool(bins: Iterable[Bin]) -> dict[str, list[Bin]]:
    """Bins by NodePool, "" for nodes of none. Made once, since filtering all bins for each of hundreds of pools takes seconds."""
    return by_key((item.node_pool, item) for item in bins)


def standing_by_pool(bins: Iterable[Bin]) -> Counter[str]:
    """How many of the bins stay, by NodePool: those that are not on their way out."""
    return Counter(item.node_pool for item in bins if not item.is_going)


def all_bins(
    view: ClusterView,
    occupied: Iterable[OccupiedBin] = (),
    watched: Collection[ObjectRef] = (),
    served_elsewhere: Collection[ObjectRef] = (),
    scarce: Mapping[str, int] = MappingProxyType({}),
    shapeless: Collection[ObjectRef] = (),
) -> tuple[Bin, ...]:
    """All bins by name; a NodeClaim and its node are one bin. watched: demands whose capacity somebody else keeps. served_elsewhere:
    demands for which an autoscaler looks for room too. scarce: by name of a bin, how many taints of scarce room it is to get.
    shapeless: demands whose chunks stay where they are, although they could not be placed."""
    staying = {str(ref): ref for ref in shapeless}
    held = {(place.node is not None, place.node or place.node_claim or ""): place.holdings for place in occupied}
    bins: list[Bin] = []
    for machine in view.machines:
        node, claim = machine.node, machine.node_claim
        on_node = () if node is None else held.get((True, node.name), ())
        on_claim = () if claim is None else held.get((False, claim.name), ())
        in_use = node is not None and node.name in view.nodes_in_use
        made = Bin(node, claim, in_use=in_use, scarce=scarce.get(machine.name, 0))
        holdings = (*on_node, *on_claim, *(_said(made, staying) if staying else ()))
        if holdings:  # of few nodes in a large cluster
            made = _holding(made, holdings, watched, served_elsewhere)
        bins.append(made)
    return tuple(sorted(bins, key=lambda item: (item.name, item.node is None)))


def _said(item: Bin, demands: Mapping[str, ObjectRef]) -> Iterable[Holding]:
    """The chunks of these demands, by what node or NodeClaim says that it holds."""
    for (name, group), count in read_holdings(item.held_for).items():
        if name in demands:
            yield Holding(demands[name], group, count)


def _holding(
    item: Bin, holdings: tuple[Holding, ...], watched: Collection[ObjectRef], served_elsewhere: Collection[ObjectRef]
) -> Bin:
    others = [holding for holding in holdings if holding.demand.kind != POD_KIND]
    chunks = tuple(holding for holding in others if holding.demand not in watched)
    return replace(
        item,
        chunks=chunks,
        pods=tuple(holding for holding in holdings if holding.demand.kind == POD_KIND),
        watched=tuple(holding for holding in others if holding.demand in watched),
        is_served_elsewhere=bool(chunks) and all(holding.demand in served_elsewhere for holding in chunks),
    )


LONGEST = 63
"""Characters of a DNS-1123 label, which a NodeClaim's name becomes in several labels."""
_INFIX = "-headroom-"
_DIGITS = 10


def creations(planned: Iterable[PlannedNode], taken: Iterable[str]) -> tuple[NodeClaimCreation, ...]:
    """One for each planned node, in the same order. taken: names of all NodeClaims, also of those being deleted."""
    used = set(taken)
    next_ordinals: dict[str, int] = {}
    made: list[NodeClaimCreation] = []
    for node in planned:
        content = _content(node)
        ordinal = next_ordinals.get(content, 0)
        while (name := _name(node.node_pool, content, ordinal)) in used:
            ordinal += 1
        next_ordinals[content] = ordinal + 1
        used.add(name)
        made.append(NodeClaimCreation(name, node, f"for {chunk_words(node.holdings)}"))
    return tuple(made)


def names_of(node: PlannedNode, count: int) -> list[str]:
    """The first names of NodeClaims that ask for this."""
    return _names(node.node_pool, _content(node), count)


@lru_cache(maxsize=64)  # hundreds of planned nodes may be alike
def _names(pool: str, content: str, count: int) -> list[str]:
    return [_name(pool, content, ordinal) for ordinal in range(count)]


def _content(node: PlannedNode) -> str:
    """What the NodeClaim's spec is made of. Its chunks are left out, since they may change while the node is on its way."""
    return json.dumps(
        [
            node.node_pool,
            node.instance_types,
            node.zones,
            node.capacity_types,
            node.requests.amounts,
            [[item.key, item.operator, item.values, item.min_values] for item in node.requirements],
            node.labels,
        ],
        separators=(",", ":"),
    )


def _name(pool: str, content: str, ordinal: int) -> str:
    digest = hashlib.sha256(f"{ordinal}:{content}".encode()).hexdigest()[:_DIGITS]
    front = pool[: LONGEST - len(_INFIX) - _DIGITS].rstrip("-.")
    return f"{front}{_INFIX}{digest}"


def made_by_others(created: Iterable[NodeClaimCreation], demands: Iterable[Demand]) -> tuple[NodeClaimCreation, ...]:
    """Adds the makers to each node that holds only demands for which headroom makes no nodes."""
    makers = {demand.ref: maker for demand in demands if (maker := maker_of(demand))}
    return tuple(_made(item, makers) for item in created)


def maker_of(demand: Demand) -> str:
    """Who makes nodes for the demand, in words; "" for headroom."""
    match keeper_of(demand):
        case Keeper.AUTOSCALER:
            return autoscaler_of(demand) or "the autoscaler that serves it"
        case Keeper.BALLOON_PODS:
            return "the autoscaler, for its balloon pods"
    return ""


def _made(item: NodeClaimCreation, makers: Mapping[ObjectRef, str]) -> NodeClaimCreation:
    its_makers = {makers.get(holding.demand, "") for holding in item.planned.holdings}
    if not its_makers or "" in its_makers:
        return item
    maker = " and ".join(sorted(its_makers))
    return replace(item, made_by=maker, reason=f"{item.reason}, made by {maker}")

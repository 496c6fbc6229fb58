"""Every node and NodeClaim with what it holds now and whether it is protected."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from reconciler.model.nodes import (
    DISRUPTED_TAINT,
    DO_NOT_DISRUPT,
    HELD_ANNOTATION,
    HELD_TAINT,
    HOLDS_ANNOTATION,
    INITIALIZED_LABEL,
    NODEPOOL_LABEL,
    PLACEHOLDER_LABEL,
    SCARCE_TAINT,
    Node,
    NodeClaim,
)
from reconciler.model.placement import Holding, OccupiedBin, read_holdings, words_of_holdings
from reconciler.model.provisioning_requests import reserved_taints
from reconciler.model.refs import POD_KIND, ObjectRef
from reconciler.model.view import ClusterView


@dataclass(frozen=True, slots=True)
class Bin:
    """A node with its NodeClaim, either of which may be missing. chunks: of buffers and requests; pods: pending pods that
    are to run here; in_use: real pods other than daemons run here. watched: chunks whose capacity somebody else keeps, so the node is not
    held for them. is_served_elsewhere: an autoscaler also looks for room for every one of its chunks. is_scarce: pods with few other
    places need its room."""

    node: Node | None
    claim: NodeClaim | None
    chunks: tuple[Holding, ...] = ()
    pods: tuple[Holding, ...] = ()
    in_use: bool = False
    watched: tuple[Holding, ...] = ()
    is_served_elsewhere: bool = False
    is_scarce: bool = False

    @property
    def name(self) -> str:
        """The node's, or the NodeClaim's while there is no node."""
        if self.node is not None:
            return self.node.name
        assert self.claim is not None
        return self.claim.name

    @property
    def sides(self) -> tuple[Node | NodeClaim, ...]:
        if self.claim is not None and self.node is not None:
            return self.claim, self.node
        return tuple(side for side in (self.claim, self.node) if side is not None)

    def label(self, key: str) -> str | None:
        """The label's value, the node's first."""
        return next((value for side in reversed(self.sides) if (value := side.label(key)) is not None), None)

    @property
    def node_pool(self) -> str:
        return next((pool for side in self.sides if (pool := side.label(NODEPOOL_LABEL))), "")

    @property
    def is_karpenters(self) -> bool:
        return self.claim is not None or bool(self.node_pool)

    @property
    def is_placeholder(self) -> bool:
        return any(side.label(PLACEHOLDER_LABEL) == "true" for side in self.sides)

    @property
    def is_going(self) -> bool:
        """Whether it is being deleted or drained, for any reason."""
        tainted = self.node is not None and any(taint.key == DISRUPTED_TAINT for taint in self.node.taints)
        return tainted or any(side.deleting for side in self.sides)

    @property
    def is_on_its_way(self) -> bool:
        """Not there yet: no node, or a node of Karpenter's that is not initialized."""
        if self.node is None:
            return True
        return self.is_karpenters and self.node.label(INITIALIZED_LABEL) != "true"

    @property
    def is_marked(self) -> bool:
        """Its node or its NodeClaim carries headroom's own mark."""
        return any(is_marked(side) for side in self.sides)

    @property
    def is_protected(self) -> bool:
        """Karpenter leaves it alone: headroom's mark is on node and NodeClaim, or a person's do-not-disrupt on the one that counts.

        Karpenter reads the node's annotations once the node is there, and the NodeClaim's before.
        """
        counted = self.node if self.node is not None else self.claim
        if counted is not None and is_kept(counted) and not is_marked(counted):
            return True
        return all(is_kept(side) and is_marked(side) for side in self.sides)

    @property
    def is_tainted(self) -> bool:
        """It carries the taint of held nodes, so Karpenter plans no pods onto it."""
        return self.node is not None and HELD_TAINT in self.node.taints

    @property
    def has_scarce_room(self) -> bool:
        """It carries the taint of scarce room, so kube-scheduler sends pods elsewhere that have other places to go."""
        return self.node is not None and SCARCE_TAINT in self.node.taints

    @property
    def is_reserved(self) -> bool:
        """For the pods of one request: a taint keeps all others off."""
        return self.node is not None and bool(reserved_taints(self.node.taints))

    @property
    def held_before(self) -> dict[tuple[str, int], int]:
        """Chunks by demand and group, as its annotation says. The NodeClaim's counts only while there is no node."""
        return read_holdings(
            next((text for side in reversed(self.sides) if (text := side.annotation(HOLDS_ANNOTATION))), "")
        )

    @property
    def says_what_it_holds(self) -> bool:
        """Its annotation is up to date, so that the next pass can read its chunks there."""
        return self.held_before == read_holdings(words_of_holdings(self.chunks))


def is_marked(side: Node | NodeClaim) -> bool:
    return side.annotation(HELD_ANNOTATION) == "true"


def is_kept(side: Node | NodeClaim) -> bool:
    return side.annotation(DO_NOT_DISRUPT) == "true"


def by_node_pool(bins: Iterable[Bin]) -> dict[str, list[Bin]]:
    """Bins by NodePool, "" for nodes of none. Made once, since filtering all bins for each of hundreds of pools takes seconds."""
    pools: dict[str, list[Bin]] = {}
    for item in bins:
        pools.setdefault(item.node_pool, []).append(item)
    return pools


def all_bins(
    view: ClusterView,
    occupied: Iterable[OccupiedBin] = (),
    watched: Collection[ObjectRef] = (),
    served_elsewhere: Collection[ObjectRef] = (),
    scarce: Collection[str] = (),
) -> tuple[Bin, ...]:
    """All bins by name; a NodeClaim and its node are one bin. watched: demands whose capacity somebody else keeps. served_elsewhere:
    demands for which an autoscaler looks for room too. scarce: names of bins whose room pods with few other places need."""
    held = {(place.node is not None, place.node or place.node_claim or ""): place.holdings for place in occupied}
    bins: list[Bin] = []
    for machine in view.machines:
        node, claim = machine.node, machine.node_claim
        on_node = () if node is None else held.get((True, node.name), ())
        on_claim = () if claim is None else held.get((False, claim.name), ())
        holdings = (*on_node, *on_claim)
        in_use = node is not None and node.name in view.nodes_in_use
        made = _bin(node, claim, holdings, watched, in_use=in_use)
        if made.chunks and all(holding.demand in served_elsewhere for holding in made.chunks):
            made = replace(made, is_served_elsewhere=True)
        bins.append(replace(made, is_scarce=True) if made.name in scarce else made)
    return tuple(sorted(bins, key=lambda item: (item.name, item.node is None)))


def _bin(
    node: Node | None,
    claim: NodeClaim | None,
    holdings: tuple[Holding, ...],
    watched: Collection[ObjectRef],
    *,
    in_use: bool,
) -> Bin:
    if not holdings:  # most nodes of a large cluster
        return Bin(node, claim, in_use=in_use)
    pods = tuple(holding for holding in holdings if holding.demand.kind == POD_KIND)
    others = tuple(holding for holding in holdings if holding.demand.kind != POD_KIND)
    chunks = tuple(holding for holding in others if holding.demand not in watched)
    return Bin(node, claim, chunks, pods, in_use, tuple(holding for holding in others if holding.demand in watched))

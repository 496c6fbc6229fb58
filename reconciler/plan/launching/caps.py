"""Caps on what one pass may make, and the nodes of a placement that are not made: beyond a cap, or without a template.

Demands are cut from the end of their order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from reconciler.model.changes import NodeClaimCreation
from reconciler.model.demand import Demand
from reconciler.model.nodes import ATTEMPT_LABEL
from reconciler.model.placement import Cause, Placement, PlannedNode
from reconciler.model.quantity import Resources
from reconciler.model.refs import POD_KIND, ObjectRef, counted
from reconciler.model.rules import Caps
from reconciler.plan.bins import Bin, standing_by_pool
from reconciler.plan.cost import Prices

MOST_IN_A_WAVE = 500
"""Most new nodes in one pass for demands that are placed as a whole: writing them takes about half a minute."""
_LEAST_USD = 1e-6
"""USD an hour. Less than this over the cap comes from adding prices: three nodes of $0.10 are a little more than $0.30."""
COST_NOTE = "nodes whose template fails count in the 30 days as if it were mended, but not in the hourly price"
_KINDS = ("NodeClaim", "NodePool")


@dataclass(frozen=True, slots=True)
class Cut:
    """A node that is not made in this pass."""

    node: PlannedNode
    why: str
    """A sentence that names the cap and its setting."""
    cause: Cause = Cause.BEYOND_A_CAP
    passing: bool = False
    """Whether the next pass may make it even if nothing changes."""
    refused: frozenset[ObjectRef] = frozenset()
    """Demands on it that were then placed again without new nodes. If there are none, everything on it is unplaced."""

    @property
    def waits(self) -> str:
        return f"{_fate(one=True, passing=self.passing)}: {self.why}"


@dataclass(frozen=True, slots=True)
class Capped:
    """What caps leave of a placement."""

    kept: tuple[PlannedNode, ...]
    """Nodes to make now, in the planned order."""
    cuts: tuple[Cut, ...] = ()
    """In the demands' order."""
    later: tuple[PlannedNode, ...] = ()
    """Nodes that no cap forbids, for the next waves, in the planned order."""
    refused: frozenset[ObjectRef] = frozenset()
    """Demands that are placed as a whole and over a cap for longer than this pass. Without them, demands that share their nodes may get nodes."""

    def cutting(self, cut_of: Callable[[PlannedNode], Cut | None]) -> Capped:
        """The same without the nodes for which `cut_of` has a cut. It is asked in the planned order."""
        found = [(node, cut_of(node)) for node in self.kept]
        cuts = tuple(cut for _, cut in found if cut is not None)
        return replace(self, kept=tuple(node for node, cut in found if cut is None), cuts=(*self.cuts, *cuts))


@dataclass(frozen=True, slots=True)
class Standing:
    """What exists before a pass."""

    price: float = 0.0
    """USD an hour of all nodes."""
    nodes: Mapping[str, int] = field(default_factory=dict)
    """How many, by NodePool."""
    made: Mapping[ObjectRef, int] = field(default_factory=dict)
    """How many nodes the attempt of a demand already has, if it is placed as a whole."""


def within_caps(
    planned: Sequence[PlannedNode],
    caps: Caps,
    standing: Standing,
    *,
    order: Mapping[ObjectRef, int],
    whole: Collection[ObjectRef] = (),
) -> Capped:
    """order: position of each demand; whole: demands that get all of their nodes or none.

    A node beyond a cap of the whole pass ends it for all that come after. So a demand of lower rank never gets what one of
    higher rank was refused. A full pool stops only its own nodes. Nodes that hold pending pods are let through: they are
    Karpenter's to make and are here only to be looked at. A demand that is placed as a whole and needs more nodes than a
    pass may make gets them in a pass of its own.
    """
    account = _Account(caps, standing)
    refused: dict[int, Cut] = {}
    later: set[int] = set()
    dropped: set[ObjectRef] = set()
    end: _Refusal | None = None
    for unit in _units(planned, order, frozenset(whole)):
        nodes = [planned[index] for index in unit.indexes]
        refusal = account.too_large(unit) or end or account.beyond(unit, nodes)
        if refusal is not None:
            refused |= {index: Cut(planned[index], refusal.why, passing=refusal.passing) for index in unit.indexes}
            if not refusal.passing:
                dropped.update(unit.whole if refusal is end else _dropped(refusal, order))
            end = refusal if refusal.ends_pass else end
            continue
        later.update(unit.indexes[MOST_IN_A_WAVE:])
        account.take(nodes[:MOST_IN_A_WAVE])
    kept = tuple(node for index, node in enumerate(planned) if index not in refused and index not in later)
    waiting = tuple(node for index, node in enumerate(planned) if index in later)
    return Capped(kept, tuple(refused.values()), waiting, frozenset(dropped))


def _dropped(refusal: _Refusal, order: Mapping[ObjectRef, int]) -> Collection[ObjectRef]:
    """Of demands that exceed a cap together, those that come last: the others may have room without them."""
    if not refusal.together or not refusal.demands:
        return refusal.demands
    demands = sorted(refusal.demands, key=lambda ref: order.get(ref, len(order)))
    return demands[len(demands) - max(1, len(demands) // 2) :]


@dataclass(frozen=True, slots=True)
class _Refusal:
    """why, passing: as in `Cut`."""

    why: str
    passing: bool = False
    demands: frozenset[ObjectRef] = frozenset()
    """Those placed as a whole that it is about."""
    together: bool = False
    """Whether any one of them alone might get its nodes."""
    ends_pass: bool = False
    """Whether it holds for all nodes that come after."""


class _Account:
    def __init__(self, caps: Caps, standing: Standing) -> None:
        self._caps = caps
        self._standing = standing
        self._made = 0
        self._price = standing.price
        self._nodes = Counter(standing.nodes)

    def too_large(self, unit: _Unit) -> _Refusal | None:
        """The cap on the nodes of one request, if it is exceeded."""
        most = self._caps.nodes_per_request
        made = self._standing.made
        demands = frozenset(ref for ref, count in unit.whole.items() if count and count + made.get(ref, 0) > most)
        if not most or not demands:
            return None
        return _Refusal(f"at most {counted(most, 'node')} for one request (caps.nodesPerRequest)", demands=demands)

    def beyond(self, unit: _Unit, nodes: Sequence[PlannedNode]) -> _Refusal | None:
        """The cap on all nodes or on those of a NodePool that is exceeded with these."""
        caps = self._caps
        price = sum(node.price for node in nodes)
        alone = bool(unit.whole) and not self._made
        most = caps.new_nodes_per_pass
        if most and not alone and self._made + len(nodes) > most:
            why = f"at most {counted(most, 'node')} made in a pass (caps.newNodesPerPass)"
            return _Refusal(why, passing=True, ends_pass=True)
        if caps.price_per_hour and self._price + price > caps.price_per_hour + _LEAST_USD:
            why = f"at most ${caps.price_per_hour:,.2f} an hour for all nodes (caps.pricePerHour)"
            least = min((node.price for node in nodes), default=0.0)
            together = self._price + least <= caps.price_per_hour + _LEAST_USD
            return _Refusal(why, demands=frozenset(unit.whole), together=together, ends_pass=True)
        by_pool = Counter(node.node_pool for node in nodes)
        full = (
            pool
            for pool, count in sorted(by_pool.items())
            if caps.nodes_per_pool and self._nodes[pool] + count > caps.nodes_per_pool
        )
        pool = next(full, None)
        if pool is None:
            return None
        why = f"at most {counted(caps.nodes_per_pool, 'node')} in NodePool {pool} (caps.nodesPerPool)"
        there = (holding.demand for node in nodes if node.node_pool == pool for holding in node.holdings)
        together = self._nodes[pool] < caps.nodes_per_pool
        return _Refusal(why, demands=frozenset(unit.whole).intersection(there), together=together)

    def take(self, nodes: Sequence[PlannedNode]) -> None:
        self._made += len(nodes)
        self._price += sum(node.price for node in nodes)
        self._nodes.update(node.node_pool for node in nodes)


@dataclass(slots=True)
class _Unit:
    """Nodes that are made together or not at all. whole: the demands for which that is so, with the number of nodes made for
    each. A node that several share is made for the first of them."""

    indexes: list[int]
    whole: Counter[ObjectRef]


def _units(
    planned: Sequence[PlannedNode], order: Mapping[ObjectRef, int], whole: frozenset[ObjectRef]
) -> Iterable[_Unit]:
    """Units in the demands' order. Demands that are placed as a whole and share a node are in one unit."""
    of_demand: dict[ObjectRef, _Unit] = {}
    units: dict[int, _Unit] = {}
    for index in sorted(range(len(planned)), key=lambda place: (_rank(planned[place], order), place)):
        holdings = planned[index].holdings
        if any(holding.demand.kind == POD_KIND for holding in holdings):
            continue
        demands = dict.fromkeys(holding.demand for holding in holdings if holding.demand in whole)
        joined = {id(unit): unit for ref in demands if (unit := of_demand.get(ref)) is not None}
        unit = next(iter(joined.values()), None)
        if unit is None:
            unit = units[index] = _Unit([], Counter())
        unit.indexes.append(index)
        unit.whole.update(dict.fromkeys(demands, 0))
        unit.whole.update(sorted(demands, key=lambda ref: order.get(ref, len(order)))[:1])
        for other in joined.values():
            if other is not unit:
                unit.indexes += other.indexes
                unit.whole.update(other.whole)
                units = {first: kept for first, kept in units.items() if kept is not other}
        of_demand |= dict.fromkeys(unit.whole, unit)
    return units.values()


def _rank(node: PlannedNode, order: Mapping[ObjectRef, int]) -> list[tuple[int, int]]:
    """That of the first demand that it serves; of nodes with the same one, that with most of its chunks comes first. The end
    ranks after every demand, so that of equal beginnings the longer comes first."""
    held = sorted((order.get(holding.demand, len(order)), -holding.count) for holding in node.holdings)
    return [*held, (len(order) + 1, 0)]


def cap_notes(capped: Capped) -> tuple[str, ...]:
    """One for each cap that was met, and one about waves to come."""
    counts = Counter((cut.why, cut.passing) for cut in capped.cuts)
    if capped.later:
        counts[f"at most {counted(MOST_IN_A_WAVE, 'node')} of requests made at once", True] = len(capped.later)
    return tuple(
        f"{counted(count, 'node')} {_fate(one=count == 1, passing=passing)}: {why}"
        for (why, passing), count in sorted(counts.items())
    )


def cost_notes(capped: Capped) -> tuple[str, ...]:
    """Says why the hourly price after this pass is below the cost over 30 days. Nodes of refused demands are in neither."""
    waiting = [
        cut.node
        for cut in capped.cuts
        if cut.cause in {Cause.BEYOND_A_CAP, Cause.PODS_FIRST, Cause.PROBED} and not cut.refused
    ]
    waiting += capped.later
    if not waiting:
        return ()
    all_known = all(node.price_known for node in waiting)
    price = f" (${sum(node.price for node in waiting):,.2f}/h)" if all_known else ""
    are = "is" if len(waiting) == 1 else "are"
    more = f"{counted(len(waiting), 'node')}{price} {are} beyond what this pass makes"
    return (f"{more}: the cost over 30 days counts {'it' if are == 'is' else 'them'}, the hourly price does not",)


def _fate(*, one: bool, passing: bool) -> str:
    if passing:
        return f"{'waits' if one else 'wait'} for a later pass"
    return f"{'is' if one else 'are'} not made"


def made_in_attempts(bins: Iterable[Bin], demands: Iterable[Demand]) -> dict[ObjectRef, int]:
    attempts = {
        demand.request.record.attempt_label: demand.ref
        for demand in demands
        if demand.request is not None and demand.request.record.under_way
    }
    claims = [item.node_claim for item in bins if item.node_claim is not None and not item.is_going] if attempts else []
    labels = (claim.label(ATTEMPT_LABEL) or "" for claim in claims)
    return Counter(attempts[label] for label in labels if label in attempts)


def capped_nodes(
    planned: Sequence[PlannedNode], demands: Sequence[Demand], bins: Sequence[Bin], prices: Prices, caps: Caps
) -> Capped:
    """demands: in the order of placement."""
    price = sum(prices.of(item) or 0.0 for item in bins if not item.is_going)
    return within_caps(
        planned,
        caps,
        Standing(price, standing_by_pool(bins), made_in_attempts(bins, demands)),
        order={demand.ref: index for index, demand in enumerate(demands)},
        whole={demand.ref for demand in demands if demand.whole},
    )


def after_pods(capped: Capped, pods_first: Mapping[str, Iterable[Resources]], apart: Collection[ObjectRef]) -> Capped:
    """Cuts nodes that pods would take at once which are about to get nodes of their own. pods_first: what these pods request, by NodePool.
    apart: demands whose nodes do not wait."""

    def cut_of(node: PlannedNode) -> Cut | None:
        taken = any(requests.fits(node.requests) for requests in pods_first.get(node.node_pool, ()))
        if not taken or any(item.demand in apart for item in node.holdings):
            return None
        return Cut(node, "Karpenter first chooses nodes for pods that wait", Cause.PODS_FIRST, passing=True)

    return capped.cutting(cut_of)


def refused_cuts(capped: Capped) -> tuple[Cut, ...]:
    """The cut nodes of demands that are then placed again without new nodes."""
    refused = (capped.refused.intersection(holding.demand for holding in cut.node.holdings) for cut in capped.cuts)
    return tuple(replace(cut, refused=refs) for cut, refs in zip(capped.cuts, refused, strict=True) if refs)


def still_refused(cuts: Sequence[Cut], placement: Placement) -> tuple[Cut, ...]:
    """The cuts of which some demand is still unplaced; the others found room on existing nodes."""
    unplaced = {item.demand for item in placement.unplaced}
    return tuple(cut for cut in cuts if cut.refused & unplaced)


def without_unrendered(
    created: Sequence[NodeClaimCreation], capped: Capped, unrendered: Mapping[ObjectRef, str]
) -> tuple[tuple[NodeClaimCreation, ...], Capped]:
    """The creations that can be made, and cuts with the others added. unrendered: the reason, by object.

    A NodeClaim copies its NodePool, so it waits for that, too. Nodes for pending pods need none, since Karpenter makes them.
    """
    claims, pools = ({ref.name: why for ref, why in unrendered.items() if ref.kind == kind} for kind in _KINDS)
    kept: list[NodeClaimCreation] = []
    cuts: list[Cut] = []
    for item in created:
        why = claims.get(item.name) or pools.get(item.planned.node_pool)
        if why is None or any(holding.demand.kind == POD_KIND for holding in item.planned.holdings):
            kept.append(item)
        else:
            cuts.append(Cut(item.planned, why, Cause.TEMPLATE_FAILED))
    return tuple(kept), replace(capped, cuts=(*capped.cuts, *cuts))

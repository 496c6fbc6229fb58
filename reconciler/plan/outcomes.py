"""What becomes of each demand: how many chunks are where and in which domains, and why the others have no place.

Domains go by the topology labels of the demand's spread constraints and pod (anti-)affinity. The hostname is left out, since a node's name
says as much.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from operator import attrgetter

from reconciler.model.buffers import Fulfilment
from reconciler.model.changes import DemandOutcome, DomainCount, NodeClaimCreation, PendingOutcome
from reconciler.model.conditions import Availability
from reconciler.model.demand import Demand
from reconciler.model.nodes import (
    CAPACITY_TYPE_LABEL,
    HOSTNAME_LABEL,
    INSTANCE_TYPE_LABEL,
    ZONE_LABEL,
    NodeClaim,
    node_claim_ref,
    node_pool_ref,
)
from reconciler.model.placement import (
    Cause,
    Holding,
    PlannedNode,
    Unplaced,
    UnplacedReason,
    first_sentence,
    read_holdings,
)
from reconciler.model.provisioning_requests import Phase, RequestState
from reconciler.model.refs import ObjectRef
from reconciler.model.requirements import listed_values
from reconciler.plan.bins import Bin
from reconciler.plan.buffers.keeping import provisioning
from reconciler.plan.launching.caps import Cut

MOST_OF_A_REASON = 5
"""Sentences for one reason: in a cluster with many NodePools a few are enough to see what is wrong."""
_ORDER = attrgetter("order")
_UNSEEN = timedelta(minutes=1)
"""How old a NodeClaim without any condition must be until Karpenter is asked for."""
_FIRST = 100
"""Comes before any reason that placement gives."""


@dataclass(slots=True)
class _Tally:
    """on_its_way: those of `existing` whose node is not ready to take pods yet. unlaunched: in words, the first of its NodeClaims
    that could not be made or launched so far. unseen: likewise, the first that Karpenter has not looked at. unplaced_reasons: by reason and words. cut: why
    a node that chunks were placed on is not made."""

    existing: int = 0
    on_its_way: int = 0
    not_ready: int = 0
    new: int = 0
    unplaced: int = 0
    unlaunched: str = ""
    unseen: str = ""
    cut: str = ""
    unplaced_reasons: dict[tuple[Cause, str], UnplacedReason] = field(default_factory=dict)

    def count_reason(self, reason: UnplacedReason, chunks: int) -> None:
        """Groups of a demand with the same reason count their candidates once, and their chunks together."""
        key = (reason.cause, reason.example)
        known = self.unplaced_reasons.get(key, reason)
        most = known if known.count >= reason.count else reason
        self.unplaced_reasons[key] = replace(most, chunks=known.chunks + chunks)

    def rows(self) -> tuple[UnplacedReason, ...]:
        """The reasons that came nearest first. Of one reason only the first sentences are kept, and the last counts the candidates of the
        rest."""
        rows: dict[Cause, list[UnplacedReason]] = {}
        for item in sorted(self.unplaced_reasons.values(), key=_ORDER):
            alike = rows.setdefault(item.cause, [])
            if len(alike) < MOST_OF_A_REASON:
                alike.append(item)
            else:
                last = alike[-1]
                alike[-1] = replace(last, count=last.count + item.count, chunks=max(last.chunks, item.chunks))
        return tuple(sorted((item for alike in rows.values() for item in alike), key=_ORDER))


class Tallies:
    """Chunks of every demand by where they are.

    retry: when offerings that gave no node are tried again, in words. leaving: names of bins whose chunks are moving. While such a bin
    exists and no pod uses it, its chunks count as ready. serving: bins that pods use already and that still have room for their chunks.
    """

    def __init__(
        self,
        bins: Sequence[Bin],
        created: Iterable[NodeClaimCreation],
        unplaced: Iterable[Unplaced],
        cuts: Iterable[Cut],
        *,
        leaving: frozenset[str] = frozenset(),
        serving: frozenset[str] = frozenset(),
        later: Iterable[PlannedNode] = (),
        retry: str = "",
        refusals: Mapping[ObjectRef, str] | None = None,
        suspended: bool = False,
        now: datetime | None = None,
    ) -> None:
        """later: nodes of the next waves. refusals: as in `Facts`. now: by the cluster's clock; without it no NodeClaim is judged by its age."""
        self._retry, self._suspended = retry, suspended
        self._tallies: dict[ObjectRef, _Tally] = {}
        self._standing = _standing((item for item in bins if item.name in leaving), serving)
        for item in bins:
            is_on_its_way = item.is_on_its_way
            is_not_ready = item.node is not None and not item.node.ready and not is_on_its_way
            for holding in (*item.chunks, *item.pods, *item.watched):
                tally = self._of(holding.demand)
                tally.existing += holding.count
                tally.on_its_way += holding.count if is_on_its_way else 0
                tally.not_ready += holding.count if is_not_ready else 0
                if item.node_claim is not None and is_on_its_way:
                    tally.unlaunched = tally.unlaunched or _why_unlaunched(item.node_claim)
                    tally.unseen = tally.unseen or _unseen_words(item.node_claim, now)
        created = tuple(created)
        for planned in (*(creation.planned for creation in created), *later):
            for holding in planned.holdings:
                self._of(holding.demand).new += holding.count
        for creation in created:
            why = _why_unmade(creation, refusals or {})
            for holding in creation.planned.holdings if why else ():
                tally = self._of(holding.demand)
                tally.unlaunched = tally.unlaunched or why
        cuts = tuple(cuts)
        refused = frozenset(ref for cut in cuts for ref in cut.refused)
        for rest in unplaced:
            tally = self._of(rest.demand)
            tally.unplaced += rest.count
            for reason in rest.reasons if rest.demand not in refused else ():
                tally.count_reason(reason, rest.count)
        self._count_cuts(cuts)

    def _count_cuts(self, cuts: Iterable[Cut]) -> None:
        waiting: dict[tuple[ObjectRef, Cause, str], list[int]] = {}
        for cut in cuts:
            words = f"a node in NodePool {cut.node.node_pool} {cut.waits}"
            for holding in cut.node.holdings:
                if cut.refused and holding.demand not in cut.refused:
                    continue
                if not cut.refused:
                    self._of(holding.demand).unplaced += holding.count
                waiting.setdefault((holding.demand, cut.cause, words), []).append(holding.count)
        for (demand, cause, words), chunks in waiting.items():
            tally = self._of(demand)
            if tally.unplaced:
                tally.cut = tally.cut or words
                tally.count_reason(UnplacedReason(cause, len(chunks), words), sum(chunks))

    def _of(self, ref: ObjectRef) -> _Tally:
        return self._tallies.setdefault(ref, _Tally())

    def of_request(self, demand: Demand, request: RequestState) -> Availability:
        """Of a ProvisioningRequest, for its decision. Its own pods that wait have places of their own, or will have."""
        tally = self._of(demand.ref)
        there = replace(
            _availability(tally, ""),
            suspended=self._suspended,
            why=_why_not(tally, launched=request.record.under_way),
            fitting=max((row.fitting for row in tally.rows()), default=0),
        )
        if not request.own_pods or request.phase is not Phase.WAITING:
            return there
        pods = [_availability(self._of(ref), "") for ref in request.own_pods]
        return replace(
            there,
            ready=there.ready + sum(pod.ready for pod in pods),
            coming=there.coming + sum(pod.coming + pod.new for pod in pods),
            not_ready=there.not_ready + sum(pod.not_ready for pod in pods),
            waiting=sum(pod.unplaced for pod in pods),
            why=there.why or next((pod.why for pod in pods if pod.why), ""),
        )

    def outcome(self, demand: Demand) -> DemandOutcome:
        tally = self._tallies.get(demand.ref, _Tally())
        beyond = (demand.desired or 0) - sum(group.count for group in demand.groups) if demand.groups else 0
        if beyond > 0:
            tally = replace(tally, unplaced=tally.unplaced + beyond)
        starting = 0
        if demand.fulfilment == Fulfilment.BALLOON:
            starting = tally.existing if not demand.holds_nodes else 0
            tally = self._with_balloons(tally, demand)
        told_elsewhere = demand.is_pending_pod or demand.request is not None
        standing = self._standing.get(str(demand.ref), 0)
        where = replace(_availability(_moving(tally, standing), self._retry), suspended=self._suspended)
        conditions = demand.conditions if told_elsewhere else provisioning(demand, where, starting)
        return DemandOutcome(
            demand,
            on_existing=tally.existing,
            on_new=tally.new,
            unplaced=tally.unplaced,
            # A suspended buffer lacks nothing but the permission to get nodes, as its condition says.
            unplaced_reasons=() if demand.suspended else tally.rows(),
            conditions=conditions,
            on_its_way=tally.on_its_way,
            not_ready=tally.not_ready,
            suspended=self._suspended,
        )

    def _with_balloons(self, tally: _Tally, demand: Demand) -> _Tally:
        """Chunks become balloon pods: some have a node, others wait for one, and the rest is still to be made. Pods that wait are demands
        of their own, which say where they can go."""
        waiting = [self._tallies.get(ref, _Tally()) for ref in demand.waiting_balloons]
        wanted = demand.desired or 0
        existing = min(wanted, tally.existing + demand.balloons + sum(item.existing for item in waiting))
        new = min(wanted - existing, tally.new + sum(item.new for item in waiting))
        missing = wanted - existing - new
        reasons = dict(tally.unplaced_reasons)
        for item in waiting:
            reasons |= item.unplaced_reasons
        counted = replace(
            tally, existing=existing, new=new, unplaced=missing, unplaced_reasons=reasons if missing else {}
        )
        if missing:
            pods = "1 balloon pod waits" if missing == 1 else f"{missing:,} balloon pods wait"
            counted.count_reason(UnplacedReason(Cause.BALLOON_PODS, 1, f"{pods} for a node", _FIRST), missing)
        return counted


def _why_unmade(creation: NodeClaimCreation, refusals: Mapping[ObjectRef, str]) -> str:
    """Why the last pass did not make it: the server refuses it, or the change of its NodePool that it waits for."""
    waited_for = (node_claim_ref(creation.name), "made"), (node_pool_ref(creation.planned.node_pool), "applied")
    words = (f"{it.kind} {it.name} could not be {done}: {refusals[it]}" for it, done in waited_for if it in refusals)
    return next(words, "")


def _why_unlaunched(claim: NodeClaim) -> str:
    failed = f"Karpenter could not launch NodeClaim {claim.name}: its condition Launched says why"
    return failed if claim.launch_failure else ""


def _unseen_words(claim: NodeClaim, now: datetime | None) -> str:
    """Karpenter gives a NodeClaim all of its conditions as soon as it sees it."""
    if claim.conditions or claim.created is None or now is None or now < claim.created + _UNSEEN:
        return ""
    return f"Karpenter has not looked at NodeClaim {claim.name} yet: does it run?"


def _availability(tally: _Tally, retry: str) -> Availability:
    stopped = next((row for row in tally.rows() if row.cause in {Cause.NOT_AVAILABLE, Cause.AT_LIMIT}), None)
    again = retry if stopped is not None and stopped.cause == Cause.NOT_AVAILABLE else ""
    return Availability(
        ready=tally.existing - tally.on_its_way - tally.not_ready,
        coming=tally.on_its_way,
        not_ready=tally.not_ready,
        new=tally.new,
        unplaced=tally.unplaced,
        unlaunched=tally.unlaunched or tally.unseen,
        cut=tally.cut,
        stopped="" if stopped is None else "; ".join(filter(None, (stopped.example, again))),
        why=first_sentence(tally.rows()),
    )


def _why_not(tally: _Tally, *, launched: bool) -> str:
    """What stopped a request: the NodePool that could have served it, if it is only out of stock or at its limit.

    launched: nodes have been asked for, so that a stock-out is what failed."""
    rows = tally.rows()
    could = [row for row in rows if row.cause in {Cause.NOT_AVAILABLE, Cause.AT_LIMIT}]
    sold_out = [row for row in could if launched and row.cause == Cause.NOT_AVAILABLE]
    return first_sentence((*sold_out, *could)[:1] or rows)


def _standing(bins: Iterable[Bin], serving: frozenset[str]) -> dict[str, int]:
    """Chunks by demand on nodes that are to be replaced and could still serve them."""
    counts: dict[str, int] = {}
    for item in bins:
        for (name, _), count in read_holdings(item.held_for).items() if _stands(item, serving) else ():
            counts[name] = counts.get(name, 0) + count
    return counts


def _stands(item: Bin, serving: frozenset[str]) -> bool:
    """It could still serve the pods that it was kept for."""
    ready = item.node is not None and item.node.ready
    in_use = item.in_use and item.name not in serving
    return ready and item.is_held and not (item.is_going or in_use or item.is_on_its_way or item.pods)


def _moving(tally: _Tally, standing: int) -> _Tally:
    """Counts chunks that are moving as neither coming nor new while their old node can serve them."""
    at_rest = min(standing, tally.on_its_way)
    return replace(tally, on_its_way=tally.on_its_way - at_rest, new=max(0, tally.new - (standing - at_rest)))


def pending_outcome(outcomes: Sequence[DemandOutcome]) -> PendingOutcome:
    """Counts of pending pods; pods whose node is being deleted are not among them."""
    return PendingOutcome.of(item for item in outcomes if item.demand.is_pending_pod and not item.demand.leaves)


def topology_keys(demands: Iterable[Demand]) -> dict[ObjectRef, tuple[str, ...]]:
    """The topology labels that each demand goes by, sorted and without the hostname; demands without any are left out."""
    known: dict[int, frozenset[str]] = {}
    found = {}
    for demand in demands:
        keys: frozenset[str] = frozenset()
        for group in demand.groups:
            shape = group.shape
            if id(shape) not in known:
                own = {item.topology_key for item in shape.topology_spread}
                own.update(item.topology_key for item in shape.affinity_terms)
                known[id(shape)] = frozenset(own - {HOSTNAME_LABEL})
            keys |= known[id(shape)]
        if keys:
            found[demand.ref] = tuple(sorted(keys))
    return found


def domain_counts(
    keys: Mapping[ObjectRef, tuple[str, ...]], bins: Iterable[Bin], created: Iterable[NodeClaimCreation]
) -> dict[ObjectRef, tuple[DomainCount, ...]]:
    """Chunks of each node with the node's value of each label, by demand. Existing nodes come first, by name, then new ones."""
    found: dict[ObjectRef, list[DomainCount]] = {}

    def add(name: str, holdings: Iterable[Holding], values_of: Mapping[str, tuple[str, ...]]) -> None:
        for holding in holdings:
            rows = found.setdefault(holding.demand, []) if holding.demand in keys else []
            rows += [
                DomainCount(name, key, values_of.get(key, ()), holding.count) for key in keys.get(holding.demand, ())
            ]

    if keys:
        for item in bins:
            holdings = (*item.chunks, *item.pods)
            if holdings:
                add(item.name, holdings, _values_of_bin(item))
        for creation in created:
            add(creation.name, creation.planned.holdings, _values_of_planned(creation.planned))
    return {demand: tuple(rows) for demand, rows in found.items()}


def _values_of_bin(item: Bin) -> Mapping[str, tuple[str, ...]]:
    """The node's labels, or the values that a NodeClaim on its way fixes or leaves open."""
    if item.node is not None:
        return {key: (value,) for key, value in item.node.labels}
    claim = item.node_claim
    return (
        {} if claim is None else {**listed_values(claim.requirements), **{key: (value,) for key, value in claim.labels}}
    )


def _values_of_planned(planned: PlannedNode) -> Mapping[str, tuple[str, ...]]:
    return {
        **listed_values(planned.requirements),
        ZONE_LABEL: planned.zones,
        CAPACITY_TYPE_LABEL: planned.capacity_types,
        INSTANCE_TYPE_LABEL: planned.instance_types,
        **{key: (value,) for key, value in planned.labels},
    }

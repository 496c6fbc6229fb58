"""What becomes of each demand: how many chunks are where, the reasons of the rest, and its conditions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from reconciler.model.buffers import Fulfilment
from reconciler.model.changes import DemandOutcome, NodeClaimCreation, PendingOutcome
from reconciler.model.conditions import Condition, ConditionStatus
from reconciler.model.demand import Demand
from reconciler.model.placement import ALL_OR_NOTHING, Unplaced, UnplacedReason
from reconciler.model.refs import ObjectRef
from reconciler.plan.bins import Bin
from reconciler.plan.limits import Cut
from reconciler.plan.request_decisions import Whereabouts

PROVISIONING = "Provisioning"
BEYOND_A_CAP = "beyond a cap"
MOST_OF_A_REASON = 5
"""Sentences with one reason: of a cluster with many NodePools, some are enough to see what is wrong."""


@dataclass(slots=True)
class _Tally:
    """on_its_way: those of `existing` whose node is not ready to take pods yet; unplaced_reasons: by reason and words; cap: in words, of
    chunks that one holds back."""

    existing: int = 0
    on_its_way: int = 0
    new: int = 0
    unplaced: int = 0
    cap: str = ""
    unplaced_reasons: dict[tuple[str, str], UnplacedReason] = field(default_factory=dict)

    def count_reason(self, reason: UnplacedReason) -> None:
        """Groups of a demand that say the same of the same candidates say it once."""
        key = (reason.cause, reason.example)
        known = self.unplaced_reasons.get(key)
        if known is None or known.count < reason.count:
            self.unplaced_reasons[key] = reason

    def rows(self) -> tuple[UnplacedReason, ...]:
        """Most frequent first. Of one reason the first sentences only; the last of them has the candidates of the others too."""
        rows: dict[str, list[UnplacedReason]] = {}
        for item in sorted(self.unplaced_reasons.values(), key=_order):
            alike = rows.setdefault(item.cause, [])
            if len(alike) < MOST_OF_A_REASON:
                alike.append(item)
            else:
                alike[-1] = replace(alike[-1], count=alike[-1].count + item.count)
        return tuple(sorted((item for alike in rows.values() for item in alike), key=_order))


def _order(reason: UnplacedReason) -> tuple[int, str, str]:
    return (-reason.count, reason.cause, reason.example)


class Tallies:
    """Chunks of every demand by where they are."""

    def __init__(
        self,
        bins: Iterable[Bin],
        created: Iterable[NodeClaimCreation],
        unplaced: Iterable[Unplaced],
        cuts: Iterable[Cut],
    ) -> None:
        self._tallies: dict[ObjectRef, _Tally] = {}
        for item in bins:
            for holding in (*item.chunks, *item.pods):
                tally = self._of(holding.demand)
                tally.existing += holding.count
                tally.on_its_way += holding.count if item.is_on_its_way else 0
        for creation in created:
            for holding in creation.planned.holdings:
                self._of(holding.demand).new += holding.count
        for rest in unplaced:
            tally = self._of(rest.demand)
            tally.unplaced += rest.count
            for reason in rest.reasons:
                tally.count_reason(reason)
        waiting: dict[tuple[ObjectRef, str], int] = {}
        for cut in cuts:
            words = f"a node in NodePool {cut.node.node_pool} waits: {cut.cap}"
            for holding in cut.node.holdings:
                self._of(holding.demand).unplaced += holding.count
                waiting[holding.demand, words] = waiting.get((holding.demand, words), 0) + 1
        for (demand, words), count in waiting.items():
            tally = self._of(demand)
            tally.cap = tally.cap or words
            tally.count_reason(UnplacedReason(BEYOND_A_CAP, count, words))

    def _of(self, ref: ObjectRef) -> _Tally:
        return self._tallies.setdefault(ref, _Tally())

    def whereabouts(self, ref: ObjectRef) -> Whereabouts:
        """Of a provisioning request."""
        tally = self._of(ref)
        rows = [row for row in tally.rows() if row.cause != ALL_OR_NOTHING]
        return Whereabouts(
            ready=tally.existing - tally.on_its_way,
            coming=tally.on_its_way,
            new=tally.new,
            unplaced=tally.unplaced,
            cut=tally.cap,
            why=(rows[0].example or rows[0].cause) if rows else "",
        )

    def outcome(self, demand: Demand) -> DemandOutcome:
        tally = self._tallies.get(demand.ref, _Tally())
        beyond = (demand.desired or 0) - sum(group.count for group in demand.groups) if demand.groups else 0
        if beyond > 0:
            tally = replace(tally, unplaced=tally.unplaced + beyond)
        told_elsewhere = demand.is_pending_pod or demand.request is not None
        provisioning = () if told_elsewhere else _provisioning(demand, tally)
        return DemandOutcome(
            demand,
            on_existing=tally.existing,
            on_new=tally.new,
            unplaced=tally.unplaced,
            unplaced_reasons=tally.rows(),
            conditions=(*demand.conditions, *provisioning),
        )


def _provisioning(demand: Demand, tally: _Tally) -> tuple[Condition, ...]:
    """The Provisioning condition in Karpenter's reasons (controllers/provisioning/buffers.go).

    Otherwise than there, chunks on a node that is still on its way are not capacity that fits: the condition becomes
    true when the capacity is there.
    """
    if demand.fulfilment != Fulfilment.PLACEHOLDER:
        return ()
    if demand.desired is None:
        return (_condition(ConditionStatus.FALSE, "NotReadyForProvisioning", "the buffer is not ready"),)
    if demand.desired == 0:
        return (_condition(ConditionStatus.FALSE, "BufferEmpty", "the buffer asks for nothing"),)
    missing = [
        f"{count:,} {words}"
        for count, words in (
            (tally.on_its_way, "on nodes that are on their way"),
            (tally.new, "on nodes to be made"),
            (tally.unplaced, "without a place"),
        )
        if count
    ]
    if missing:
        message = f"of {demand.desired:,} chunks, {', '.join(missing)}"
        if tally.cap:
            message = f"{message}; {tally.cap}"
        return (_condition(ConditionStatus.FALSE, "RequiresNewCapacity", message),)
    return (_condition(ConditionStatus.TRUE, "FitsExistingCapacity", f"all {demand.desired:,} chunks have room"),)


def _condition(status: ConditionStatus, reason: str, message: str) -> Condition:
    return Condition(PROVISIONING, status, reason, message)


def pending_outcome(outcomes: Sequence[DemandOutcome]) -> PendingOutcome:
    """Of pods that wait for a node; not of those whose node is being deleted."""
    pods = [outcome for outcome in outcomes if outcome.demand.is_pending_pod and not outcome.demand.leaves]
    return PendingOutcome(
        placed_on_existing=sum(outcome.on_existing for outcome in pods),
        placed_on_new=sum(outcome.on_new for outcome in pods),
        unplaced=sum(outcome.unplaced for outcome in pods),
    )

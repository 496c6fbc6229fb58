"""What becomes of each demand: how many chunks are where, the excuses for the rest, and its conditions. Used by plan."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from reconciler.model.buffers import Fulfilment
from reconciler.model.changes import DemandOutcome, NodeClaimCreation, PendingOutcome
from reconciler.model.conditions import Condition, ConditionStatus
from reconciler.model.demand import Demand
from reconciler.model.placement import Excuse, Unplaced
from reconciler.model.refs import ObjectRef
from reconciler.plan.bins import Bin
from reconciler.plan.limits import Cut

PROVISIONING = "Provisioning"
BEYOND_A_CAP = "beyond a cap"


@dataclass(slots=True)
class _Tally:
    """on_its_way: those of `existing` whose node is not ready to take pods yet."""

    existing: int = 0
    on_its_way: int = 0
    new: int = 0
    unplaced: int = 0
    excuses: dict[str, Excuse] = field(default_factory=dict)

    def excuse(self, excuse: Excuse) -> None:
        """One row a reason: counts are added up, the first example stays."""
        known = self.excuses.get(excuse.reason)
        count = excuse.count + (0 if known is None else known.count)
        self.excuses[excuse.reason] = Excuse(excuse.reason, count, excuse.example if known is None else known.example)


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
            for excuse in rest.excuses:
                tally.excuse(excuse)
        for cut in cuts:
            for holding in cut.node.holdings:
                tally = self._of(holding.demand)
                tally.unplaced += holding.count
                tally.excuse(Excuse(BEYOND_A_CAP, 1, f"a node in NodePool {cut.node.node_pool} waits: {cut.cap}"))

    def _of(self, ref: ObjectRef) -> _Tally:
        return self._tallies.setdefault(ref, _Tally())

    def outcome(self, demand: Demand) -> DemandOutcome:
        tally = self._tallies.get(demand.ref, _Tally())
        beyond = (demand.desired or 0) - sum(group.count for group in demand.groups) if demand.groups else 0
        if beyond > 0:
            tally = replace(tally, unplaced=tally.unplaced + beyond)
        provisioning = () if demand.is_pending_pod else _provisioning(demand, tally)
        return DemandOutcome(
            demand,
            on_existing=tally.existing,
            on_new=tally.new,
            unplaced=tally.unplaced,
            excuses=tuple(sorted(tally.excuses.values(), key=lambda item: (-item.count, item.reason, item.example))),
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
        if BEYOND_A_CAP in tally.excuses:
            message = f"{message}; {tally.excuses[BEYOND_A_CAP].example}"
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

"""What becomes of demands: how many chunks are asked for, how many have a place, and why the others have none."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from reconciler.model.changes import DemandOutcome
from reconciler.model.placement import UnplacedReason
from reconciler.model.refs import ObjectRef


@dataclass(frozen=True, slots=True)
class DemandChange:
    """before, after: chunks; None: absent or not ready on that side, as the words say. unplaced: after the head.

    reasons: why these have no place. not_ready: why the head's is not ready.
    """

    ref: ObjectRef
    before: int | None
    after: int | None
    before_words: str
    after_words: str
    unplaced: int
    unplaced_before: int = 0
    reasons: tuple[UnplacedReason, ...] = ()
    not_ready: str = ""

    @property
    def newly_unplaced(self) -> int:
        """Chunks without a place beyond those of the base."""
        return max(0, self.unplaced - self.unplaced_before)

    @property
    def losing(self) -> int:
        """Chunks that have a place in the base, are still asked for, and have none in the head."""
        placed = (self.before or 0) - self.unplaced_before
        return max(0, min(placed, self.after or 0) - ((self.after or 0) - self.unplaced))


def demand_changes(base: Iterable[DemandOutcome], head: Iterable[DemandOutcome]) -> tuple[DemandChange, ...]:
    """Demands of which another number is asked for or placed, by reference. Pending pods are nobody's manifests."""
    left = {outcome.demand.ref: outcome for outcome in base if not outcome.demand.is_pending_pod}
    right = {outcome.demand.ref: outcome for outcome in head if not outcome.demand.is_pending_pod}
    found = []
    for ref in sorted(left.keys() | right.keys()):
        before, after = left.get(ref), right.get(ref)
        if _amounts(before) != _amounts(after):
            found.append(_change(ref, before, after))
    return tuple(found)


def _amounts(outcome: DemandOutcome | None) -> tuple[int | None, int] | None:
    """Chunks asked for and placed; None where there is no such demand."""
    if outcome is None:
        return None
    return outcome.demand.desired, outcome.on_existing + outcome.on_new


def _change(ref: ObjectRef, before: DemandOutcome | None, after: DemandOutcome | None) -> DemandChange:
    return DemandChange(
        ref,
        None if before is None else before.demand.desired,
        None if after is None else after.demand.desired,
        _size_words(before),
        _size_words(after),
        0 if after is None else after.unplaced,
        0 if before is None else before.unplaced,
        () if after is None else after.unplaced_reasons,
        _why_not_ready(after),
    )


def _size_words(outcome: DemandOutcome | None) -> str:
    if outcome is None:
        return "absent"
    return "not ready" if outcome.demand.desired is None else f"{outcome.demand.desired:,}"


def _why_not_ready(outcome: DemandOutcome | None) -> str:
    if outcome is None or outcome.demand.desired is not None:
        return ""
    ready = next((item for item in outcome.conditions if item.type == "ReadyForProvisioning"), None)
    return "" if ready is None else ready.message or ready.reason

"""How demands change: how many chunks are asked for, how many have a place, who keeps them, and why others have none."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from reconciler.model.changes import DemandOutcome
from reconciler.model.demand import Keeper, Service
from reconciler.model.placement import UnplacedReason
from reconciler.model.refs import ObjectRef
from reconciler.report.costs import Shortfall, shortfall
from reconciler.report.plan.words import reason_words
from reconciler.report.words import NOT_SHOWN, keeper_words, size_words


@dataclass(frozen=True, slots=True)
class DemandChange:
    """before, after: whether it is served on that side; None if it is absent there. reasons: why chunks have no place in the head."""

    ref: ObjectRef
    before: Service | None
    after: Service | None
    reasons: tuple[UnplacedReason, ...] = ()

    @property
    def shortfall(self) -> Shortfall:
        """What it loses by merging."""
        return shortfall(self.before, self.after)

    @property
    def unplaced(self) -> int | None:
        """How many chunks have no place in the head; None if it is not ready, so that its size is unknown."""
        return _unplaced(self.after)

    @property
    def unplaced_before(self) -> int | None:
        """The same in the base."""
        return _unplaced(self.before)

    @property
    def size_words(self) -> tuple[str, str]:
        """How many chunks are asked for before and after: `10`, `absent`, `not ready`."""
        return size_words(self.before), size_words(self.after)

    @property
    def handed_to(self) -> str:
        """Who keeps the capacity from now on, if that changes; otherwise ""."""
        if self.after is None or not self.after.ready:
            return ""
        before = Keeper.HEADROOM if self.before is None else self.before.by
        return "" if before is self.after.by else keeper_words(self.after)

    @property
    def why(self) -> list[str]:
        """Everything to report about it, the worst first."""
        after = self.after
        if after is None:
            return []
        words = [reason_words(reason) for reason in self.reasons]
        if after.why and not words:
            words.append(after.why)
        if self.handed_to:
            instead = "" if self.before is None else f" instead of {keeper_words(self.before)}"
            words.append(f"kept by {self.handed_to}{instead}")
        if not after.certain:
            words.append(NOT_SHOWN)
        return words


def demand_changes(base: Iterable[DemandOutcome], head: Iterable[DemandOutcome]) -> tuple[DemandChange, ...]:
    """Demands whose service changes, by reference. Pending pods are left out, since no manifest declares them."""
    left = {outcome.demand.ref: outcome for outcome in base if not outcome.demand.is_pending_pod}
    right = {outcome.demand.ref: outcome for outcome in head if not outcome.demand.is_pending_pod}
    found = []
    for ref in sorted(left.keys() | right.keys()):
        before, after = left.get(ref), right.get(ref)
        change = DemandChange(
            ref,
            None if before is None else before.service,
            None if after is None else after.service,
            () if after is None else after.unplaced_reasons,
        )
        if _told(change.before) != _told(change.after):
            found.append(change)
    return tuple(found)


def _told(service: Service | None) -> tuple[object, ...]:
    """The service without its reason, whose words may differ where nothing else does."""
    if service is None:
        return ()
    return (service.wanted, service.served, service.ready, service.by, service.certain)


def _unplaced(service: Service | None) -> int | None:
    if service is None:
        return 0
    return None if not service.ready and not service.is_left else service.missing

"""Bounds that a change must keep during the coming 30 days, not only at present."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import tzinfo

from reconciler.model.findings import Severity
from reconciler.report.costs import CostChange, Loss, loss_words
from reconciler.report.difference.difference import Difference
from reconciler.report.difference.headline import drift_words
from reconciler.report.difference.room import room_words
from reconciler.report.plan.spending import sample_words
from reconciler.report.words import NOT_SHOWN, counted, dollars, moment, signed_dollars

_FIRST_ONE = (
    "; headroom keeps them at present. First merge a small buffer that is native from the start: this bound allows that,"
    " and the buffer's status shows whether an autoscaler serves it"
)


@dataclass(frozen=True, slots=True)
class Gates:
    """None, False: no bound. max_monthly_increase: USD over 30 days. max_new_nodes: at any time of these. no_unplaced: no chunk may
    lose or lack a place, or be handed to an autoscaler that nothing in the cluster shows. no_less_room: no demand may have less room
    at any time, whatever the reason. no_drift: no node may drift. no_new_errors, no_existing_errors: of the head's findings."""

    max_monthly_increase: float | None = None
    max_new_nodes: int | None = None
    no_unplaced: bool = False
    no_less_room: bool = False
    no_drift: bool = False
    no_new_errors: bool = False
    no_existing_errors: bool = False

    def failures(self, change: Difference, zone: tzinfo | None = None) -> tuple[str, ...]:
        """A sentence for each bound that the change does not keep."""
        cost = change.cost
        if cost is None:
            return ()
        found = self._too_dear(change, cost)
        peak = cost.new_nodes()
        if self.max_new_nodes is not None and peak is not None and peak.count > self.max_new_nodes:
            allowed = f"{self.max_new_nodes:,} {'is' if self.max_new_nodes == 1 else 'are'} allowed"
            found.append(f"up to {counted(peak.count, 'new node')} from {moment(peak.at, zone)}; {allowed}")
        if self.no_unplaced:
            for ref, loss in sorted(cost.shortfalls().items()):
                found += [f"{ref}: {_with_way_out(words)}" for words in loss_words(_bounded(loss), zone)]
        if self.no_less_room:
            found += [f"less room: {room_words(item, zone)}" for item in change.room.less]
        if self.no_drift:
            found += [drift_words(item, zone) for item in change.drift]
        new_errors = [item for item in change.new_findings if item.severity is Severity.ERROR]
        for forbidden, word, errors in (
            (self.no_new_errors, "new error", new_errors),
            (self.no_existing_errors, "error that is there already", change.left_errors),
        ):
            found += [f"{word}: {item.ref or item.path}: {item.message}" for item in errors if forbidden]
        return tuple(found)

    def _too_dear(self, change: Difference, cost: CostChange) -> list[str]:
        bound = self.max_monthly_increase
        if bound is None:
            return []
        keeps = f"whether the cost keeps to {dollars(bound)} over 30 days is unknown"
        if cost.delta > 0 and sample_words(change.base, change.head):
            return [f"no prices are known but invented ones: {keeps}"]
        found = []
        if cost.delta > bound:
            found.append(
                f"{signed_dollars(cost.delta)} over 30 days is more than the {dollars(bound)} that are allowed"
            )
        if cost.more_unpriced():
            found.append(f"{counted(cost.more_unpriced(), 'new node')} without a known price: {keeps}")
        return found


def _with_way_out(words: str) -> str:
    return f"{words}{_FIRST_ONE}" if words.endswith(NOT_SHOWN) else words


def _bounded(loss: Loss) -> Loss:
    """The loss that counts. Of chunks left to an autoscaler, only those that headroom keeps at present count. An autoscaler cannot show
    itself before there is a native buffer, and the first one must be mergeable."""
    first, worst = (replace(short, unsure=short.handed_over) for short in (loss.first, loss.worst))
    return replace(loss, first=first, worst=worst)

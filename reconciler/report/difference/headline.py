"""What a reviewer must know first, in one sentence: what loses its place, what is wrong, what appears, what it costs."""

from __future__ import annotations

from datetime import datetime, tzinfo

from reconciler.model.findings import Severity
from reconciler.model.spending import MONTH
from reconciler.report.difference.difference import Difference
from reconciler.report.words import counted, dollars, listed, moment, signed_dollars

SPAN = f"{MONTH.days} days"


def problems(change: Difference, zone: tzinfo | None = None) -> list[str]:
    """What speaks against merging, the worst first."""
    found = []
    losing = sum(item.losing for item in change.demands)
    if losing:
        found.append(f"{counted(losing, 'chunk')} {'loses its' if losing == 1 else 'lose their'} place")
    others = sum(max(0, item.newly_unplaced - item.losing) for item in change.demands)
    if others:
        found.append(f"{counted(others, 'new chunk')} {'finds' if others == 1 else 'find'} no place")
    found += _later(change, losing + others, zone)
    for severity, noun in ((Severity.ERROR, "new error"), (Severity.WARNING, "new warning")):
        count = sum(finding.severity is severity for finding in change.new_findings)
        if count:
            found.append(counted(count, noun))
    if change.conflicts:
        found.append(f"{counted(len(change.conflicts), 'file')} in conflict ({listed(change.conflicts[:3])})")
    if change.failed_gates:
        found.append(f"{counted(len(change.failed_gates), 'bound')} not kept")
    return found


def _later(change: Difference, known: int, zone: tzinfo | None) -> list[str]:
    """Chunks that find no place at a later time than now, when schedules ask for more."""
    if change.cost is None:
        return []
    unplaced = change.cost.unplaced()
    count = sum(most for most, _ in unplaced.values())
    if count <= known:
        return []
    first = min(since for _, since in unplaced.values())
    return [f"up to {counted(count, 'chunk')} without a place from {moment(first, zone)}"]


def effects(change: Difference, zone: tzinfo | None = None) -> list[str]:
    """What merging makes of the cluster."""
    found = []
    static = sum(item.after - item.before for item in change.static_pools)
    nodes = len(change.added_nodes) - len(change.removed_nodes) + static
    if nodes:
        found.append(f"{counted(abs(nodes), 'node')} {'more' if nodes > 0 else 'fewer'} at once")
    elif change.added_nodes:
        found.append(f"{counted(len(change.added_nodes), 'node')} of another kind")
    peak = _peak(change)
    if peak is not None and peak[0] > max(0, nodes):
        found.append(f"up to {counted(peak[0], 'node')} more from {moment(peak[1], zone)}")
    if change.released:
        found.append(f"{counted(len(change.released), 'node')} released")
    if change.objects:
        found.append(f"{counted(len(change.objects), 'object')} changed")
    if change.templates:
        found.append(f"{counted(len(change.templates), 'object')} changed by templates")
    return found


def _peak(change: Difference) -> tuple[int, datetime] | None:
    """The most nodes by which the head exceeds the base, and from when."""
    if change.cost is None:
        return None
    best = None
    for moment_, before, after in change.cost.spans():
        more = after.nodes - before.nodes
        if best is None or more > best[0]:
            best = (more, moment_)
    return best


def cost_words(change: Difference) -> str:
    """`+$59.86 over the coming 30 days`; at one instant's price a month where nothing else was worked out."""
    if change.cost is None:
        return f"{signed_dollars(change.per_month_delta)} a month"
    if not round(change.cost.delta, 2):
        return f"no change in cost over the coming {SPAN}"
    return f"{signed_dollars(change.cost.delta)} over the coming {SPAN}"


def headline(change: Difference, zone: tzinfo | None = None) -> str:
    """All of it in one line, which no report cuts."""
    parts = [*problems(change, zone), *effects(change, zone)]
    return ", ".join([*(parts or ["No change in capacity"]), cost_words(change)])


def verdict(change: Difference) -> str:
    """Whether to merge, as far as this can be told."""
    if change.conflicts or change.failed_gates or any(item.severity is Severity.ERROR for item in change.new_findings):
        return "Do not merge as it is"
    if any(item.newly_unplaced for item in change.demands) or (change.cost is not None and change.cost.unplaced()):
        return "Look at what has no place before you merge"
    if change.new_findings:
        return "Look at the warnings before you merge"
    return "Nothing was found that speaks against merging" if change.has_changes else "Nothing changes"


def hourly_words(change: Difference) -> str:
    """What an hour costs at present, without the change and with it."""
    return (
        f"at this hour {dollars(change.per_hour_before)}/h without it, {dollars(change.per_hour_after)}/h with it"
        f" ({dollars(change.per_hour_now)}/h for the nodes that exist now)"
    )

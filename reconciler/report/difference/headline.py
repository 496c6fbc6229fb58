"""What a reviewer must know first, in one sentence: what loses its place, what is wrong, what is new, what it costs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import tzinfo

from reconciler.model.findings import Severity
from reconciler.model.nodes import ForetoldDrift
from reconciler.model.spending import MONTH
from reconciler.report.difference.difference import Difference
from reconciler.report.difference.room import named_room
from reconciler.report.difference.shortfall import losing_words
from reconciler.report.words import counted, dollars, listed, moment, percent_words, signed_dollars

_TEMPLATE_FAILED = "template-failed"
SPAN = f"{MONTH.days} days"


def problems(change: Difference, zone: tzinfo | None = None) -> list[str]:
    """What is lost or wrong, the worst first. Every chunk that loses its place counts, whatever the reason."""
    found = [f"less room: {named_room(change.room.less, zone)}"] if change.room.less else []
    shrunk = [item for item in change.static_pools if item.after < item.before]
    if shrunk:
        names = (f"{item.node_pool} {item.before:,} → {counted(item.after, 'node')}" for item in shrunk)
        found.append(f"smaller static NodePools: {listed(names, most=3)}")
    found += [
        f"static NodePool {item.node_pool} gets {item.after:,} of {counted(item.after + item.never, 'node')}, its limit"
        for item in change.static_pools
        if item.never
    ]
    found += [drift_words(item) for item in change.drift]
    short = [item.shortfall for item in change.demands]
    told = {item.ref for item in change.room.less}
    losing = sum(item.shortfall.losing for item in change.demands if item.ref not in told)
    if losing:  # for now: what is wrong with a template is mended in the long run
        found.append(losing_words(losing))
    lacking = sum(item.lacking for item in short)
    if lacking:
        found.append(f"{counted(lacking, 'new chunk')} {'finds' if lacking == 1 else 'find'} no place")
    unready = [str(item.ref) for item in change.demands if item.shortfall.unready and not item.shortfall.losing]
    if unready:
        found.append(f"{_named(unready)} {'is' if len(unready) == 1 else 'are'} not ready")
    found += _later(change, lacking, zone)
    unsure = sum(item.unsure for item in short)
    if unsure:
        found.append(f"{counted(unsure, 'chunk')} left to an autoscaler that nothing in the cluster shows")
    for severity, noun in ((Severity.ERROR, "new error"), (Severity.WARNING, "new warning")):
        count = sum(finding.severity is severity for finding in change.new_findings)
        if count:
            found.append(counted(count, noun))
    if change.failed_gates:
        found.append(f"{counted(len(change.failed_gates), 'bound')} not kept")
    return found


def drift_words(drift: ForetoldDrift) -> str:
    """`4 of 4 nodes of NodePool general drift (labels), 1 at a time`."""
    count = len(drift.nodes)
    pace = (
        "all at once"
        if drift.budget is None
        else "none at present"
        if not drift.budget
        else f"{drift.budget:,} at a time"
    )
    verb = "drifts" if count == 1 else "drift"
    return f"{count:,} of {counted(drift.total, 'node')} of NodePool {drift.node_pool} {verb} ({listed(drift.why, most=3)}), {pace}"


def _named(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else counted(len(names), "demand")


def _later(change: Difference, known: int, zone: tzinfo | None) -> list[str]:
    """New chunks that will find no place at a later time, when schedules ask for more."""
    peak = None if change.cost is None else change.cost.most_lacking()
    if peak is None or peak.count <= known:
        return []
    words = f"{counted(peak.count, 'new chunk')} without a place from {moment(peak.at, zone)}"
    if known:
        return [f"up to {words}"]
    return [f"{words}, the first from {moment(peak.first, zone)}" if peak.first < peak.at else words]


def effects(change: Difference, zone: tzinfo | None = None) -> list[str]:
    """The effects of merging on the cluster."""
    found = []
    static = sum(item.after - item.before for item in change.static_pools)
    nodes = len(change.added_nodes) - len(change.removed_nodes) + static
    if nodes:
        new, gone = len(change.added_nodes), len(change.removed_nodes)
        others = f" ({new:,} new, {gone:,} no longer needed)" if new and gone else ""
        found.append(f"{counted(abs(nodes), 'node')} {'more' if nodes > 0 else 'fewer'} at once{others}")
    elif change.added_nodes:
        found.append(f"{counted(len(change.added_nodes), 'node')} of another kind")
    found += [] if is_unrendered(change) else _growth(change, nodes, zone)
    handed = [item for item in change.demands if item.handed_to]
    if handed:
        to = listed(dict.fromkeys(item.handed_to for item in handed))
        found.append(f"{_named([str(item.ref) for item in handed])} kept by {to}")
    if change.released:
        found.append(f"{counted(len(change.released), 'node')} released")
    if change.objects:
        found.append(f"{counted(len(change.objects), 'object')} changed")
    if change.templates:
        found.append(f"{counted(len(change.templates), 'object')} changed by templates")
    return found


def _growth(change: Difference, at_once: int, zone: tzinfo | None) -> list[str]:
    """By how many nodes the head exceeds the base later, if by more than at once."""
    peak = None if change.cost is None else change.cost.new_nodes()
    if peak is None or peak.count <= max(0, at_once):
        return []
    most, at = counted(peak.count, "node"), moment(peak.at, zone)
    if at_once > 0 or peak.first == peak.at:
        return [f"up to {most} more from {at}"]
    first = f"{counted(peak.first_count, 'node')} more from {moment(peak.first, zone)}"
    return [f"{first}, up to {peak.count:,} from {at}"]


def cost_words(change: Difference) -> str:
    """`+$59.86 (+12%) over the coming 30 days`; without that figure, a month at the present price."""
    if change.cost is None:
        return f"{signed_dollars(change.per_month_delta)} a month"
    words = percent_words(change.cost.before, change.cost.after)
    until = " once the templates render" if is_unrendered(change) else ""
    return f"{'no change in cost' if words == 'no change' else words} over the coming {SPAN}{until}"


def is_unrendered(change: Difference) -> bool:
    """Whether templates of the head fail, so that nodes included in its cost are not made."""
    return any(finding.code == _TEMPLATE_FAILED for finding in change.head.findings)


def headline(change: Difference, zone: tzinfo | None = None, *, is_priced: bool = True) -> str:
    """Everything in one line, which no report cuts. It states facts, and recommends nothing."""
    cost = cost_words(change) if is_priced else "no prices"
    is_more = change.room.more and not is_unrendered(change)
    more = [f"more room: {named_room(change.room.more, zone)}"] if is_more else []
    parts = [*problems(change, zone), *more, *effects(change, zone)]
    words = "; ".join([*(parts or ["no change in capacity"]), *_unjudged(change), *_left_errors(change), cost])
    return words[:1].upper() + words[1:]


def _unjudged(change: Difference) -> list[str]:
    """What of the change is not in the figures."""
    found = [f"not judged: {words}" for words in change.unjudged]
    kept = [f"{ref.namespace}/{ref.name}" if ref.namespace else str(ref) for ref in change.kept_as_before]
    if kept:
        found.append(
            f"{listed(kept, most=3)} as before, since {'its' if len(kept) == 1 else 'their'} new documents have errors"
        )
    if change.conflicts:
        files, are = counted(len(change.conflicts), "file"), "is" if len(change.conflicts) == 1 else "are"
        named = listed(change.conflicts, most=3)
        found.append(f"not merged, since {files} {are} in conflict ({named}): the base's own changes look taken back")
    if change.afterwards:
        more = f", and so {len(change.afterwards) - 1:,} more" if len(change.afterwards) > 1 else ""
        found.append(f"{change.afterwards[0]}{more}")
    if change.room.unjudged:
        found.append(f"room not judged for {change.room.unjudged:,.0f} hours")
    return found


def _left_errors(change: Difference) -> list[str]:
    """How many errors there were before the change that it leaves as they are."""
    count = len(change.left_errors)
    return [f"{counted(count, 'error')} that {change.base_name.partition('@')[0]} has too"] if count else []


def verdict(change: Difference) -> str:
    """What to do before merging; "" where nothing calls for it. Never a blessing: what is right is for the reviewer to judge."""
    if change.conflicts or change.failed_gates or any(item.severity is Severity.ERROR for item in change.new_findings):
        return "Do not merge as it is"
    short = [item.shortfall for item in change.demands]
    short += [] if change.cost is None else [loss.worst for loss in change.cost.shortfalls().values()]
    looks = {
        "has less room": bool(change.room.less),
        "drifts": bool(change.drift),
        "has no place": any(item.lacking for item in short),
        "is not ready": any(item.unready for item in short),
        "is left to an autoscaler": any(item.unsure for item in short),
        "was not judged": bool(change.unjudged),
    }
    if any(looks.values()):
        return f"Look at what {' or '.join(words for words, is_so in looks.items() if is_so)} before you merge"
    if any(item.severity is Severity.WARNING for item in change.new_findings):
        return "Look at the warnings before you merge"
    return ""


def title(change: Difference) -> str:
    """What was compared."""
    if change.names is None:
        return f"What merging {change.head_name} into {change.base_name} would change"
    return f"What differs between {change.base_name} and {change.head_name}"


def hourly_words(change: Difference) -> str:
    """What an hour costs at present, without the change and with it."""
    return (
        f"at this hour {dollars(change.per_hour_before)}/h without it, {dollars(change.per_hour_after)}/h with it"
        f" ({dollars(change.per_hour_now)}/h for the nodes that exist now)"
    )

"""What a reviewer must know first, in one sentence: what loses its place, what is wrong, what is new, what it costs. And the bounds that a change must keep
during the coming 30 days."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, tzinfo

from reconciler.model import codes
from reconciler.model.changes import Action
from reconciler.model.findings import Severity
from reconciler.model.nodes import ForetoldDrift
from reconciler.model.refs import ObjectRef, counted, listed
from reconciler.report.costs import CostChange, Rise, Shortfall, losing_words, loss_words, unpriced_words
from reconciler.report.difference.difference import Difference
from reconciler.report.difference.room import named_room, room_words
from reconciler.report.plan.words import SPAN, sample_words
from reconciler.report.words import NOT_SHOWN, an_hour, dollars, moment, percent_words, signed_dollars

_GONE = frozenset({Action.DELETE, Action.KEEP})
_VERBS = {
    Action.DELETE: "removed",
    Action.KEEP: "no longer declared",
    Action.CREATE: "added",
    Action.UPDATE: "changed",
}
_STALLS = "the repository would stall"
_FIRST_ONE = (
    "; headroom keeps them at present. First merge a small buffer that is native from the start: this bound allows that,"
    " and the buffer's status shows whether an autoscaler serves it"
)


def problems(change: Difference, zone: tzinfo | None = None) -> list[str]:
    """What is lost or wrong, the worst first. Every chunk that loses its place counts, whatever the reason."""
    sentences = [f"{_STALLS}: {change.stalled}"] if change.stalled else []
    sentences += [f"less room: {named_room(change.room.less, zone)}"] if change.room.less else []
    shrunk = [item for item in change.static_pools if item.after < item.before]
    if shrunk:
        names = (f"{item.node_pool} {item.before:,} → {counted(item.after, 'node')}" for item in shrunk)
        sentences.append(f"smaller static NodePools: {listed(names, most=3)}")
    sentences += [
        f"static NodePool {item.node_pool} gets {item.after:,} of {counted(item.after + item.never, 'node')}, its limit"
        for item in change.static_pools
        if item.never
    ]
    sentences += [drift_words(item, zone) for item in change.drift]
    told = {item.ref for item in change.room.less}
    losing = {
        item.ref: item.shortfall.losing for item in change.demands if item.ref not in told and item.shortfall.losing
    }
    if losing:  # for now: what is wrong with a template is mended in the long run
        sentences.append(f"{losing_words(sum(losing.values()))} ({_shares(losing)})")
    lacking = {item.ref: item.shortfall.lacking for item in change.demands if item.shortfall.lacking}
    if lacking:
        count = sum(lacking.values())
        verb = "finds" if count == 1 else "find"
        sentences.append(f"{counted(count, 'new chunk')} {verb} no place ({_shares(lacking)})")
    unready = [item.ref for item in change.demands if item.shortfall.unready and not item.shortfall.losing]
    if unready:
        sentences.append(
            f"{listed((ref.short for ref in unready), most=3)} {'is' if len(unready) == 1 else 'are'} not ready"
        )
    sentences += _later(change, sum(lacking.values()), zone)
    unsure = sum(item.shortfall.unsure for item in change.demands)
    if unsure:
        sentences.append(f"{counted(unsure, 'chunk')} left to an autoscaler that nothing in the cluster shows")
    for severity, noun in ((Severity.ERROR, "new error"), (Severity.WARNING, "new warning")):
        count = sum(finding.severity is severity for finding in change.new_findings)
        if count:
            sentences.append(counted(count, noun))
    if change.failed_gates:
        sentences.append(f"{counted(len(change.failed_gates), 'bound')} not kept")
    return sentences


def drift_words(drift: ForetoldDrift, zone: tzinfo | None = None) -> str:
    """`4 of 4 nodes of NodePool general drift (labels), 2 at a time, in at least 2 rounds`."""
    verb = "drifts" if len(drift.nodes) == 1 else "drift"
    of = f"{len(drift.nodes):,} of {counted(drift.total, 'node')} of NodePool {drift.node_pool}"
    return f"{of} {verb} ({listed(drift.why, most=3)}), {pace_words(drift, zone)}"


def pace_words(drift: ForetoldDrift, zone: tzinfo | None) -> str:
    """`all at once`, `2 at a time, in at least 2 rounds`, `none until 2026-11-28 00:00 UTC, then 1 at a time`."""
    if drift.budget == 0:
        return f"none within {SPAN}"
    at_once = "all at once" if drift.budget is None else f"{drift.budget:,} at a time"
    rounds = f", in at least {drift.rounds:,} rounds" if drift.rounds > 1 else ""
    return f"{f'none until {moment(drift.opens, zone)}, then ' if drift.opens else ''}{at_once}{rounds}"


def _shares(counts: Mapping[ObjectRef, int]) -> str:
    """`shop/api 50, shop/cart 4 and 1 more`, the most first."""
    order = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return listed((f"{ref.short} {count:,}" for ref, count in order), most=3)


def _later(change: Difference, known: int, zone: tzinfo | None) -> list[str]:
    """New chunks that will find no place at a later time, when schedules ask for more."""
    peak = None if change.cost is None else change.cost.lacking()
    if peak is None or peak.most <= known:
        return []
    words = f"{counted(peak.most, 'new chunk')} without a place from {moment(peak.at, zone)}"
    if known:
        return [f"up to {words}"]
    return [f"{words}, the first from {moment(peak.since, zone)}" if peak.since < peak.at else words]


def effects(change: Difference, zone: tzinfo | None = None) -> list[str]:
    """The effects of merging on the cluster."""
    sentences = []
    static = sum(item.after - item.before for item in change.static_pools)
    nodes = len(change.added_nodes) - len(change.removed_nodes) + static
    if nodes:
        new, gone = len(change.added_nodes), len(change.removed_nodes)
        others = f" ({new:,} new, {gone:,} no longer needed)" if new and gone else ""
        sentences.append(f"{counted(abs(nodes), 'more node' if nodes > 0 else 'fewer node')} now{others}")
    elif change.added_nodes:
        sentences.append(f"{counted(len(change.added_nodes), 'node')} of another kind")
    sentences += [] if is_unrendered(change) else _growth(change, nodes, zone)
    handed = [item for item in change.demands if item.handed_to]
    if handed:
        to = listed(dict.fromkeys(item.handed_to for item in handed))
        sentences.append(f"{listed((item.ref.short for item in handed), most=3)} kept by {to}")
    if change.released:
        sentences.append(f"{counted(len(change.released), 'node')} released")
    sentences += _objects(change)
    if change.templates:
        sentences.append(f"{counted(len(change.templates), 'object')} changed by templates")
    return sentences


def _objects(change: Difference) -> list[str]:
    """`NodePool general no longer declared`, `2 objects added and 1 removed`: NodePools that go by name, since nodes go with them.
    What is removed is deleted; other objects that are no longer declared stay in the cluster."""
    pools = [item.ref for item in change.objects if item.action in _GONE and item.ref.kind == "NodePool"]
    sentences = [f"NodePool {listed((ref.name for ref in pools), most=3)} no longer declared"] if pools else []
    counts = Counter(item.action for item in change.objects if item.action not in _GONE or item.ref.kind != "NodePool")
    words = [
        (f"{counts[each]:,}", counted(counts[each], "object"), verb) for each, verb in _VERBS.items() if counts[each]
    ]
    told = [f"{number if index else objects} {verb}" for index, (number, objects, verb) in enumerate(words)]
    return [*sentences, *([listed(told)] if told else [])]


def _growth(change: Difference, now: int, zone: tzinfo | None) -> list[str]:
    """By how many nodes the head exceeds the base later, if by more than now."""
    peak = None if change.cost is None else change.cost.new_nodes()
    if peak is None or peak.most <= max(0, now):
        return []
    since, at = (_from(time, change, zone) for time in (peak.since, peak.at))
    if now > 0 or peak.since == peak.at:
        return [f"up to {counted(peak.most, 'more node')} {at}"]
    return [f"{counted(peak.first, 'more node')} {since}, up to {peak.most:,} {at}"]


def _from(time: datetime, change: Difference, zone: tzinfo | None) -> str:
    """Nodes of this hour may take a while to come and go, so no time says when their number is that of the declared state."""
    return f"from {moment(time, zone)}" if time > change.head.now else "once the cluster has settled"


def cost_words(change: Difference) -> str:
    """`+$59.86 (+12%) over the coming 30 days`; without that figure, a month at the present price. Of a request also the price of an hour,
    since nobody knows how long its pods run."""
    samples = " at sample prices" if sample_words(change.base, change.head) else ""
    if change.cost is None:
        return f"{signed_dollars(change.per_month_delta)} a month{samples}"
    words = percent_words(change.cost.before, change.cost.after)
    until = " once the templates render" if is_unrendered(change) else ""
    unpriced = unpriced_words(change.cost)
    if words == "no change":
        words, joint = ("cost not known", ": ") if unpriced else ("no change in cost", "")
    else:
        joint = ", not counting " if unpriced else ""
    over = f"{words} over the coming {SPAN}{samples}{until}{joint}{unpriced}"
    running = [
        f"{an_hour(row.per_hour)} an hour while {row.ref.short} runs"
        for row in change.cost.demands()
        if row.ref is not None and row.per_hour is not None and row.delta > 0
    ]
    return f"{over}, and {listed(running, most=3)}" if running else over


def is_unrendered(change: Difference) -> bool:
    """Whether templates of the head fail, so that nodes included in its cost are not made."""
    return any(finding.code == codes.TEMPLATE_FAILED.name for finding in change.head.findings)


def headline(change: Difference, zone: tzinfo | None = None) -> str:
    """Everything in one line, which no report cuts. It states facts, the worst first, and recommends nothing."""
    is_more = change.room.more and not is_unrendered(change)
    more = [f"more room: {named_room(change.room.more, zone)}"] if is_more else []
    unknown = _unjudged(change)
    parts = [*_conflicts(change), *problems(change, zone), *unknown, *_left_errors(change)]
    effect = [*more, *effects(change, zone)]
    if not (effect or problems(change, zone)):
        effect = [f"no {'other ' if unknown else ''}change in capacity"]
    words = "; ".join([*parts, *effect, cost_words(change)])
    return words if "/" in words.split(" ", 1)[0] else words[:1].upper() + words[1:]  # names stay as they are


def _conflicts(change: Difference) -> list[str]:
    if not change.conflicts:
        return []
    files = f"{listed(change.conflicts, most=3)} {'is' if len(change.conflicts) == 1 else 'are'} in conflict"
    return [f"not merged, since {files}: what the branch itself changes is shown"]


def _unjudged(change: Difference) -> list[str]:
    """What of the change is not in the figures."""
    sentences = [f"not judged: {words}" for words in change.unjudged]
    kept = list(dict.fromkeys(ref.short for ref in change.kept_as_before))  # a buffer's template often has its name
    if kept:
        sentences.append(
            f"{listed(kept, most=3)} as before, since {'its' if len(kept) == 1 else 'their'} new documents have errors"
        )
    if change.room.unjudged:
        sentences.append(f"room not judged for {change.room.unjudged:,.0f} hours")
    return sentences


def _left_errors(change: Difference) -> list[str]:
    """How many errors there were before the change that it leaves as they are."""
    count = len(change.left_errors)
    return [f"{counted(count, 'error')} that {change.base_branch} has too"] if count else []


def verdict(change: Difference) -> str:
    """What to do before merging; "" where nothing calls for it. Never a blessing: what is right is for the reviewer to judge."""
    has_new_errors = any(item.severity is Severity.ERROR for item in change.new_findings)
    if change.conflicts or change.failed_gates or change.stalled or has_new_errors:
        return "Do not merge as it is"
    short = [item.shortfall for item in change.demands]
    short += [] if change.cost is None else [loss.most for loss in change.cost.shortfalls().values()]
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
    if change.conflicts:
        return f"What {change.head_name} changes since {change.base_name}"
    if change.names is None:
        return f"What merging {change.head_name} into {change.base_name} would change"
    return f"What differs between {change.base_name} and {change.head_name}"


def hourly_words(change: Difference) -> str:
    """What an hour costs at present, without the change and with it."""
    return (
        f"at this hour {an_hour(change.per_hour_before)}/h without it, {an_hour(change.per_hour_after)}/h with it"
        f" ({an_hour(change.per_hour_now)}/h for the nodes that exist now)"
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
        sentences = self._too_dear(change, cost)
        peak = cost.new_nodes()
        if self.max_new_nodes is not None and peak is not None and peak.most > self.max_new_nodes:
            allowed = f"{self.max_new_nodes:,} {'is' if self.max_new_nodes == 1 else 'are'} allowed"
            nodes = counted(peak.most, "new node")
            sentences.append(f"up to {nodes} {_from(peak.at, change, zone)}; {allowed}")
        if self.no_unplaced:
            for ref, loss in sorted(cost.shortfalls().items()):
                sentences += [f"{ref}: {_with_way_out(words)}" for words in loss_words(_bounded(loss), zone)]
        if self.no_less_room:
            sentences += [f"less room: {room_words(item, zone)}" for item in change.room.less]
        if self.no_drift:
            sentences += [drift_words(item, zone) for item in change.drift]
        if self.no_new_errors and change.stalled:
            sentences.append(f"{_STALLS}: {change.stalled}")
        new_errors = [item for item in change.new_findings if item.severity is Severity.ERROR]
        for forbidden, word, errors in (
            (self.no_new_errors, "new error", new_errors),
            (self.no_existing_errors, "error that is there already", change.left_errors),
        ):
            sentences += [
                f"{word}: {item.ref or item.position or item.path}: {item.message}" for item in errors if forbidden
            ]
        return tuple(sentences)

    def _too_dear(self, change: Difference, cost: CostChange) -> list[str]:
        bound = self.max_monthly_increase
        if bound is None:
            return []
        keeps = f"whether the cost keeps to {dollars(bound)} over 30 days is unknown"
        if cost.delta > 0 and sample_words(change.base, change.head):
            return [f"{keeps}, since sample prices are invented: name a price list with --catalog"]
        sentences = []
        if round(cost.delta - bound, 2) > 0:
            sentences.append(
                f"{signed_dollars(cost.delta)} over 30 days is more than the {dollars(bound)} that are allowed"
            )
        more, _ = cost.unpriced()
        if more:
            sentences.append(f"{counted(more, 'new node')} without a known price: {keeps}")
        return sentences


def _with_way_out(words: str) -> str:
    return f"{words}{_FIRST_ONE}" if words.endswith(NOT_SHOWN) else words


def _bounded(loss: Rise[Shortfall]) -> Rise[Shortfall]:
    """The loss that counts. Of chunks left to an autoscaler, only those that headroom keeps at present count. An autoscaler cannot show
    itself before there is a native buffer, and the first one must be mergeable."""
    first, most = (replace(short, unsure=short.handed_over) for short in (loss.first, loss.most))
    return replace(loss, first=first, most=most)

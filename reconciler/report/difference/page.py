"""What merging would change, as rows for text, Markdown and HTML."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import tzinfo

from reconciler.model.nodes import ForetoldDrift
from reconciler.model.refs import ObjectRef, listed
from reconciler.model.timelines import CapacityTimeline
from reconciler.report.costs import cost_parts, loss_words, short_words, unpriced_words
from reconciler.report.difference.difference import Difference, unplaced
from reconciler.report.difference.headline import headline, hourly_words, pace_words, title, verdict
from reconciler.report.difference.room import size_words
from reconciler.report.plan.rows import (
    ReportPage,
    action_row,
    creation_row,
    findings_listing,
    listing,
    local_budgets_section,
    object_row,
    section,
    static_pool_row,
)
from reconciler.report.plan.words import SPAN, sample_words
from reconciler.report.timeline.rows import change_rows
from reconciler.report.words import (
    Row,
    amounts_words,
    change_words,
    cluster_title,
    grouped,
    local_zone,
    moment,
    table_row,
)

_CHUNK = "A chunk is room for one pod that is kept ready; a demand is the buffer or request that asks for it."
_WORKED_OUT = (
    f"over {SPAN}: what each state of the schedules asks for, placed and priced for as long as it holds, whatever the caps of"
    " one pass and whatever nodes headroom has made before; percentages and the nodes of pods stay as they are now, and nodes that"
    " drift are replaced"
)


def difference_page(
    change: Difference,
    *,
    cluster: str,
    snapshot: str = "",
    timelines: tuple[CapacityTimeline, CapacityTimeline] | None = None,
    zone: tzinfo | None = None,
    whole: str = "",
) -> ReportPage:
    """The same structure as `plan_page`, for what merging would change. timelines: the base's and the head's.

    whole: the address of the complete report, "" if there is none. snapshot: in words, the published snapshot that both were planned with.
    """
    place, sample = zone or local_zone(change.head.now), sample_words(change.base, change.head)
    demands = grouped([*_demand_rows(change), *_room_later(change, zone), *_later(change, zone)])
    return ReportPage(
        title=f"{cluster_title(cluster)}: {'what merging changes' if change.names is None else 'what differs'}",
        heading=title(change),
        is_refused=bool(change.conflicts or change.failed_gates),
        revision=change.head_name,
        base=change.base_name,
        when=", ".join(filter(None, (moment(change.head.now, zone), snapshot))),
        summary=headline(change, zone),
        verdict=verdict(change),
        warnings=[*filter(None, [sample]), *(f"Not kept: {sentence}" for sentence in change.failed_gates)],
        cost=_cost_words(change),
        assumptions=assumptions(change),
        demands=listing(demands, note=_CHUNK if demands else ""),
        sections=[item for item in _sections(change, zone) if item["count"]],
        findings=[
            findings_listing("New findings", change.new_findings),
            findings_listing(f"Errors that {change.base_branch} has too", change.left_errors),
            findings_listing("Findings that merging fixes", change.fixed_findings),
        ],
        whole=whole,
        notes=notes(change),
        week=None if timelines is None else change_rows(*timelines, place),
    )


def notes(change: Difference) -> list[str]:
    """Further notes, one sentence each."""
    blocked = (f"Nothing is deleted or released: {reason}" for reason in change.head.blocked)
    edited = {item.ref for item in change.objects}
    filled = (
        f"{outcome.demand.ref} has been filled once and is not filled again, so that another size changes nothing"
        for outcome in change.head.demands
        if outcome.demand.left_of is not None and outcome.demand.ref in edited
    )
    return list(dict.fromkeys((*change.notes, *blocked, *filled, *change.head.notes)))


def assumptions(change: Difference) -> list[str]:
    """The assumptions behind the prices of both sides, and what only those of the base assume."""
    of_the_month = () if change.cost is None else (_WORKED_OUT, *change.cost.notes)
    own = change.head.cost.assumptions
    others = (f"without the change: {each}" for each in change.base.cost.assumptions if each not in own)
    return list(dict.fromkeys((*own, *others, *of_the_month)))


def _cost_words(change: Difference) -> str:
    cost, hour = change.cost, hourly_words(change)
    if cost is None:
        return hour
    delta = change_words(cost.before, cost.after)
    uncounted = f", not counting {unpriced}" if (unpriced := unpriced_words(cost)) else ""
    return f"{amounts_words(cost.before, cost.after)} over {SPAN} ({delta}{uncounted}); {hour}"


def _sections(change: Difference, zone: tzinfo | None) -> list[Row]:
    costs = [] if change.cost is None else cost_parts(change.cost)
    known = change.base.local_budgets
    return [
        section("Nodes that drift", [_drift_row(item, zone) for item in change.drift]),
        section("Objects that change", grouped(object_row(item) for item in change.objects)),
        section("Objects that other templates change", grouped(object_row(item) for item in change.templates)),
        *(section(f"Cost over {SPAN}, {by}", rows, "Before → after", "Change") for by, rows in costs),
        section("Nodes that appear", grouped((creation_row(item) for item in change.added_nodes), noun="node")),
        section(
            "Nodes no longer needed", grouped((creation_row(item, "-") for item in change.removed_nodes), noun="node")
        ),
        section("Nodes released to Karpenter", [action_row(item, "-") for item in change.released]),
        section("Nodes kept", [action_row(item, "=") for item in change.kept]),
        section("Nodes of static NodePools", [static_pool_row(item) for item in change.static_pools]),
        local_budgets_section([pool for pool in change.head.local_budgets if pool not in known], zone),
    ]


def _drift_row(item: ForetoldDrift, zone: tzinfo | None) -> Row:
    size = f"{len(item.nodes):,} of {item.total:,}"
    why = f"{listed(item.why)}; {pace_words(item, zone)} ({item.budget_why}): {', '.join(item.nodes)}"
    return table_row(f"NodePool {item.node_pool}", size, why, things=len(item.nodes))


def _demand_rows(change: Difference) -> Iterator[Row]:
    for item in change.demands:
        before, after = item.size_words
        left, right = ("–" if count is None else f"{count:,}" for count in map(unplaced, (item.before, item.after)))
        without = f"{left} → {right}" if unplaced(item.before) else right
        yield _row(item.ref, after if before == after else f"{before} → {after}", without, change.why(item))


def _room_later(change: Difference, zone: tzinfo | None) -> Iterator[Row]:
    """Demands whose room differs only at some times, because of schedules."""
    told = {item.ref for item in change.demands}
    for word, items in (("less room", change.room.less), ("more room", change.room.more)):
        for item in items:
            if not (item.is_lasting and item.ref in told):
                yield _row(item.ref, size_words(item, zone), "", [word, *([item.why] if item.why else [])])


def _later(change: Difference, zone: tzinfo | None) -> Iterator[Row]:
    """Demands that lose something only at a later time, when schedules have another value."""
    for ref, loss in change.later:
        why = short_words(loss.most, "then") if loss.since == loss.at else loss_words(loss, zone)
        yield _row(ref, f"from {moment(loss.at, zone)}", f"{loss.most.chunks:,}", why)


def _row(ref: ObjectRef, size: str, unplaced: str, why: list[str]) -> Row:
    row: Row = {"name": str(ref), "where": "", "desired": size, "existing": "", "new": "", "unplaced": unplaced}
    return {**row, "why": why, "facts": []}

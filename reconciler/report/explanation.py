"""Explains one demand, schedule or NodePool of a plan, as text and as JSON (`headroom.dev/explain/v1`). Called by `headroom explain`."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import groupby
from typing import Any

from reconciler.model.changes import DemandOutcome, Plan
from reconciler.model.declared import Declared
from reconciler.model.demand import Keeper
from reconciler.model.errors import Invalid
from reconciler.model.findings import Finding
from reconciler.model.nodes import NodePool, node_pool_ref
from reconciler.model.placement import Holding, UnplacedReason, Wait
from reconciler.model.quantity import format_duration
from reconciler.model.refs import ObjectRef, counted
from reconciler.model.schedules import Schedule, following_of
from reconciler.report.budgets.document import budget_row
from reconciler.report.escaping import Paint, members, plain, terminal_lines, timestamp
from reconciler.report.findings import finding_lines, finding_row
from reconciler.report.plan.document import demand_row
from reconciler.report.plan.rows import object_row, row_lines
from reconciler.report.plan.words import bin_words, candidates, domain_lines, domain_totals, held, offered
from reconciler.report.schedules.page import schedule_row
from reconciler.report.words import NOT_SHOWN, behavior_name, keeper_words, moment, size_words
from reconciler.timetable.capacity_schedule import timeline

_MOST = 5
_WHOLE = 3
"""Parts of KIND/NAMESPACE/NAME."""
EXPLAIN_SCHEMA = "headroom.dev/explain/v1"
MOST_UNUSED = 5
"""Nodes that are listed as not used."""


def matching(wanted: str, names: Iterable[str]) -> list[str]:
    """The names (`KIND/NAMESPACE/NAME` or `KIND/NAME`) that match best: equal ones, else by whole parts, else by pieces of parts.

    A name with all three parts means one object, and matches no other.
    """
    known = list(names)
    if wanted in known:
        return [wanted]
    asked = wanted.split("/")
    if not all(asked) or len(asked) >= _WHOLE:
        return []
    return [name for name in known if _has(name, asked, whole=True)] or [
        name for name in known if _has(name, asked, whole=False)
    ]


def near_words(wanted: str, names: Collection[str]) -> str:
    """`did you mean A or B?`, for similar names; "" if there are none."""
    last = wanted.rpartition("/")[2]
    near = matching(wanted, names) or [name for name in names if last and last in name]
    near = near or difflib.get_close_matches(wanted, names, n=3, cutoff=0.4)
    if not near:
        # A name alone is short compared with one that has kind and namespace, so it is compared with names alone.
        ends = {name.rpartition("/")[2]: name for name in names}
        near = [ends[end] for end in difflib.get_close_matches(last, ends, n=3)]
    if not near:
        return ""
    more = f" (or one of {len(near) - _MOST:,} more)" if len(near) > _MOST else ""
    return f"did you mean {' or '.join(near[:_MOST])}?{more}"


def _has(name: str, asked: list[str], *, whole: bool) -> bool:
    """Whether the wanted parts are among the name's, in the same order."""
    parts = iter(name.split("/"))
    return all(any(part == one if whole else one in part for part in parts) for one in asked)


@dataclass(frozen=True, slots=True)
class ChunkBin:
    """`count` chunks on one node. new: the plan creates it; node_pool None: an existing node."""

    node: str
    new: bool
    node_pool: str | None
    count: int


@dataclass(frozen=True, slots=True)
class Explanation:
    plan: Plan
    outcome: DemandOutcome
    bins: tuple[ChunkBin, ...]
    findings: tuple[Finding, ...]
    waits: tuple[Wait, ...] = ()

    @property
    def unused(self) -> dict[str, str]:
        """Nodes that take no more chunks, with the reason; none where every chunk is on an existing node that stays."""
        settled = not self.outcome.unplaced and not any(item.new for item in self.bins)
        return {} if settled else dict(self.plan.unused)


def explanation(plan: Plan, name: str, others: Iterable[str] = ()) -> Explanation:
    """Explains one demand. name: KIND/NAMESPACE/NAME, or a part that only one demand matches. Raises `Invalid` with similar names.

    others: names that may have been meant too.
    """
    outcomes = {str(outcome.demand.ref): outcome for outcome in plan.demands}
    names = matching(name, outcomes)
    if len(names) != 1:
        what = "fits several demands" if names else "is not a demand, schedule or NodePool here"
        hint = near_words(name, names or [*outcomes, *others]) or "`headroom plan` lists every demand"
        if name.startswith("Pod/") and not any(text.startswith("Pod/") for text in outcomes):
            hint = "pending pods are explained with --include-pending"
        if name.startswith("Pod/"):
            hint = next((note for note in plan.notes if f"{name} " in note), hint)
        raise Invalid(f"{name!r} {what}", hint=hint)
    outcome = outcomes[names[0]]
    ref = outcome.demand.ref
    bins = [
        ChunkBin(place.node or place.node_claim or "", new=False, node_pool=None, count=count)
        for place in plan.occupied
        if (count := _count(place.holdings, ref))
    ] + [
        ChunkBin(creation.name, new=True, node_pool=creation.planned.node_pool, count=count)
        for creation in plan.node_claims.create
        if (count := _count(creation.planned.holdings, ref))
    ]
    findings = tuple(item for item in plan.findings if _concerns(item, ref))
    return Explanation(plan, outcome, tuple(bins), findings, tuple(wait for wait in plan.waits if wait.demand == ref))


def _concerns(finding: Finding, ref: ObjectRef) -> bool:
    """Findings without object and file concern every demand, such as a rejected placement."""
    return finding.ref == ref or (finding.ref is None and finding.position is None)


def _count(holdings: Iterable[Holding], ref: ObjectRef) -> int:
    return sum(holding.count for holding in holdings if holding.demand == ref)


def explanation_document(found: Explanation) -> dict[str, Any]:
    """As `headroom.dev/explain/v1`."""
    return {
        "schemaVersion": EXPLAIN_SCHEMA,
        "now": timestamp(found.plan.now),
        "demand": demand_row(found.outcome),
        "bins": [
            {
                **members(item, "node", "new", "node_pool", "count"),
                "labels": {count.key: list(count.values) for count in found.outcome.domains if count.bin == item.node},
            }
            for item in found.bins
        ],
        "domains": [
            {"key": key, "value": value, "count": count}
            for key, values in domain_totals(found.outcome).items()
            for value, count in values.items()
        ],
        "chunks": [
            {"count": group.count, "requests": dict(group.shape.requests.quantities())}
            for group in found.outcome.demand.groups
        ],
        "unused": [{"node": name, "why": why} for name, why in found.unused.items()],
        "surge": [
            {
                "message": wait.words,
                **members(wait, "waiting", "promised", "alone"),
                "order": [{"demand": str(item.demand), "node": item.node or None} for item in wait.bindings],
            }
            for wait in found.waits
        ],
        "findings": [finding_row(finding) for finding in found.findings],
    }


def explanation_text(found: Explanation, *, paint: Paint = plain, width: int | None = None, surge: bool = False) -> str:
    """surge: with the worst order that pods may come in."""
    outcome = found.outcome
    demand = outcome.demand
    where = f"  {paint('dim', f'{demand.source.file}:{demand.source.line}')}" if demand.source else ""
    lines = [paint("bold", str(demand.ref)) + where]
    noun = "pod" if demand.is_pending_pod else "chunk"
    service = outcome.service
    size = size_words(service) if demand.desired is None else counted(demand.desired, noun)
    lines += [f"  size: {size}", *(f"    {fact}" for fact in demand.explanation)]
    for group in demand.groups:
        requests = ", ".join(f"{name} {text}" for name, text in group.shape.requests.quantities().items())
        lines.append(f"    each {noun} asks for {requests}")
    for item in found.bins:
        kind = f"new node in NodePool {item.node_pool}" if item.new else "existing node"
        labels = bin_words(outcome, item.node)
        lines.append(f"  {counted(item.count, noun)} in {item.node} ({kind}{f'; {labels}' if labels else ''})")
    if len(found.bins) > 1:
        lines += [f"  {line}" for line in domain_lines(outcome)]
    if found.unused:
        rest = len(found.unused) - MOST_UNUSED
        lines.append("  not used:")
        lines += [f"    {name} {why}" for name, why in list(found.unused.items())[:MOST_UNUSED]]
        lines += [f"    … and {rest:,} more (--output json has them all)"] if rest > 0 else []
    if service.by is not Keeper.HEADROOM and not service.is_left:
        lines.append(f"  kept by {keeper_words(service)}")
    if not service.certain:
        lines.append(paint("yellow", f"  {NOT_SHOWN}"))
    if outcome.unplaced:
        lines.append(paint("red", f"  {counted(outcome.unplaced, noun)} unplaced:"))
        reasons = [f"{_cause(reason)}: {reason.example}" for reason in outcome.unplaced_reasons]
        lines += [f"    {reason}" for reason in reasons or [service.why]]
    lines += [
        f"  {condition.type}={condition.status} {condition.reason}{f': {condition.message}' if condition.message else ''}"
        for condition in outcome.conditions
    ]
    above_orders = {wait.words for wait in found.waits if surge}
    lines += _finding_lines([item for item in found.findings if item.message not in above_orders], paint)
    if surge:
        lines += _surge_lines(found)
    return terminal_lines(lines, paint, width)


def _surge_lines(found: Explanation) -> list[str]:
    """Runs of equal pods are one line."""
    placed = found.outcome.on_existing + found.outcome.on_new
    lines = []
    if not found.outcome.demand.is_rehearsed:
        lines.append("  no order of pods is tried: it does not promise that its room is free for pods that come")
    elif not found.waits:
        lines.append(
            f"  it has room for {counted(placed, 'pod')}, and in no order that was tried does one of them wait"
        )
    for wait in found.waits:
        lines.append(f"  {wait.words}. The order, and where kube-scheduler would bind each pod:")
        for (ref, node), run in groupby(wait.bindings, key=lambda item: (item.demand, item.node)):
            lines.append(f"    {counted(len(list(run)), 'pod')} of {ref}: {node or 'waits'}")
    return lines


def _cause(reason: UnplacedReason) -> str:
    """The cause, with the number of candidates if there are several. Some reasons have none, such as that there is no node."""
    return reason.cause if reason.count == 1 else f"{reason.cause} ({candidates(reason)})"


@dataclass(frozen=True, slots=True)
class Explained:
    """document: as `headroom.dev/explain/v1`. text: for a terminal."""

    document: dict[str, Any]
    text: str


def explained(
    plan: Plan, declared: Declared | None, name: str, *, surge: bool, paint: Paint = plain, width: int | None = None
) -> Explained:
    """The object of a plan that this name, or a part of it, means. declared: what the plan was made of, None if that is not known.

    Raises `Invalid` with similar names. surge, width: as for `explanation_text`.
    """
    schedules = {str(item.ref): item for item in (() if declared is None else declared.schedules)}
    pools = {f"NodePool/{item.name}": item for item in (() if declared is None else declared.node_pools)}
    demands = {str(outcome.demand.ref) for outcome in plan.demands}
    fitting = matching(name, (*demands, *schedules, *pools)) if declared is not None else []
    # A buffer's name means the buffer, even if a NodePool has the same name.
    others = [] if demands & set(fitting) else fitting
    if len(others) > 1:
        raise Invalid(f"{name!r} fits several objects", hint=near_words(name, others))
    if declared is None or not others:
        found = explanation(plan, name, (*schedules, *pools))
        return Explained(explanation_document(found), explanation_text(found, paint=paint, width=width, surge=surge))
    schedule = schedules.get(others[0])
    if schedule is not None:
        row, lines = _schedule(plan, declared, schedule)
        key, title, ref, position = "schedule", str(schedule.ref), schedule.ref, schedule.position
    else:
        pool = pools[others[0]]
        row, lines = _node_pool(plan, pool, paint)
        key, title, position = "nodePool", others[0], pool.position
        ref = node_pool_ref(pool.name)
    findings = [item for item in plan.findings if item.ref is not None and str(item.ref) == str(ref)]
    where = f"  {paint('dim', str(position))}" if position else ""
    document = {
        "schemaVersion": EXPLAIN_SCHEMA,
        "now": timestamp(plan.now),
        key: row,
        "findings": list(map(finding_row, findings)),
    }
    text = terminal_lines([paint("bold", title) + where, *lines, *_finding_lines(findings, paint)], paint, width)
    return Explained(document, text)


def _finding_lines(findings: Sequence[Finding], paint: Paint) -> list[str]:
    return ["  findings:", *(f"  {line}" for line in finding_lines(findings, paint))] if findings else []


def _schedule(plan: Plan, declared: Declared, schedule: Schedule) -> tuple[dict[str, Any], list[str]]:
    now = timeline(schedule, plan.now, plan.now + timedelta(seconds=1), plan.now)
    outcome, behavior = now.outcome, now.spans[0].behavior
    followers = _followers(declared, schedule)
    giver = "the default, since no behavior is active" if behavior is None else behavior_name(behavior)
    lines = [f"  {outcome.current_value:,} now, {moment(plan.now, None)}: {giver}"]
    if outcome.next_value_time is None or outcome.next_value is None:
        lines.append("  no further change")
    else:
        lines.append(f"  {outcome.next_value:,} from {moment(outcome.next_value_time, None)}")
    lines += [f"  followed by {ref}: {how}" for ref, how in followers] or ["  followed by nothing"]
    row = {
        **schedule_row(outcome),
        "timezone": schedule.timezone,
        "behavior": behavior,
        "followers": [{"object": str(ref), "follows": how} for ref, how in followers],
    }
    return row, lines


def _followers(declared: Declared, schedule: Schedule) -> list[tuple[ObjectRef, str]]:
    pairs = []
    objects = [(buffer.ref, buffer.annotations) for buffer in declared.buffers]
    objects += [(node_pool_ref(pool.name), pool.annotations) for pool in declared.node_pools]
    for ref, marks in objects:
        following = following_of(ref, marks)
        if following is None:
            continue
        ways = [
            words
            for words, named in (("replicas", following.replicas_from), ("existence", following.active_during))
            if named == schedule.ref
        ]
        if ways:
            lead = f", {format_duration(following.lead)} ahead" if following.lead else ""
            pairs.append((ref, f"{' and '.join(ways)}{lead}"))
    return sorted(pairs)


def _node_pool(plan: Plan, pool: NodePool, paint: Paint) -> tuple[dict[str, Any], list[str]]:
    created = [item for item in plan.node_claims.create if item.planned.node_pool == pool.name]
    budgets = [row for row in plan.budgets if row.node_pool == pool.name]
    refused = [
        (str(outcome.demand.ref), reason.example)
        for outcome in plan.demands
        for reason in outcome.unplaced_reasons
        if f"NodePool {pool.name} " in f"{reason.example} "
    ]
    lines = [] if pool.replicas is None else [f"  static: {counted(pool.replicas, 'node')}"]
    lines.append(f"  {counted(len(created), 'new node')} in this plan")
    for item in created:
        lines += [f"    {item.name}  {offered(item)}", f"      for {held(item.planned.holdings)}"]
    lines += [f"  refused {demand}: {words}" for demand, words in refused]
    for row in budgets:
        allowed = "no limit" if row.allowed is None else f"{row.allowed:,} allowed"
        lines.append(f"  disruptions for {row.reason}: {allowed}: {row.why}")
    for change in plan.objects:
        if change.ref.kind == "NodePool" and change.ref.name == pool.name:
            lines += row_lines(object_row(change), paint)
    document = {
        "name": pool.name,
        "creates": [item.name for item in created],
        "refused": [{"demand": demand, "reason": words} for demand, words in refused],
        "budgets": list(map(budget_row, budgets)),
    }
    return document, lines

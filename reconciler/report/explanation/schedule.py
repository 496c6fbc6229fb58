"""One schedule, explained: its value, which behavior gives it, the next value, and what follows it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from reconciler.model.changes import Plan, ScheduleOutcome
from reconciler.model.declared import Declared
from reconciler.model.durations import format_duration
from reconciler.model.findings import Finding
from reconciler.model.following import following_of
from reconciler.model.refs import ObjectRef
from reconciler.model.schedules import Schedule
from reconciler.report.escaping import terminal_lines
from reconciler.report.explanation.document import EXPLAIN_SCHEMA
from reconciler.report.findings.document import finding_row
from reconciler.report.findings.text import finding_lines
from reconciler.report.json_text import timestamp
from reconciler.report.paint import Paint, plain
from reconciler.report.schedules.document import schedule_row
from reconciler.report.words import moment
from reconciler.timetable.capacity_schedule import timeline

_POOL_GROUP = "karpenter.sh"


@dataclass(frozen=True, slots=True)
class ScheduleExplanation:
    """behavior: the index of the one in effect, None for the default. followers: each object, and how it follows."""

    plan: Plan
    schedule: Schedule
    outcome: ScheduleOutcome
    behavior: int | None
    followers: tuple[tuple[ObjectRef, str], ...]
    findings: tuple[Finding, ...]


def schedule_explanation(plan: Plan, declared: Declared, schedule: Schedule) -> ScheduleExplanation:
    now = timeline(schedule, plan.now, plan.now + timedelta(seconds=1), plan.now)
    return ScheduleExplanation(
        plan,
        schedule,
        now.outcome,
        now.spans[0].behavior,
        tuple(_followers(declared, schedule)),
        tuple(finding for finding in plan.findings if finding.ref == schedule.ref),
    )


def _followers(declared: Declared, schedule: Schedule) -> list[tuple[ObjectRef, str]]:
    found = []
    objects = [(buffer.ref, buffer.annotations) for buffer in declared.buffers]
    objects += [(ObjectRef(_POOL_GROUP, "NodePool", "", pool.name), pool.annotations) for pool in declared.node_pools]
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
            found.append((ref, f"{' and '.join(ways)}{lead}"))
    return sorted(found)


def schedule_explanation_document(found: ScheduleExplanation) -> dict[str, Any]:
    """As `headroom.dev/explain/v1`."""
    return {
        "schemaVersion": EXPLAIN_SCHEMA,
        "now": timestamp(found.plan.now),
        "schedule": {
            **schedule_row(found.outcome),
            "timezone": found.schedule.timezone,
            "behavior": found.behavior,
            "followers": [{"object": str(ref), "follows": how} for ref, how in found.followers],
        },
        "findings": [finding_row(finding) for finding in found.findings],
    }


def schedule_explanation_text(found: ScheduleExplanation, *, paint: Paint = plain, width: int | None = None) -> str:
    """For a terminal."""
    position, outcome = found.schedule.position, found.outcome
    where = f"  {paint('dim', str(position))}" if position else ""
    giver = "the default, since no behavior is active" if found.behavior is None else f"behaviors[{found.behavior}]"
    lines = [paint("bold", str(found.schedule.ref)) + where]
    lines.append(f"  {outcome.current_value:,} now, {moment(found.plan.now, None)}: {giver}")
    if outcome.next_value_time is None or outcome.next_value is None:
        lines.append("  no further change")
    else:
        lines.append(f"  {outcome.next_value:,} from {moment(outcome.next_value_time, None)}")
    lines += [f"  followed by {ref}: {how}" for ref, how in found.followers] or ["  followed by nothing"]
    if found.findings:
        lines += ["  findings:", *(f"  {line}" for line in finding_lines(found.findings, paint))]
    return terminal_lines(lines, paint, width)

"""Findings that need the calendar: behaviors that never begin or end, overlap, or never count.

The search begins with the present hour, and overlaps are reported with their true beginning. So findings read the same in every
pass.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from reconciler.manifests.documents.document import unreadable
from reconciler.manifests.metrics_producer import DEFAULT_ZONE
from reconciler.model import codes
from reconciler.model.findings import Code, Finding
from reconciler.model.refs import ObjectRef, SourcePosition
from reconciler.model.schedules import Schedule
from reconciler.model.timelines import Collision
from reconciler.zone_data import time_zone, zone_data


def old_zone_data(now: datetime, ref: ObjectRef, position: SourcePosition | None, path: str) -> tuple[Finding, ...]:
    """One finding or none. ref, position, path: the first object in local time and its field."""
    data = zone_data()
    if not data.is_old(now):
        return ()
    message = f"local times are computed from time zone data {data}, which is out of date: they may be an hour off"
    hint = "upgrade headroom's image, or the Python package tzdata"
    return (codes.OLD_ZONE_DATA.finding(message, position, ref, path, hint),)


HORIZON = timedelta(days=5 * 366)
"""Long enough to contain every date, 29 February too (except around 1900 and 2100)."""
HORIZON_OF_WEEKS = timedelta(days=400)
"""Long enough if no day of the month is named: months and clock changes recur every year."""
MOST_COLLISIONS = 10
"""How many pairs are reported one by one. The last finding says how many more there are."""
_MOST_MATCHES = 1_000_000
_LEAST_DAYS = 31
_ALL_TIMES = timedelta(days=30)
"""An overlap that began over a year ago and lasts longer than this counts as permanent."""
_MINUTE = "%a %Y-%m-%d %H:%M"


def schedule_findings(schedules: Iterable[Schedule], now: datetime) -> tuple[Finding, ...]:
    """What is wrong with each schedule within five years from `now`, or fewer if fewer are enough."""
    hour = now.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    every_schedule = tuple(schedules)
    local = next((schedule for schedule in every_schedule if schedule.timezone != DEFAULT_ZONE), None)
    old = () if local is None else old_zone_data(now, local.ref, local.position, "spec.schedule.timezone")
    return (*old, *(finding for schedule in every_schedule for finding in _safely(schedule, hour)))


def _safely(schedule: Schedule, hour: datetime) -> tuple[Finding, ...]:
    """The findings of one schedule. A defect of headroom becomes one of them, so that it does not stop a pass."""
    try:
        return _findings(schedule, hour)
    except Exception as error:  # noqa: BLE001 - it concerns this schedule alone
        return (unreadable(error, schedule.position, schedule.ref),)


@lru_cache(maxsize=4096)
def _findings(schedule: Schedule, hour: datetime) -> tuple[Finding, ...]:
    from reconciler.timetable.activity import can_match, is_within
    from reconciler.timetable.capacity_schedule import overlaps

    findings = []
    for index, behavior in enumerate(schedule.behaviors):
        if not can_match(behavior.start):
            message = f"{_name(index)} never begins: there is no such date"
            hint = "correct days and months, or remove the behavior"
            findings.append(_finding(codes.START_NEVER_COMES, schedule, index, message, hint=hint, field="start"))
        elif not can_match(behavior.end):
            message = f"{_name(index)} never ends: there is no such date"
            hint = "correct days and months of its end"
            findings.append(_finding(codes.END_NEVER_COMES, schedule, index, message, hint=hint, field="end"))
        elif is_within(behavior.end, behavior.start):
            message = f"{_name(index)} never ends: whenever its end matches its start does too, and a start wins"
            hint = "let it end at another time than it begins"
            findings.append(_finding(codes.END_NEVER_COMES, schedule, index, message, hint=hint, field="end"))
    found = overlaps(schedule, hour, _horizon(schedule, hour))
    hidden = dict(found.hidden)
    for index, winners in found.hidden:
        names = " and ".join(_name(winner) for winner in winners)
        message = (
            f"{_name(index)} never counts: whenever it is active, {names} {'is' if len(winners) == 1 else 'are'} too"
        )
        hint = f"give {_name(index)} a higher priority, move it up in the list, or remove it"
        findings.append(_finding(codes.UNREACHABLE_BEHAVIOR, schedule, index, message, hint=hint))
    told = [item for item in found.collisions if item.loser not in hidden]
    for count, collision in enumerate(told[:MOST_COLLISIONS], 1):
        rest = len(told) - count if count == MOST_COLLISIONS else 0
        findings.append(_overlap(schedule, collision, hour, rest))
    return tuple(findings)


def _overlap(schedule: Schedule, collision: Collision, hour: datetime, rest: int) -> Finding:
    winner, loser = schedule.behaviors[collision.winner], schedule.behaviors[collision.loser]
    by_priority = winner.priority > loser.priority
    matters = not by_priority and winner.replicas != loser.replicas
    why = (
        f"has the higher priority ({winner.priority} over {loser.priority})"
        if by_priority
        else "comes first in the list"
    )
    first = _between(schedule, collision, hour)
    message = (
        f"{_name(collision.winner)} ({winner.replicas}) and {_name(collision.loser)} ({loser.replicas}) overlap, {first}:"
        f" {_name(collision.winner)} counts, since it {why}"
    )
    if rest:
        message += f"; {rest} more pairs of this schedule overlap"
    hint = (
        "let one end where the other begins, or give the one that is to count a higher priority"
        if matters
        else "nothing to do, if this is intended"
    )
    code = codes.OVERLAPPING_BEHAVIORS if matters else codes.OVERLAP_SETTLED
    return _finding(code, schedule, collision.loser, message, hint=hint)


def _between(schedule: Schedule, collision: Collision, hour: datetime) -> str:
    """`first from Fri 2026-11-27 17:00 to Mon 2026-11-30 09:00 Europe/Berlin (2026-11-27 16:00 UTC)`."""
    from reconciler.timetable.capacity_schedule import began

    zone = time_zone(schedule.timezone)
    ends = collision.end.astimezone(zone).strftime(_MINUTE)
    start = began(schedule, collision) if collision.start == hour else collision.start
    if start is None:
        return "at all times" if collision.end - hour > _ALL_TIMES else f"until {ends} {zone.key}"
    begins = start.astimezone(zone).strftime(_MINUTE)
    if ends.startswith(begins[:-5]):  # the same day
        ends = ends[-5:]
    in_utc = "" if zone.key == "UTC" else f" ({start:%Y-%m-%d %H:%M} UTC)"
    return f"first from {begins} to {ends} {zone.key}{in_utc}"


def _horizon(schedule: Schedule, hour: datetime) -> datetime:
    """The end of the search. It is nearer if the schedule repeats every year, or matches too often to search five years."""
    from reconciler.timetable.activity import matches_a_day

    daily = sum(matches_a_day(item.start) + matches_a_day(item.end) for item in schedule.behaviors)
    by_date = any(item.start.days or item.end.days for item in schedule.behaviors)
    most = timedelta(days=max(_LEAST_DAYS, _MOST_MATCHES // max(daily, 1)))
    return hour + min(HORIZON if by_date else HORIZON_OF_WEEKS, most)


def _name(index: int) -> str:
    return f"behaviors[{index}]"


def _finding(code: Code, schedule: Schedule, index: int, message: str, *, hint: str, field: str = "") -> Finding:
    path = f"spec.schedule.behaviors[{index}]{f'.{field}' if field else ''}"
    position = schedule.behaviors[index].position
    return code.finding(message, position, schedule.ref, path, hint)

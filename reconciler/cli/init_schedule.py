"""`headroom init schedule`: writes a capacity schedule from a few answers. Reached through `headroom init`.

Plain words (`mon-fri 9-17`) become the YAML of a MetricsProducer, whose fields take lists and no ranges.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import click

from reconciler.manifests.metrics_producer import GROUP
from reconciler.model.errors import Invalid, Misused
from reconciler.model.refs import ObjectRef
from reconciler.model.schedules import METRICS_PRODUCER_KIND, WEEKDAYS, Behavior, Schedule, TimePattern
from reconciler.report.schedules.page import schedule_document

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_MOST = 2**31 - 1


@click.command("init schedule")
@click.option("--name", default="business-hours", show_default=True, help="Name of the schedule.")
@click.option("--namespace", default="default", show_default=True, help="Its namespace.")
@click.option(
    "--timezone",
    metavar="ZONE",
    default="UTC",
    show_default=True,
    help="Time zone of the windows, such as Europe/Berlin.",
)
@click.option(
    "--window",
    "windows",
    metavar="WINDOW",
    multiple=True,
    required=True,
    help='When the value differs: "mon-fri 9-17", or with its own replicas "sat 10-14 = 2". May be repeated; '
    "where two overlap, the first one applies.",
)
@click.option("--replicas", type=click.IntRange(0, _MOST), help="Replicas in windows that do not give their own.")
@click.option(
    "--default", type=click.IntRange(0, _MOST), default=0, show_default=True, help="Replicas at all other times."
)
@click.option(
    "--lead-time",
    metavar="DURATION",
    default="",
    help="How much earlier nodes should be ready; written as the buffer's annotation.",
)
@click.option("--output", "-o", metavar="FILE", default="-", show_default=True, help="Write to this file; - is stdout.")
def command(
    *,
    name: str,
    namespace: str,
    timezone: str,
    windows: tuple[str, ...],
    replicas: int | None,
    default: int,
    lead_time: str,
    output: str,
) -> int:
    """Write a capacity schedule (MetricsProducer) from flags.

    \b
        headroom init schedule --window "mon-fri 9-17" --replicas 3 --default 1 --timezone Europe/Berlin
        headroom init schedule --window "fri 17 - mon 9 = 0" --window "mon-thu 22-6 = 1" --default 3 -o hours.yaml
    """
    try:
        _check_flags(name, namespace, timezone, lead_time)
        read = [read_window(words) for words in windows]
    except Invalid as error:
        raise Misused(error.message, hint=error.hint) from error
    if replicas is None and any(window.replicas is None for window in read):
        raise click.UsageError('Give the replicas: --replicas 3, or in the window: --window "mon-fri 9-17 = 3".')
    own = [(window, (replicas or 0) if window.replicas is None else window.replicas) for window in read]
    schedule = schedule_of(ObjectRef(GROUP, METRICS_PRODUCER_KIND, namespace, name), timezone, default, own)
    text = schedule_document(schedule, [window.words for window, _ in own])
    text += f"# A buffer follows it with these annotations:\n#   headroom.dev/replicas-from: {name}\n"
    text += f"#   headroom.dev/lead-time: {lead_time}\n" if lead_time else ""
    file = None if output == "-" else Path(output)
    written = () if file is None else _write(file, text)
    _check("stdout" if file is None else output, text if file is None else file.read_text(encoding="utf-8"))
    if all(number == default for _, number in own):
        click.echo(
            f"  warning: the value is {default:,} at all times: the windows and the other times have the same replicas",
            err=True,
        )
        click.echo("      change one of them: --replicas for the windows, --default for the other times", err=True)
    if file is None:
        click.echo(text, nl=False)
    else:
        click.echo(f"Wrote {' and '.join(map(str, written))}. Next: headroom schedule {output}", err=True)
    return 0


def _check_flags(name: str, namespace: str, zone: str, lead_time: str) -> None:
    """Raises `Invalid` for the first that the manifest may not have."""
    from reconciler.manifests.annotations import LONGEST_LEAD
    from reconciler.manifests.metrics_producer import is_time_zone, time_zone_hint
    from reconciler.model.quantity import parse_duration

    for word in (name, namespace):
        if not _NAME.fullmatch(word):
            raise Invalid(
                f"{word!r} is not a valid name", hint="use up to 63 of a-z, 0-9 and '-', such as business-hours"
            )
    if not is_time_zone(zone):
        raise Invalid(f"{zone!r} is not a time zone", hint=time_zone_hint(zone))
    if lead_time and parse_duration(lead_time) > LONGEST_LEAD:
        raise Invalid(f"a lead time of {lead_time} is more than a week", hint="write at most 168h, such as 10m")


def _check(name: str, text: str) -> None:
    """Prints to stderr what `headroom validate` would, such as overlapping windows. name: of the file, as given."""
    from reconciler.clocks import SystemClock
    from reconciler.manifests.repository.declared import read
    from reconciler.manifests.schedule_findings import schedule_findings
    from reconciler.report.findings import finding_lines

    declared = read({"schedule.yaml": text.encode()})  # whatever the file's own ending is
    findings = (*declared.findings, *schedule_findings(declared.schedules, SystemClock().now()))
    for line in finding_lines(findings):
        click.echo(line.replace("schedule.yaml", name, 1), err=True)


def _write(path: Path, text: str) -> tuple[Path, ...]:
    """Writes the schedule and, if no parent folder has it, the schema for editors. Returns the written files."""
    from reconciler.manifests.crds import SCHEMA_FILE, editor_line, editor_schema_text

    folders = path.absolute().parents
    levels = next((level for level, folder in enumerate(folders) if (folder / SCHEMA_FILE).is_file()), None)
    schema = path.parent / SCHEMA_FILE
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(editor_line(levels or 0) + text)
        if levels is not None:
            return (path,)
        schema.parent.mkdir(exist_ok=True)
        schema.write_text(editor_schema_text(), encoding="utf-8")
    except FileExistsError as error:
        raise Invalid(f"{path} already exists", hint="name another file, or move it away") from error
    except FileNotFoundError as error:
        raise Invalid(f"there is no folder {path.parent}", hint=f"make it first: mkdir -p {path.parent}") from error
    except OSError as error:
        raise Invalid(f"{path}: cannot be written ({error.strerror})", hint="name a file that you can write") from error
    return path, schema


_NAMED = {"daily": frozenset(range(7)), "weekdays": frozenset(range(1, 6)), "weekend": frozenset({0, 6})}
_TIME = r"\d{1,2}(?::\d{2})?"
_WINDOW = re.compile(
    rf"(?P<days>[a-z,-]{{3,30}}) (?P<start>{_TIME}) ?- ?(?P<last>[a-z]{{3}} )?(?P<end>{_TIME})(?: ?= ?(?P<replicas>\d{{1,9}}))?"
)
_HOURS, _MINUTES = 24, 60
_NOT_A_WINDOW = 'write it like "mon-fri 9-17", "sat,sun 10:30-14", "daily 22-6" or "fri 17 - mon 9"'


@dataclass(frozen=True, slots=True)
class Window:
    """A window in which a number of replicas holds.

    words: as written. days, last_days: weekdays on which it begins and ends, 0 is Sunday. start, end: minutes of the day.
    replicas None: not given.
    """

    words: str
    days: frozenset[int]
    start: int
    last_days: frozenset[int]
    end: int
    replicas: int | None = None


def read_window(words: str) -> Window:
    """`WEEKDAYS FROM-TO[=REPLICAS]`, or `WEEKDAY FROM - WEEKDAY TO`. Raises `Invalid` with what to write instead."""
    match = _WINDOW.fullmatch(" ".join(words.lower().split()))
    if match is None:
        raise Invalid(f"{words!r} is not a window of time", hint=_NOT_A_WINDOW)
    days = _weekdays(match["days"])
    start, end = _minutes(match["start"]), _minutes(match["end"])
    if start == _HOURS * _MINUTES:
        raise Invalid(f"{words!r} begins at 24:00", hint="write 0 and the next day")
    if match["last"]:
        if len(days) != 1:
            raise Invalid(f"{words!r} begins on several days and ends on one", hint=_NOT_A_WINDOW)
        last_days = frozenset({_weekday(match["last"].strip())})
    else:
        last_days = days if end > start else _next(days)
    if end == _HOURS * _MINUTES:
        end, last_days = 0, _next(last_days)
    if (last_days, end) == (days, start):
        raise Invalid(
            f"{words!r} never ends: whenever it would end, it begins again",
            hint="give a value that always holds as --default",
        )
    replicas = None if match["replicas"] is None else int(match["replicas"])
    return Window(" ".join(words.split()), days, start, last_days, end, replicas)


def _next(days: frozenset[int]) -> frozenset[int]:
    return frozenset((day + 1) % 7 for day in days)


def _weekdays(words: str) -> frozenset[int]:
    if words in _NAMED:
        return _NAMED[words]
    days: set[int] = set()
    for part in words.split(","):
        first, dash, last = part.partition("-")
        begin = _weekday(first)
        end = _weekday(last) if dash else begin
        days |= {(begin + step) % 7 for step in range((end - begin) % 7 + 1)}
    return frozenset(days)


def _weekday(word: str) -> int:
    if word.capitalize() not in WEEKDAYS:
        raise Invalid(
            f"{word!r} is not a weekday",
            hint=f"write {', '.join(WEEKDAYS)}, a range such as mon-fri, weekdays, weekend or daily",
        )
    return WEEKDAYS.index(word.capitalize())


def _minutes(words: str) -> int:
    """Minutes of the day; `24` is the end of the day."""
    hours, _, minutes = words.partition(":")
    if int(minutes or 0) >= _MINUTES or int(hours) * _MINUTES + int(minutes or 0) > _HOURS * _MINUTES:
        raise Invalid(f"{words!r} is not a time of the day", hint="write 9, 9:30, 17:30 or 24")
    return int(hours) * _MINUTES + int(minutes or 0)


def schedule_of(ref: ObjectRef, timezone: str, default: int, windows: Iterable[tuple[Window, int]]) -> Schedule:
    """windows: with their replicas; where they overlap the first wins."""
    behaviors = (
        Behavior(replicas, _pattern(window.days, window.start), _pattern(window.last_days, window.end))
        for window, replicas in windows
    )
    return Schedule(ref, default, tuple(behaviors), timezone)


def _pattern(days: frozenset[int], time: int) -> TimePattern:
    """Without fields that match every value."""
    hours, minutes = divmod(time, _MINUTES)
    return TimePattern(
        minutes=(minutes,) if minutes else None,
        hours=(hours,),
        weekdays=None if days == _NAMED["daily"] else tuple(sorted(days)),
    )

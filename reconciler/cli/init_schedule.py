"""`headroom init schedule`: writes a capacity schedule from a few answers. Reached through `headroom init`.

Plain words (`mon-fri 9-17`) become the YAML of a MetricsProducer, whose fields take lists and no ranges.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import click

from reconciler.model.errors import Invalid, Misused

T = TypeVar("T")
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_MOST = 2**31 - 1


def _checked_name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise Invalid(f"{name!r} is not a valid name", hint="use up to 63 of a-z, 0-9 and '-', such as business-hours")
    return name


def _checked_zone(zone: str) -> str:
    from reconciler.manifests.metrics_producer import is_time_zone, time_zone_hint

    if not is_time_zone(zone):
        raise Invalid(f"{zone!r} is not a time zone", hint=time_zone_hint(zone))
    return zone


def _checked_lead_time(duration: str) -> str:
    from reconciler.manifests.annotations import LONGEST_LEAD
    from reconciler.model.quantity import parse_duration

    if duration and parse_duration(duration) > LONGEST_LEAD:
        raise Invalid(f"a lead time of {duration} is more than a week", hint="write at most 168h, such as 10m")
    return duration


def _checked_windows(words: str) -> list[Window]:
    windows = [read_window(part) for part in words.split(";") if part.strip()]
    if not windows:
        raise Invalid(f"{words!r} names no window", hint='write it like "mon-fri 9-17" or "daily 22-6"')
    return windows


@click.command("init schedule")
@click.option("--name", help="Name of the schedule.  [default: business-hours]")
@click.option("--namespace", help="Its namespace.  [default: default]")
@click.option("--timezone", metavar="ZONE", help="Time zone of the windows, such as Europe/Berlin.  [default: UTC]")
@click.option(
    "--window",
    "windows",
    metavar="WINDOW",
    multiple=True,
    help='When the value differs: "mon-fri 9-17", or with its own replicas "sat 10-14 = 2". May be repeated; '
    "where two overlap, the first one applies.",
)
@click.option("--replicas", type=click.IntRange(0, _MOST), help="Replicas in windows that do not give their own.")
@click.option("--default", type=click.IntRange(0, _MOST), help="Replicas at all other times.  [default: 0]")
@click.option(
    "--lead-time",
    metavar="DURATION",
    help="How much earlier nodes should be ready; written as the buffer's annotation.",
)
@click.option("--output", "-o", metavar="FILE", help="Write to this file; - is stdout.  [default: -]")
def command(
    *,
    name: str | None,
    namespace: str | None,
    timezone: str | None,
    windows: tuple[str, ...],
    replicas: int | None,
    default: int | None,
    lead_time: str | None,
    output: str | None,
) -> int:
    """Write a capacity schedule (MetricsProducer) from flags; on a terminal, prompt for what is missing.

    \b
        headroom init schedule --window "mon-fri 9-17" --replicas 3 --default 1 --timezone Europe/Berlin
        headroom init schedule --window "fri 17 - mon 9 = 0" --window "mon-thu 22-6 = 1" --default 3 -o hours.yaml
    """
    asks = sys.stdin.isatty() and not windows
    if not windows and not asks:
        raise click.UsageError('Give at least one window: --window "mon-fri 9-17" (and --replicas 3).')
    own_name = _answer("Name", name, "business-hours", _checked_name, asks=asks)
    own_namespace = _answer("Namespace", namespace, "default", _checked_name, asks=asks)
    zone = _answer("Time zone", timezone, "UTC", _checked_zone, asks=asks)
    said = "; ".join(windows) if windows else None
    read = _answer("When (several: with ;)", said, "mon-fri 9-17", _checked_windows, asks=asks)
    open_ended = any(window.replicas is None for window in read)
    if open_ended and replicas is None and not asks:
        raise click.UsageError('Give the replicas: --replicas 3, or in the window: --window "mon-fri 9-17 = 3".')
    each = _number("Replicas then", replicas, 3, asks=asks and open_ended)
    others = _number("Replicas at all other times", default, 0, asks=asks)
    lead = _answer("Lead time for nodes to be ready, such as 10m", lead_time, "", _checked_lead_time, asks=asks)
    own_windows = [(window, each if window.replicas is None else window.replicas) for window in read]
    text = schedule_yaml(
        name=own_name, namespace=own_namespace, timezone=zone, default=others, windows=own_windows, lead_time=lead
    )
    file = None if output in {None, "-"} else Path(str(output))
    written = () if file is None else _write(file, text)
    _check("stdout" if file is None else str(file), text if file is None else file.read_text(encoding="utf-8"))
    if all(number == others for _, number in own_windows):
        click.echo(
            f"  warning: the value is {others:,} at all times: the windows and the other times have the same replicas",
            err=True,
        )
        click.echo("      change one of them: --replicas for the windows, --default for the other times", err=True)
    if file is None:
        click.echo(text, nl=False)
    else:
        click.echo(f"Wrote {' and '.join(map(str, written))}. Next: headroom schedule {output}", err=True)
    return 0


def _answer(question: str, given: str | None, default: str, check: Callable[[str], T], *, asks: bool) -> T:
    """The flag's value, else the person's answer (asked again until it is valid), else the default."""
    if given is not None or not asks:
        try:
            return check(default if given is None else given)
        except Invalid as error:
            raise Misused(error.message, hint=error.hint) from error
    while True:
        said = click.prompt(question, default=default, show_default=bool(default), err=True)
        try:
            return check(str(said).strip())
        except Invalid as error:
            click.echo(f"  {error.message}: {error.hint}", err=True)


def _number(question: str, given: int | None, default: int, *, asks: bool) -> int:
    if given is not None or not asks:
        return default if given is None else given
    return int(click.prompt(question, default=default, type=click.IntRange(0, _MOST), err=True))


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


_DAYS = ("Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat")
_EVERY = frozenset(range(7))
_GROUPS = {
    "daily": _EVERY,
    "every day": _EVERY,
    "weekdays": frozenset(range(1, 6)),
    "weekend": frozenset({0, 6}),
    "weekends": frozenset({0, 6}),
}
_TIME = r"(?:noon|midnight|\d{1,2}(?::\d{2})?\s*(?:am|pm)?)"
_WINDOW = re.compile(
    rf"(?P<days>[a-z][a-z ,-]*?)?\s*(?P<start>{_TIME})\s*(?:-|–|to|until)\s*"
    rf"(?P<last>[a-z]{{3,9}}\s+)?(?P<end>{_TIME})(?:\s*=\s*(?P<replicas>\d{{1,9}}))?"
)
_LONGEST = 200
"""The longest text, in characters. The pattern is slow on thousands of them."""
_HALF_DAY, _HOURS, _MINUTES = 12, 24, 60
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
    """`[WEEKDAYS] FROM-TO[=REPLICAS]`, or `WEEKDAY FROM - WEEKDAY TO`. Raises `Invalid` with what to write instead."""
    short = " ".join(words.lower().split())
    match = _WINDOW.fullmatch(short) if len(short) <= _LONGEST else None
    if match is None:
        raise Invalid(f"{words!r} is not a window of time", hint=_NOT_A_WINDOW)
    days = _weekdays((match["days"] or "daily").strip(" ,"))
    start, end = _minutes(match["start"]), _minutes(match["end"])
    if start == _HOURS * _MINUTES:
        raise Invalid(f"{words!r} begins at 24:00", hint="write 0 and the next day")
    if match["last"]:
        if len(days) != 1:
            raise Invalid(f"{words!r} begins on several days and ends on one", hint=_NOT_A_WINDOW)
        last_days = _weekdays(match["last"].strip())
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
    if words in _GROUPS:
        return _GROUPS[words]
    days: set[int] = set()
    for part in re.split(r"\s*,\s*|\s+(?:and\s+)?", re.sub(r"\s*(?:-|\bto\b)\s*", "-", words)):
        first, dash, last = part.partition("-")
        begin = _weekday(first)
        end = _weekday(last) if dash else begin
        days |= {(begin + step) % 7 for step in range((end - begin) % 7 + 1)}
    return frozenset(days)


def _weekday(word: str) -> int:
    short = word[:3].capitalize()
    full = ("sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday")
    if short not in _DAYS or not full[_DAYS.index(short)].startswith(word):
        raise Invalid(f"{word!r} is not a weekday", hint=f"write {', '.join(_DAYS)}, a range such as mon-fri, or daily")
    return _DAYS.index(short)


def _minutes(words: str) -> int:
    """Minutes of the day; `24` is the end of the day."""
    if words in {"noon", "midnight"}:
        return _HALF_DAY * _MINUTES if words == "noon" else 0
    clock = words.rstrip("apm ")
    hour, _, minute = clock.partition(":")
    hours, minutes = int(hour), int(minute or 0)
    if words.endswith("m"):
        if not 1 <= hours <= _HALF_DAY:
            raise Invalid(f"{words!r} is not a time", hint="write 9am, 5:30pm, or 17:30")
        hours = hours % _HALF_DAY + (_HALF_DAY if words.endswith("pm") else 0)
    if minutes >= _MINUTES or hours * _MINUTES + minutes > _HOURS * _MINUTES:
        raise Invalid(f"{words!r} is not a time of the day", hint="write 9, 9:30, 17:30 or 24")
    return hours * _MINUTES + minutes


def schedule_yaml(
    *,
    name: str,
    namespace: str,
    timezone: str,
    default: int,
    windows: Sequence[tuple[Window, int]],
    lead_time: str = "",
) -> str:
    """The MetricsProducer as YAML.

    windows: with their replicas; where they overlap the first wins. name, namespace: valid, as the caller has checked.
    """
    lines = [
        "apiVersion: autoscaling.karpenter.sh/v1alpha1",
        "kind: MetricsProducer",
        "metadata:",
        f"  name: {name}",
        f"  namespace: {namespace}",
        "spec:",
        "  schedule:",
        f"    timezone: {timezone}",
        f"    defaultReplicas: {default}",
        "    behaviors:",
    ]
    for window, replicas in windows:
        lines += [
            f"      # {window.words}",
            f"      - replicas: {replicas}",
            f"        start: {_pattern(window.days, window.start)}",
            f"        end: {_pattern(window.last_days, window.end)}",
        ]
    lines += ["# A buffer follows it with these annotations:", f"#   headroom.dev/replicas-from: {name}"]
    if lead_time:
        lines.append(f"#   headroom.dev/lead-time: {lead_time}")
    return "\n".join(lines) + "\n"


def _pattern(days: frozenset[int], time: int) -> str:
    """The pattern in YAML flow style, without fields that match every value."""
    hours, minutes = divmod(time, _MINUTES)
    names = [_DAYS[day % 7] for day in range(1, 8) if day % 7 in days]
    parts = [] if days == _EVERY else [f'weekdays: "{",".join(names)}"' if len(names) > 1 else f"weekdays: {names[0]}"]
    parts.append(f"hours: {hours}")
    if minutes:
        parts.append(f"minutes: {minutes}")
    return f"{{{', '.join(parts)}}}"

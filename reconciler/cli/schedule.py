"""`headroom schedule`: the value of each capacity schedule, now, next and over a span."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import click

from reconciler.cli.options import FILES, Moment, options, output_option, settings_from
from reconciler.model.declared import Declared
from reconciler.model.errors import Invalid
from reconciler.model.findings import Finding, Severity
from reconciler.model.schedules import Schedule
from reconciler.model.timelines import ScheduleTimeline
from reconciler.report.schedules.page import BrokenDocument

_SEPARATOR = re.compile(r"---(?:\s|$)")
_DAYS = {"week": 7, "month": 31}
_LONGEST = timedelta(days=5 * 366)
_KIND = "MetricsProducer"


def broken_documents(files: Mapping[str, bytes], findings: Iterable[Finding], kind: str) -> list[BrokenDocument]:
    """The documents of the kind that have an error, in the order of files and lines."""
    documents: dict[tuple[str, int], BrokenDocument] = {}
    for finding in findings:
        place = finding.position
        if finding.severity is not Severity.ERROR or place is None or place.file not in files:
            continue
        lines = files[place.file].decode(errors="replace").splitlines()
        first, last = _bounds(lines, place.line)
        text = "\n".join(lines[first - 1 : last])
        if finding.ref is None and kind not in text:
            continue
        name = f"{place.file}:{first}" if finding.ref is None else finding.ref.short
        earlier = documents.get((place.file, first))
        if earlier is None or finding.ref is not None:
            documents[place.file, first] = BrokenDocument(name, place.file, (first, last), f"{text}\n")
    return [documents[key] for key in sorted(documents)]


def _bounds(lines: Sequence[str], line: int) -> tuple[int, int]:
    """The first and the last line, from 1, of the document that contains the line, without separators."""
    inside = min(max(line, 1), max(len(lines), 1))
    separators = [number for number, text in enumerate(lines, 1) if _SEPARATOR.match(text)]
    first = max((number + 1 for number in separators if number <= inside), default=1)
    last = min((number - 1 for number in separators if number > inside), default=len(lines))
    return first, last


@dataclass(frozen=True, slots=True)
class Span:
    """The span to show: [start, end) exactly in JSON; pictures show whole days of each schedule's own time zone."""

    start: datetime
    end: datetime
    days: int | None

    def whole_days(self, zone: ZoneInfo) -> tuple[datetime, datetime]:
        from reconciler.report.drawing import midnight

        first = self.start.astimezone(zone).date()
        if self.days is not None:
            return midnight(first, zone), midnight(first + timedelta(days=self.days), zone)
        last = (self.end - timedelta(microseconds=1)).astimezone(zone).date()
        return midnight(first, zone), midnight(last + timedelta(days=1), zone)


@click.command("schedule")
@click.argument("paths", type=FILES, nargs=-1, metavar="[PATH]…")
@options("repo", "revision", "path")
@click.option(
    "--schedule", "names", metavar="[NAMESPACE/]NAME", multiple=True, help="Show only this schedule; may be repeated."
)
@options("now")
@click.option("--from", "start", type=Moment(), help="Start of the timeline.  [default: now]")
@click.option(
    "--to",
    "end",
    type=Moment(),
    help="End of the timeline, instead of --span. All but JSON shows whole days.",
)
@click.option("--span", type=click.Choice(list(_DAYS)), help="Length of the timeline.  [default: week]")
@options("config")
@output_option("text", "json", "svg", "html")
def schedule_command(
    *,
    paths: tuple[str, ...],
    names: tuple[str, ...],
    now: datetime | None,
    start: datetime | None,
    end: datetime | None,
    span: str | None,
    output: str,
    **values: Any,
) -> int:
    """Show the timeline of every capacity schedule (MetricsProducer) below PATH… (default: this folder). That is its value now, the
    next changes, a week or a month hour by hour, and what is wrong with it. Needs no cluster.

    Exits 1 when there is an error and a schedule could not be shown.

    \b
        headroom schedule clusters/production --span month
        headroom schedule --schedule shop/business-hours --from 2026-12-24T00:00:00Z --to 2027-01-02T00:00:00Z
        headroom schedule --output html > capacity.html
    """
    from reconciler.clocks import SystemClock
    from reconciler.manifests.repository.declared import read
    from reconciler.manifests.schedule_findings import schedule_findings

    now = now or SystemClock().now()
    asked = _span(start or now, end, span)
    files, left_out = _files(paths, values, now)
    declared = read(files, one_cluster=False)
    schedules = _chosen(declared, names)
    told = (*declared.findings, *left_out, *schedule_findings(schedules, now))
    findings = tuple(
        sorted((item for item in told if _is_about_schedules(item, names)), key=lambda finding: finding.sort_key)
    )
    click.echo(_printed(output, schedules, asked, now, findings, files=files), nl=False)
    if output == "svg":  # has no room for findings
        from reconciler.report.findings import finding_lines

        for line in finding_lines(findings):
            click.echo(line, err=True)
    return int(any(finding.severity is Severity.ERROR for finding in findings))


def _printed(
    output: str,
    schedules: Sequence[Schedule],
    asked: Span,
    now: datetime,
    findings: Sequence[Finding],
    *,
    files: Mapping[str, bytes],
) -> str:
    from reconciler.timetable.capacity_schedule import timeline

    start, end = asked.start, asked.end
    if output == "json":
        from reconciler.report.escaping import to_json
        from reconciler.report.schedules.page import schedules_document

        timelines = [timeline(schedule, start, end, now) for schedule in schedules]
        return to_json(schedules_document(timelines, now=now, start=start, end=end, findings=findings))
    if output == "svg":
        from reconciler.report.schedules.page import schedule_chart

        return schedule_chart(in_whole_days(schedules, asked, now), now=now, findings=findings)
    if output == "html":
        from reconciler.report.schedules.page import schedule_page
        from reconciler.wiring.posting import rendered_page

        broken = broken_documents(files, findings, _KIND)
        page = schedule_page(in_whole_days(schedules, asked, now), now=now, findings=findings, broken=broken)
        return rendered_page("schedule.html.j2", page)
    from reconciler.cli.options import paint_for_stdout, width_of_stdout
    from reconciler.report.schedules.text import schedules_text

    paint, width = paint_for_stdout(), width_of_stdout()
    return schedules_text(in_whole_days(schedules, asked, now), now=now, findings=findings, paint=paint, width=width)


def in_whole_days(schedules: Sequence[Schedule], asked: Span, now: datetime) -> list[ScheduleTimeline]:
    """The timelines that pictures are drawn from."""
    from reconciler.timetable.capacity_schedule import timeline
    from reconciler.zone_data import time_zone

    return [timeline(schedule, *asked.whole_days(time_zone(schedule.timezone)), now) for schedule in schedules]


def _span(start: datetime, end: datetime | None, span: str | None) -> Span:
    if end is None:
        days = _DAYS[span or "week"]
        return Span(start, start + timedelta(days=days), days)
    if span is not None:
        raise click.UsageError("--to and --span both set the end of the timeline: give one of them.")
    if end <= start:
        raise click.UsageError("--to must be later than --from (which is now, unless given).")
    if end - start > _LONGEST:
        raise click.UsageError("--from and --to may be at most five years apart.")
    return Span(start, end, None)


def _files(
    paths: Sequence[str], values: dict[str, Any], now: datetime
) -> tuple[Mapping[str, bytes], tuple[Finding, ...]]:
    """The files of the paths, or of the repository that flags and settings name."""
    from reconciler.cli.validate import read_paths

    if paths:
        if values["repo"] or values["revision"] or values["path"]:
            raise click.UsageError("PATH and --repo, --revision or --path both name what to read: give one of them.")
        return read_paths(paths)
    settings = settings_from(values)
    if not settings.repository and not settings.revision:
        return read_paths((settings.path or ".",))
    from reconciler.wiring.inputs import repository_tree

    return repository_tree(settings, now).files, ()


def _chosen(declared: Declared, names: Sequence[str]) -> list[Schedule]:
    for name in names:
        existing = [(ref.namespace, ref.name) for ref in (item.ref for item in declared.schedules)]
        existing += [(ref.namespace, ref.name) for ref in declared.broken if ref.kind == _KIND]
        if not any(_is_named(*item, (name,)) for item in existing):
            listed = ", ".join(f"{namespace}/{name_there}" for namespace, name_there in existing[:8]) or "none"
            raise Invalid(f"there is no schedule {name}", hint=f"there are: {listed}")
    return [item for item in declared.schedules if _is_named(item.ref.namespace, item.ref.name, names)]


def _is_named(namespace: str, name: str, names: Sequence[str]) -> bool:
    return not names or any(wanted in {name, f"{namespace}/{name}"} for wanted in names)


def _is_about_schedules(finding: Finding, names: Sequence[str]) -> bool:
    """Whether the finding is to be shown. One without an object may be about an unreadable schedule, so it is shown as well."""
    ref = finding.ref
    return ref is None or (ref.kind == _KIND and _is_named(ref.namespace, ref.name, names))

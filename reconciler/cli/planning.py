"""Printing plans and timings."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from reconciler.cli.console import paint_for_stdout, width_of_stdout
from reconciler.model.changes import Plan
from reconciler.model.errors import Invalid
from reconciler.model.spending import Spending
from reconciler.outlook import Outlook
from reconciler.report.escaping import to_json
from reconciler.report.plan.document import plan_document
from reconciler.report.plan.page import plan_page
from reconciler.report.plan.rows import page_text

if TYPE_CHECKING:
    from reconciler.wiring.pages import ReportedCluster
STAGES = ("git", "manifests", "view", "demand", "placement", "plan", "render", "apply")
_OLD = timedelta(hours=25)
"""The daemon renews its snapshot every day, even if nothing has changed."""


def print_plan(
    plan: Plan,
    output: str,
    *,
    cluster: ReportedCluster,
    outlook: Outlook | None = None,
    spending: Spending | None = None,
) -> None:
    """Prints a plan. outlook: for pages, which also show the coming week. spending: of the coming 30 days, if it was computed."""
    if output == "json":
        click.echo(to_json(plan_document(plan, spending)), nl=False)
    else:
        timeline = None if outlook is None or output == "text" else outlook.ahead()
        page = plan_page(plan, cluster=cluster.name, snapshot=cluster.snapshot, timeline=timeline, spending=spending)
        print_page(page, output)


def print_page(page: Mapping[str, Any], output: str) -> None:
    """Prints a plan or a difference. output: text, markdown or html."""
    if output == "text":
        click.echo(page_text(page, paint=paint_for_stdout(), width=width_of_stdout()), nl=False)
        return
    from reconciler.wiring.pages import rendered_page

    name = {"markdown": "report.md.j2", "html": "report.html.j2"}[output]
    click.echo(rendered_page(name, page), nl=False)


def write_timings(path: str, timings: Mapping[str, float]) -> None:
    """Writes the seconds of each stage and their sum; 0 for a stage that did not run."""
    stages = {name: round(timings.get(name, 0.0), 6) for name in STAGES}
    document = {"stages": stages, "total": round(sum(stages.values()), 6)}
    write_file("--timings", path, json.dumps(document, indent=2) + "\n")


def write_file(flag: str, path: str, text: str) -> None:
    """Writes what a flag asks for. Raises `Invalid` where that cannot be written."""
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise Invalid(f"{flag} {path}: cannot be written ({error.strerror})") from error


if TYPE_CHECKING:
    from reconciler.ports import Cluster


def tell_age(cluster: Cluster, now: datetime) -> None:
    """Prints the age to stderr; nothing for other clusters. now: the time of the plan."""
    from reconciler.wiring.repository import PublishedCluster

    if not isinstance(cluster, PublishedCluster):
        return
    age = now - cluster.taken
    click.echo(f"headroom: planned on {cluster.name}: {age_in_words(age)}", err=True)
    if age > _OLD:
        click.echo("  the daemon renews it every day: look whether it runs, and whether it may push", err=True)


def age_in_words(age: timedelta) -> str:
    """`12 minutes old`; in hours from two hours on, in days from two days on."""
    minutes = int(age / timedelta(minutes=1))
    for unit, length in (("day", 24 * 60), ("hour", 60)):
        if minutes >= 2 * length:
            return f"{minutes // length} {unit}s old"
    if age < timedelta(0):
        return "taken after the time that is planned for"
    return f"{minutes} minute{'' if minutes == 1 else 's'} old"

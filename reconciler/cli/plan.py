"""`headroom plan` (what one pass would change), `headroom explain` (where each chunk of a demand landed, or why it did not), and how plans are printed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from reconciler.cli.application import exit_code_of_changes
from reconciler.cli.options import (
    TIMED_PHASES,
    Progress,
    options,
    output_option,
    paint_for_stdout,
    settings_from,
    tell_unread,
    width_of_stdout,
)
from reconciler.model.changes import Plan
from reconciler.model.errors import Invalid
from reconciler.model.quantity import format_duration
from reconciler.model.timelines import Spending
from reconciler.outlook import Outlook
from reconciler.report.escaping import to_json
from reconciler.report.plan.document import plan_document
from reconciler.report.plan.page import plan_page
from reconciler.report.plan.rows import ReportPage, page_text

if TYPE_CHECKING:
    from reconciler.cycle import Cycle
    from reconciler.ports import Cluster
    from reconciler.stages.state import PassResult
    from reconciler.wiring.inputs import ReportedCluster


_OF_A_PLAN = ("repo", "revision", "path", "planned_cluster", "catalog", "dialect", "include_pending", "placement_mode", "check_placement")  # fmt: skip
"""The options of commands that plan and write nothing."""


@click.command("plan")
@options(*_OF_A_PLAN, "cost", "now", "config", "timings", "detailed_exitcode")
@output_option("text", "json", "markdown", "html")
def plan_command(
    *, output: str, now: datetime | None, timings: str | None, detailed_exitcode: bool, **values: Any
) -> int:
    """Show what one pass would change, without changing anything.

    Exits 0 when nothing would change, 1 when something would, 2 on an error. Findings do not change the exit
    code: use headroom validate to gate on them.

    \b
        headroom plan --path clusters/production
        headroom plan --cluster snapshot:before.tar.gz --now 2026-12-24T18:00:00Z --output json
    """
    from reconciler.wiring.inputs import reported_cluster
    from reconciler.wiring.session import open_session

    settings = settings_from(values)
    with Progress() as progress, open_session(settings, now=now, progress=progress, published=True) as session:
        tell_age(session.cluster, session.clock.now())
        result = session.cycle.plan(include_pending=bool(values["include_pending"]))
        cluster = reported_cluster(session.cluster, settings)
        outlook = session.cycle.outlook
        spending = None if result.failure else _forecast(session.cycle, result, thorough=bool(values["cost"]))
    if result.failure is not None:
        raise result.failure
    plan = result.required_plan
    print_plan(plan, output, cluster=cluster, outlook=outlook, spending=spending)
    if timings:
        write_timings(timings, result.timings)
    return exit_code_of_changes(changes=plan.has_changes, detailed=detailed_exitcode)


def _forecast(cycle: Cycle, result: PassResult, *, thorough: bool) -> Spending | None:
    """What the declared capacity costs over the coming 30 days: what schedules ask for later is placed and priced here, state by state.

    None if no price is known. Unless thorough, also None if it needs more placements than that of the pass.
    """
    from reconciler.model.changes import Action
    from reconciler.spending.month import is_steady, spending

    basis = result.basis
    if basis is None or not basis.facts.instance_types:
        return None
    deletes = any(change.action is Action.DELETE for change in result.required_plan.objects)
    if not thorough:
        return None if deletes or not is_steady(basis) else spending(basis)
    if deletes:
        # Objects that are no longer declared count in this pass, but not after it.
        basis = cycle.plan(tree=result.tree, settled=True).basis or basis
    return spending(basis)


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


def print_page(page: ReportPage, output: str) -> None:
    """Prints a plan or a difference. output: text, markdown or html."""
    if output == "text":
        click.echo(page_text(page, paint=paint_for_stdout(), width=width_of_stdout()), nl=False)
        return
    from reconciler.wiring.posting import rendered_page

    name = {"markdown": "report.md.j2", "html": "report.html.j2"}[output]
    click.echo(rendered_page(name, page), nl=False)


def write_timings(path: str, timings: Mapping[str, float]) -> None:
    """Writes the seconds of each stage and their sum; 0 for a stage that did not run."""
    stages = {name: round(timings.get(name, 0.0), 6) for name in TIMED_PHASES}
    document = {"stages": stages, "total": round(sum(stages.values()), 6)}
    write_file("--timings", path, json.dumps(document, indent=2) + "\n")


def write_file(flag: str, path: str, text: str) -> None:
    """Writes what a flag asks for. Raises `Invalid` where that cannot be written."""
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise Invalid(f"{flag} {path}: cannot be written ({error.strerror})") from error


def tell_age(cluster: Cluster, now: datetime) -> None:
    """For a published snapshot, prints on stderr how old it was at `now`."""
    from reconciler.wiring.inputs import PublishedCluster

    if not isinstance(cluster, PublishedCluster):
        return
    age = now - cluster.taken
    click.echo(f"headroom: planned on {cluster.name}: {age_in_words(age)}", err=True)
    if age > _OLD:
        click.echo("  the daemon renews it every day: look whether it runs, and whether it may push", err=True)


def age_in_words(age: timedelta) -> str:
    """`1h12m old`."""
    if age < timedelta(0):
        return "taken after the time that is planned for"
    return f"{format_duration(timedelta(minutes=age // timedelta(minutes=1)))} old"


@click.command("explain")
@click.argument("demand", metavar="KIND/NAMESPACE/NAME")
@options(*_OF_A_PLAN, "now", "config")
@click.option("--surge", is_flag=True, help="Print where each pod would go in the worst order found.")
@output_option("text", "json")
def explain_command(*, demand: str, output: str, surge: bool, now: datetime | None, **values: Any) -> int:
    """Show the size of one demand and why, where each of its chunks is, and why any could not be placed.

    \b
        headroom explain CapacityBuffer/shop/web
        headroom explain CapacityBuffer/shop/web --surge
        headroom explain Pod/shop/web-7d9f --include-pending
    """
    from reconciler.report.explanation import explanation, explanation_document, explanation_text
    from reconciler.wiring.session import open_session

    settings = settings_from(values)
    with Progress() as progress, open_session(settings, now=now, progress=progress, published=True) as session:
        tell_age(session.cluster, session.clock.now())
        result = session.cycle.plan(include_pending=bool(values["include_pending"]))
    if result.failure is not None:
        raise result.failure
    tell_unread(result.required_plan.blocked)
    found = explanation(result.required_plan, demand)
    if output == "json":
        click.echo(to_json(explanation_document(found)), nl=False)
    else:
        click.echo(explanation_text(found, paint=paint_for_stdout(), width=width_of_stdout(), surge=surge), nl=False)
    return 0

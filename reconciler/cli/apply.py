"""`headroom apply`: one pass, applied."""

from __future__ import annotations

import sys
from datetime import datetime
from typing import Any

import click

from reconciler.cli.console import Progress
from reconciler.cli.options import options, settings_from
from reconciler.model.changes import ChangeSet, Outcome
from reconciler.model.errors import Transient
from reconciler.report.escaping import terminal


@click.command("apply", short_help="One pass, applied.")
@options(
    "repo",
    "revision",
    "path",
    "cluster",
    "catalog",
    "dialect",
    "placement_mode",
    "check_placement",
    "now",
    "config",
    "timings",
)
@click.option("--yes", is_flag=True, help="Apply without asking.")
@click.option(
    "--allow-removals", is_flag=True, help="Delete at once all that Git no longer declares, however much it is."
)
def command(*, now: datetime | None, timings: str | None, yes: bool, allow_removals: bool, **values: Any) -> int:
    """Show what one pass would change, ask, and change it.

    Exits 1 when anything could not be applied; whatever can be applied is. A write that waits for another one is not a failure.
    """
    from reconciler.cli.planning import print_plan, write_timings
    from reconciler.wiring.pages import reported_cluster
    from reconciler.wiring.session import open_session

    settings = settings_from(values)
    if settings.cluster.partition(":")[0] in {"snapshot", "published"}:
        raise click.UsageError(f"{settings.cluster} is read-only: apply to a real or an embedded cluster.")
    with (
        Progress() as progress,
        open_session(settings, now=now, progress=progress, allow_removals=allow_removals) as session,
    ):
        planned = session.cycle.plan()
        if planned.failure is not None:
            raise planned.failure
        plan = planned.required_plan
        print_plan(plan, "text", cluster=reported_cluster(session.cluster, settings))
        if plan.has_changes and not yes:
            if not sys.stdin.isatty():
                raise click.UsageError("Standard input is not a terminal, so nobody can confirm: give --yes to apply.")
            click.confirm("Apply this?", abort=True)
        result = session.cycle.run("apply")
    if result.failure is not None:
        raise result.failure
    if timings:
        write_timings(timings, result.timings)
    return _tell(result.change_set or ChangeSet())


def _tell(changes: ChangeSet) -> int:
    from reconciler.report.plan.page import applied_words, waiting_lines

    if changes.results:
        click.echo(applied_words(changes))
    failed = [result for result in changes.failures if result.outcome is not Outcome.SKIPPED]
    for line in waiting_lines(changes):
        click.echo(terminal(line))
    for result in failed:
        click.echo(terminal(f"  {result.write.ref}: {result.outcome}: {result.message}"), err=True)
    if failed:
        raise Transient(f"{len(failed)} of {len(changes.results)} writes failed", hint="see the lines above")
    return 0

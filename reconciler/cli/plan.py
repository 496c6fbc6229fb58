"""`headroom plan`: what one pass would change."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import click

from reconciler.cli.console import Progress
from reconciler.cli.exit_codes import exit_code_of_changes
from reconciler.cli.options import options, output_option, settings_from
from reconciler.cli.planning import tell_age


@click.command("plan", short_help="What one pass would change.")
@options(
    "repo", "revision", "path", "cluster", "catalog", "dialect", "include_pending", "placement_mode", "check_placement", "cost", "now", "config", "timings",
    "detailed_exitcode",
)  # fmt: skip
@output_option("text", "json", "markdown", "html")
def command(*, output: str, now: datetime | None, timings: str | None, detailed_exitcode: bool, **values: Any) -> int:
    """Show what one pass would change, without changing anything.

    Exits 0 when nothing would change, 1 when something would, 2 on an error. Findings do not change the exit
    code: use headroom validate to gate on them.

    \b
        headroom plan --path clusters/production
        headroom plan --cluster snapshot:before.tar.gz --now 2026-12-24T18:00:00Z --output json
    """
    from reconciler.cli.planning import print_plan, write_timings
    from reconciler.forecast import forecast
    from reconciler.wiring.pages import reported_cluster
    from reconciler.wiring.session import open_session

    settings = settings_from(values)
    with Progress() as progress, open_session(settings, now=now, progress=progress, published=True) as session:
        tell_age(session.cluster, session.clock.now())
        result = session.cycle.plan(include_pending=bool(values["include_pending"]))
        cluster = reported_cluster(session.cluster, settings)
        outlook = session.cycle.outlook
        spending = None if result.failure else forecast(session.cycle, result, thorough=bool(values["cost"]))
    if result.failure is not None:
        raise result.failure
    plan = result.required_plan
    print_plan(plan, output, cluster=cluster, outlook=outlook, spending=spending)
    if timings:
        write_timings(timings, result.timings)
    return exit_code_of_changes(changes=plan.has_changes, detailed=detailed_exitcode)

"""`headroom plan`: what one pass would change."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from reconciler.cli.application import exit_code_of_changes
from reconciler.cli.console import Progress
from reconciler.cli.options import options, output_option, settings_from
from reconciler.cli.planning import tell_age

if TYPE_CHECKING:
    from reconciler.cycle import Cycle
    from reconciler.model.spending import Spending
    from reconciler.stages.state import PassResult


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
    from reconciler.wiring.pages import reported_cluster
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

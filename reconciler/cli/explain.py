"""`headroom explain KIND/NAMESPACE/NAME`: where each chunk landed, or every reason why it has no place."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import click

from reconciler.cli.console import Progress
from reconciler.cli.options import options, output_option, settings_from
from reconciler.cli.planning import tell_age


@click.command("explain", short_help="Where each chunk of a demand landed, or why it did not.")
@click.argument("demand", metavar="KIND/NAMESPACE/NAME")
@options(
    "repo",
    "revision",
    "path",
    "cluster",
    "catalog",
    "dialect",
    "include_pending",
    "placement_mode",
    "check_placement",
    "now",
    "config",
)
@click.option("--surge", is_flag=True, help="Print where each pod would go in the worst order found.")
@output_option("text", "json")
def command(*, demand: str, output: str, surge: bool, now: datetime | None, **values: Any) -> int:
    """Show the size of one demand and why, where each of its chunks is, and why any could not be placed.

    Of a MetricsProducer: its value, what gives it, and what follows it. Of a NodePool: the nodes that the plan makes in it,
    what it has no room for, and its disruption budgets.

    \b
        headroom explain CapacityBuffer/shop/web
        headroom explain CapacityBuffer/shop/web --surge
        headroom explain Pod/shop/web-7d9f --include-pending
        headroom explain MetricsProducer/shop/business-hours
        headroom explain NodePool/general
    """
    from reconciler.cli.console import paint_for_stdout, width_of_stdout
    from reconciler.report.escaping import to_json
    from reconciler.report.explanation import explained
    from reconciler.wiring.session import open_session

    settings = settings_from(values)
    with Progress() as progress, open_session(settings, now=now, progress=progress, published=True) as session:
        tell_age(session.cluster, session.clock.now())
        result = session.cycle.plan(include_pending=bool(values["include_pending"]))
    if result.failure is not None:
        raise result.failure
    outlook = session.cycle.outlook
    effective = None if outlook is None else outlook.facts.effective
    paint, width = paint_for_stdout(), width_of_stdout()
    found = explained(result.required_plan, effective, demand, surge=surge, paint=paint, width=width)
    click.echo(to_json(found.document) if output == "json" else found.text, nl=False)
    return 0

"""`headroom explain KIND/NAMESPACE/NAME`: where each chunk landed, or every reason why it has no place."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from reconciler.cli.console import Progress
from reconciler.cli.options import options, output_option, settings_from
from reconciler.cli.planning import tell_age
from reconciler.model.errors import Invalid

if TYPE_CHECKING:
    from reconciler.model.changes import Plan
    from reconciler.model.declared import Declared


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
    from reconciler.report.json_text import to_json
    from reconciler.wiring.session import open_session

    settings = settings_from(values)
    with Progress() as progress, open_session(settings, now=now, progress=progress, published=True) as session:
        tell_age(session.cluster, session.clock.now())
        result = session.cycle.plan(include_pending=bool(values["include_pending"]))
    if result.failure is not None:
        raise result.failure
    outlook = session.cycle.outlook
    document, text = _explained(
        result.required_plan, None if outlook is None else outlook.facts.effective, demand, surge=surge
    )
    if output == "json":
        click.echo(to_json(document()), nl=False)
    else:
        click.echo(text(paint=paint_for_stdout(), width=width_of_stdout()), nl=False)
    return 0


def _explained(
    plan: Plan, declared: Declared | None, name: str, *, surge: bool
) -> tuple[Callable[[], dict[str, Any]], Callable[..., str]]:
    """Functions that write the named object as a document and as text."""
    from reconciler.report import explanation

    if declared is None:
        found = explanation.explanation(plan, name)
        return partial(explanation.explanation_document, found), partial(
            explanation.explanation_text, found, surge=surge
        )
    schedules = {str(item.ref): item for item in declared.schedules}
    pools = {f"NodePool/{item.name}": item for item in declared.node_pools}
    demands = {str(outcome.demand.ref) for outcome in plan.demands}
    fitting = explanation.matching(name, (*demands, *schedules, *pools))
    # A buffer's name means the buffer, even if a NodePool has the same name.
    others = [] if demands & set(fitting) else fitting
    if len(others) > 1:
        raise Invalid(f"{name!r} fits several objects", hint=explanation.near_words(name, others))
    if others and others[0] in schedules:
        calendar = explanation.schedule_explanation(plan, declared, schedules[others[0]])
        return (
            partial(explanation.schedule_explanation_document, calendar),
            partial(explanation.schedule_explanation_text, calendar),
        )
    if others:
        nodes = explanation.node_pool_explanation(plan, pools[others[0]])
        return (
            partial(explanation.node_pool_explanation_document, nodes),
            partial(explanation.node_pool_explanation_text, nodes),
        )
    found = explanation.explanation(plan, name, (*schedules, *pools))
    return partial(explanation.explanation_document, found), partial(explanation.explanation_text, found, surge=surge)

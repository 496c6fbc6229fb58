"""`headroom explain KIND/NAMESPACE/NAME`: where each chunk landed, or every reason why it has no place."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import click

from reconciler.cli.options import options, output_option, settings_from
from reconciler.cli.progress import Progress


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
@output_option("text", "json")
def command(*, demand: str, output: str, now: datetime | None, **values: Any) -> int:
    """Show the size of one demand and why, where each of its chunks is, and why any could not be placed.

    \b
        headroom explain CapacityBuffer/shop/web
        headroom explain Pod/shop/web-7d9f --include-pending
    """
    from reconciler.cli.paint import paint_for_stdout, width_of_stdout  # noqa: PLC0415 - heavy, and only for this command
    from reconciler.report.explanation.demand import explanation  # noqa: PLC0415 - likewise
    from reconciler.report.explanation.document import explanation_document  # noqa: PLC0415 - likewise
    from reconciler.report.explanation.text import explanation_text  # noqa: PLC0415 - likewise
    from reconciler.report.json_text import to_json  # noqa: PLC0415 - likewise
    from reconciler.wiring.session import open_session  # noqa: PLC0415 - likewise

    settings = settings_from(values)
    with Progress() as progress, open_session(settings, now=now, progress=progress) as session:
        result = session.cycle.plan(include_pending=bool(values["include_pending"]))
    if result.failure is not None:
        raise result.failure
    found = explanation(result.required_plan, demand)
    if output == "json":
        click.echo(to_json(explanation_document(found)), nl=False)
    else:
        click.echo(explanation_text(found, paint=paint_for_stdout(), width=width_of_stdout()), nl=False)
    return 0

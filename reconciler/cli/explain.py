"""`headroom explain KIND/NAMESPACE/NAME`: where each chunk landed, or every excuse."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import click

from reconciler.cli.options import options, output_option, settings_from
from reconciler.cli.progress import Progress


@click.command("explain", short_help="Where each chunk of a demand landed, or every excuse.")
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
    """Say how big one demand is and why, where each of its chunks is, and why any could not be placed.

    \b
        headroom explain CapacityBuffer/shop/web
        headroom explain Pod/shop/web-7d9f --include-pending
    """
    from reconciler.cli.paint import paint_for_stdout  # noqa: PLC0415 - heavy, and only for this command
    from reconciler.report.explanation import (  # noqa: PLC0415 - likewise
        explanation,
        explanation_document,
        explanation_text,
    )
    from reconciler.report.machine import to_json  # noqa: PLC0415 - likewise
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
        click.echo(explanation_text(found, paint=paint_for_stdout()), nl=False)
    return 0

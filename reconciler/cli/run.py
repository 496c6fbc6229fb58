"""`headroom run`: the daemon."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import click

from reconciler.cli.options import options, settings_from


@click.command("run", short_help="The daemon: keep the cluster as the repository declares.")
@options(
    "repo", "revision", "path", "cluster", "catalog", "dialect", "placement_mode", "check_placement", "now", "config"
)
@click.option(
    "--until-settled", is_flag=True, help="End with 0 once the cluster is as declared and nothing is on its way."
)
@click.option(
    "--at-most", metavar="SECONDS", type=float, default=None, help="With --until-settled: give up after this long."
)
def command(*, now: datetime | None, until_settled: bool, at_most: float | None, **values: Any) -> int:
    """Poll the repository, watch the cluster, and keep the capacity that is declared, until stopped.

    \b
        headroom run --repo https://git.example/platform/capacity.git --path clusters/production
        headroom run --repo . --cluster embedded --until-settled
    """
    from reconciler.wiring.daemon import run_daemon  # noqa: PLC0415 - heavy, and only for this command

    if at_most is not None and not until_settled:
        raise click.UsageError("--at-most goes with --until-settled.")
    settings = settings_from(values)
    if settings.cluster.startswith("snapshot:"):
        raise click.UsageError("A snapshot never changes and cannot be written to: plan against it instead.")
    return run_daemon(settings, now=now, until_settled=until_settled, at_most=at_most)

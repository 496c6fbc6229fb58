"""`headroom run`: the daemon."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import click

from reconciler.cli.options import options, served_from


@click.command("run", short_help="The daemon: keep the cluster as the repository declares.")
@options(
    "repo", "revision", "path", "cluster", "catalog", "dialect", "placement_mode", "check_placement", "now", "config"
)
@click.option("--until-settled", is_flag=True, help="Exit 0 once nothing is left that can be changed now.")
@click.option(
    "--at-most",
    metavar="SECONDS",
    type=float,
    default=None,
    help="With --until-settled: give up after this many seconds.",
)
def command(*, now: datetime | None, until_settled: bool, at_most: float | None, **values: Any) -> int:
    """Poll the repository, watch the cluster, and keep the capacity that is declared, until stopped.

    \b
        headroom run --repo https://git.example/platform/capacity.git --path clusters/production
        headroom run --repo . --cluster embedded --until-settled
    """
    from reconciler.daemon.ending import ended_by_signals

    with ended_by_signals(int(until_settled)):
        return _run(now, until_settled=until_settled, at_most=at_most, values=values)


def _run(now: datetime | None, *, until_settled: bool, at_most: float | None, values: dict[str, Any]) -> int:
    from reconciler.wiring.daemon import run_daemon

    if at_most is not None and not until_settled:
        raise click.UsageError("--at-most goes with --until-settled.")
    clusters = served_from(values)
    if any(each.settings.cluster.partition(":")[0] in {"snapshot", "published"} for each in clusters):
        raise click.UsageError("A snapshot is read-only: use headroom plan with it instead.")
    return run_daemon(clusters, now=now, until_settled=until_settled, at_most=at_most)

"""`headroom release --all`: hands every held node back, before headroom is removed from a cluster."""

from __future__ import annotations

from typing import Any

import click

from reconciler.cli.console import Progress
from reconciler.cli.options import options, settings_from


@click.command("release", short_help="Hand every held node back, before headroom is removed.")
@click.option("--all", "everything", is_flag=True, help="All nodes and NodeClaims that headroom holds.")
@options("cluster", "config")
def command(*, everything: bool, **values: Any) -> int:
    """Take headroom's protection from every node and NodeClaim, so that Karpenter consolidates what is empty.

    Stop the daemon first: it would hold them again. What somebody else protected stays protected.

    \b
        kubectl -n headroom-system scale deployment headroom --replicas 0
        headroom release --all
    """
    if not everything:
        raise click.UsageError("Say --all: every node that headroom holds is released.")
    from reconciler.wiring.session import release_all

    settings = settings_from(values)
    with Progress() as progress:
        progress("view")
        results = release_all(settings)
    for result in results:
        words = "released" if result.ok else f"{result.outcome.value}: {result.message}"
        click.echo(f"{result.write.ref} {words}")
    if not results:
        click.echo("Nothing is held.")
    return int(any(not result.ok for result in results))

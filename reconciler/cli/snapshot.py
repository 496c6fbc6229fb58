"""`headroom snapshot -o PATH`: captures a cluster for offline planning."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from reconciler.cli.console import Progress
from reconciler.cli.options import options, settings_from


@click.command("snapshot", short_help="Capture a cluster for offline planning.")
@click.option(
    "-o", "--output", "target", metavar="PATH", required=True, help="A folder, or a file that ends in .tar.gz."
)
@options("cluster", "catalog", "config")
def command(*, target: str, **values: Any) -> int:
    """Write what planning needs to know about a cluster to PATH. Secrets and environment values are never included.

    \b
        headroom snapshot -o before.tar.gz
        headroom plan --cluster snapshot:before.tar.gz
    """
    from reconciler.wiring.session import capture_snapshot

    settings = settings_from(values)
    with Progress() as progress:
        progress("view")
        counts = capture_snapshot(settings, target)
    click.echo(f"{target}: {found_words(counts) or 'an empty cluster'}.")
    return 0


def found_words(counts: Mapping[str, int]) -> str:
    """`3 nodes, 1 nodepool`. counts: by the plural names of resources."""
    return ", ".join(f"{count:,} {_singular(name) if count == 1 else name}" for name, count in counts.items() if count)


def _singular(plural: str) -> str:
    """As in "1 nodepool" or "1 priorityclass": of a resource's name, which is plural."""
    return plural.removesuffix("es") if plural.endswith("sses") else plural.removesuffix("s")

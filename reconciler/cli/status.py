"""`headroom status`: what the daemon last did, as the daemon itself says."""

from __future__ import annotations

import json
from typing import Any

import click

from reconciler.cli.options import output_option
from reconciler.model.errors import Transient
from reconciler.settings import load_settings


@click.command("status", short_help="What the daemon last did.")
@click.option("--address", metavar="HOST:PORT", help="Where the daemon listens. Default: the setting `listen`.")
@click.option("--config", metavar="FILE", help="Settings file; config/headroom.yaml lists every setting.")
@output_option("text", "json")
def command(*, address: str | None, config: str | None, output: str) -> int:
    """Ask the running daemon about its last pass: revision, result, changes, findings, and what it is waiting for.

    In a cluster: kubectl -n headroom-system port-forward deploy/headroom 8080.
    """
    target = address or load_settings(config).listen
    document = _fetch(target)
    if output == "json":
        click.echo(json.dumps(document, indent=2))
        return 0
    from reconciler.cli.paint import paint_for_stdout, width_of_stdout  # noqa: PLC0415 - only for text
    from reconciler.report.status.text import daemon_status_text  # noqa: PLC0415 - likewise

    click.echo(daemon_status_text(document, paint=paint_for_stdout(), width=width_of_stdout()), nl=False)
    return 0


def _fetch(address: str) -> dict[str, Any]:
    import urllib.error  # noqa: PLC0415 - slow to import, and only for this command
    import urllib.request  # noqa: PLC0415 - likewise

    try:
        with urllib.request.urlopen(f"http://{address}/status", timeout=10) as response:
            document: dict[str, Any] = json.load(response)
    except (urllib.error.URLError, OSError, ValueError) as error:
        raise Transient(
            f"no daemon answers at {address} ({getattr(error, 'reason', error)})",
            hint="start one with `headroom run`, or name its address with --address",
        ) from error
    return document

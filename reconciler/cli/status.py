"""`headroom status`: what the daemon last did, as the daemon itself says."""

from __future__ import annotations

import json
from typing import Any

import click

from reconciler.cli.options import output_option
from reconciler.model.errors import Misused, Transient
from reconciler.settings.load import load_settings

_LARGEST_PORT = 65_535


@click.command("status", short_help="What the daemon last did.")
@click.option("--address", metavar="HOST:PORT", help="Where the daemon listens. Default: the setting `listen`.")
@click.option("--config", metavar="FILE", help="Settings file; config/headroom.yaml lists every setting.")
@output_option("text", "json")
def command(*, address: str | None, config: str | None, output: str) -> int:
    """Ask the running daemon about its last pass: revision, result, changes, findings, and what it is waiting for.

    In a cluster: kubectl -n headroom-system port-forward deploy/headroom 8080.
    """
    target = address or load_settings(config).listen
    document = _fetch(_checked(target))
    if output == "json":
        click.echo(json.dumps(document, indent=2))
        return 0
    from reconciler.cli.paint import paint_for_stdout, width_of_stdout  # noqa: PLC0415 - only for text
    from reconciler.report.status.text import daemon_status_text  # noqa: PLC0415 - likewise

    click.echo(daemon_status_text(document, paint=paint_for_stdout(), width=width_of_stdout()), nl=False)
    return 0


def _checked(address: str) -> str:
    """The address, in which `:8080` means this machine. Raises `Misused` for an impossible port."""
    host, colon, port = address.rpartition(":")
    is_ipv6 = address.endswith("]")
    if colon and not is_ipv6 and not (port.isascii() and port.isdigit() and 1 <= int(port[:6]) <= _LARGEST_PORT):
        raise Misused(f"{address!r} has no port that a daemon could listen on", hint="write HOST:PORT, with 1 to 65535")
    return address if host or not colon else f"127.0.0.1:{port}"


def _reason(error: Exception) -> str:
    """`Connection refused`, without the system's error number."""
    reason = getattr(error, "reason", error)
    return str(getattr(reason, "strerror", None) or reason)


def _fetch(address: str) -> dict[str, Any]:
    import urllib.error  # noqa: PLC0415 - slow to import, and only for this command
    import urllib.request  # noqa: PLC0415 - likewise

    try:
        with urllib.request.urlopen(f"http://{address}/status", timeout=10) as response:
            document: dict[str, Any] = json.load(response)
    except (urllib.error.URLError, OSError, ValueError) as error:
        raise Transient(
            f"no daemon answers at {address} ({_reason(error)})",
            hint="start one with `headroom run`, or name its address with --address",
        ) from error
    return document

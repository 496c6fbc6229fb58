"""`headroom status`: how buffers and nodes are, and what the daemon last did, as the daemon itself says. `headroom snapshot`: a cluster as files."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import click

from reconciler.cli.options import FILES, Progress, options, output_option, settings_from
from reconciler.model.errors import Misused, Transient
from reconciler.settings.load import load_settings

_LARGEST_PORT = 65_535


@click.command("status")
@click.option("--address", metavar="HOST:PORT", help="Where the daemon listens. Default: the setting `listen`.")
@options("config")
@output_option("text", "json")
def status_command(*, address: str | None, config: str | None, output: str) -> int:
    """Ask the running daemon: how full each buffer is, requests, nodes, cost, findings, what waits, and its last pass.

    In a cluster: kubectl -n headroom-system port-forward deploy/headroom 8080.
    """
    document = _fetch(_checked(address or load_settings(config).listen))
    if output == "json":
        click.echo(json.dumps(document, indent=2))
        return 0
    from reconciler.cli.options import paint_for_stdout, width_of_stdout
    from reconciler.report.status.clusters import CLUSTERS_SCHEMA, clusters_text
    from reconciler.report.status.text import daemon_status_text

    if document.get("schemaVersion") == CLUSTERS_SCHEMA:
        text = clusters_text(document)
    else:
        text = daemon_status_text(document, paint=paint_for_stdout(), width=width_of_stdout())
    click.echo(text, nl=False)
    return 0


def _checked(address: str) -> str:
    """The address, in which `:8080` means this machine. Raises `Misused` for an impossible port."""
    host, colon, port = address.rpartition(":")
    is_ipv6 = address.endswith("]")
    if colon and not is_ipv6 and not (port.isascii() and port.isdigit() and 1 <= int(port[:6]) <= _LARGEST_PORT):
        raise Misused(f"{address!r} has no port that a daemon could listen on", hint="write HOST:PORT, with 1 to 65535")
    return address if host or not colon else f"127.0.0.1:{port}"


def _fetch(address: str) -> dict[str, Any]:
    """The document. Raises `Transient`."""
    from http.client import HTTPException
    from urllib.error import HTTPError

    from reconciler.network import opener_to

    url, daemon = f"http://{address}/status", "the daemon"
    try:
        try:
            with opener_to(url).open(url, timeout=10) as response:
                document: dict[str, Any] = json.load(response)
                return document
        except HTTPError as error:
            told = error.read(1000).decode(errors="replace").strip()
            with suppress(ValueError, LookupError, TypeError):  # what stands between answers as it likes
                told = str(json.loads(told)["message"])
            said = told.removeprefix(daemon) if told.startswith(daemon) else f" answers: {told}"
            raise Transient(f"{daemon} at {address}{said}", hint="its log says why") from error
    except (OSError, ValueError, HTTPException) as error:  # an answer may break off, that of an error too
        reason = getattr(error, "reason", error)
        raise Transient(
            f"no daemon answers at {address} ({getattr(reason, 'strerror', None) or reason})",
            hint="start one with `headroom run`, or name its address with --address; for one in a cluster first run "
            "kubectl -n headroom-system port-forward deploy/headroom 8080",
        ) from error


@click.command("snapshot")
@click.option(
    "-o",
    "--output",
    "target",
    type=FILES,
    metavar="PATH",
    required=True,
    help="A folder, in which an earlier snapshot is replaced, or a file that ends in .tar.gz.",
)
@options("real_cluster", "catalog", "config")
def snapshot_command(*, target: str, **values: Any) -> int:
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
    singular = {name: re.sub("(?<=ss)es$|s$", "", name) for name in counts}
    return ", ".join(f"{count:,} {singular[name] if count == 1 else name}" for name, count in counts.items() if count)

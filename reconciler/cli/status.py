"""`headroom status`: how buffers and nodes are, and what the daemon last did, as the daemon itself says. `headroom snapshot`: a cluster as files."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import click

from reconciler.cli.options import Progress, options, output_option, settings_from
from reconciler.model.errors import Misused, Transient
from reconciler.settings.load import load_settings

_LARGEST_PORT = 65_535
_EVERY = 2.0
"""Seconds between two looks with --watch. Without news the daemon answers with a few bytes."""
_CLEAR = "\x1b[H\x1b[2J\x1b[3J"


@click.command("status")
@click.option("--address", metavar="HOST:PORT", help="Where the daemon listens. Default: the setting `listen`.")
@click.option("--config", metavar="FILE", help="Settings file; config/headroom.yaml lists every setting.")
@click.option("--watch", "-w", is_flag=True, help="Show it again whenever something is new, until Ctrl-C.")
@output_option("text", "json")
def status_command(*, address: str | None, config: str | None, watch: bool, output: str) -> int:
    """Ask the running daemon: how full each buffer is, requests, nodes, cost, findings, what waits, and its last pass.

    In a cluster: kubectl -n headroom-system port-forward deploy/headroom 8080.
    """
    target = _checked(address or load_settings(config).listen)
    answer = _fetch(target)
    _show(answer, output, again=watch)
    if watch:
        _watch(target, answer, output)
    return 0


@dataclass(frozen=True, slots=True)
class _Answer:
    """tag: the ETag of the document."""

    document: dict[str, Any]
    tag: str


def _watch(target: str, answer: _Answer, output: str) -> None:
    """Until Ctrl-C. A daemon that does not answer is told once, and asked again: it may be starting anew."""
    from time import sleep

    silent = False
    while True:
        sleep(_EVERY)
        try:
            found = _fetch(target, "" if silent else answer.tag)
        except Transient as failure:
            if not silent:
                click.echo(f"headroom: {failure.message}; what stands above may be out of date", err=True)
            silent = True
            continue
        if silent or found.tag != answer.tag:
            _show(found, output, again=True)
        answer, silent = found, False


def _show(answer: _Answer, output: str, *, again: bool) -> None:
    """again: whether it takes the place of what was shown before, on a terminal."""
    if output == "json":
        click.echo(json.dumps(answer.document, indent=None if again else 2))
        return
    from reconciler.cli.options import paint_for_stdout, width_of_stdout
    from reconciler.report.status.clusters import CLUSTERS_SCHEMA, clusters_text
    from reconciler.report.status.text import daemon_status_text

    if answer.document.get("schemaVersion") == CLUSTERS_SCHEMA:
        text = clusters_text(answer.document)
    else:
        text = daemon_status_text(answer.document, paint=paint_for_stdout(), width=width_of_stdout())
    click.echo((_CLEAR if again and sys.stdout.isatty() else "") + text, nl=again)


def _checked(address: str) -> str:
    """The address, in which `:8080` means this machine. Raises `Misused` for an impossible port."""
    host, colon, port = address.rpartition(":")
    is_ipv6 = address.endswith("]")
    if colon and not is_ipv6 and not (port.isascii() and port.isdigit() and 1 <= int(port[:6]) <= _LARGEST_PORT):
        raise Misused(f"{address!r} has no port that a daemon could listen on", hint="write HOST:PORT, with 1 to 65535")
    return address if host or not colon else f"127.0.0.1:{port}"


def _fetch(address: str, known: str = "") -> _Answer:
    """known: the tag of the answer before. Its document comes back empty if it is still the newest. Raises `Transient`."""
    import urllib.error
    import urllib.request

    request = urllib.request.Request(f"http://{address}/status", headers={"If-None-Match": known} if known else {})
    try:
        with urllib.request.urlopen(request, timeout=10) as response:  # noqa: S310 - its scheme is http
            return _Answer(json.load(response), response.headers.get("ETag", ""))
    except urllib.error.HTTPError as error:
        if error.code == 304:  # noqa: PLR2004 - Not Modified
            return _Answer({}, known)
        raise _silent(address, str(error.reason)) from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        raise _silent(address, str(getattr(reason, "strerror", None) or reason)) from error


def _silent(address: str, reason: str) -> Transient:
    return Transient(
        f"no daemon answers at {address} ({reason})",
        hint="start one with `headroom run`, or name its address with --address; for one in a cluster first run "
        "kubectl -n headroom-system port-forward deploy/headroom 8080",
    )


@click.command("snapshot")
@click.option(
    "-o", "--output", "target", metavar="PATH", required=True, help="A folder, or a file that ends in .tar.gz."
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
    return ", ".join(f"{count:,} {_singular(name) if count == 1 else name}" for name, count in counts.items() if count)


def _singular(plural: str) -> str:
    """As in "1 nodepool" or "1 priorityclass": of a resource's name, which is plural."""
    return plural.removesuffix("es") if plural.endswith("sses") else plural.removesuffix("s")

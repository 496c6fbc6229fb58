"""Options that several commands have, and the terminal that they write to."""

from __future__ import annotations

import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any, Self, TypeVar

import click

from reconciler.forge import FORGES
from reconciler.model.buffers import Dialect
from reconciler.model.quantity import whole_number
from reconciler.report.escaping import Paint, plain, takes_colours, terminal
from reconciler.settings.load import CHOICES, load_one, load_served, load_settings
from reconciler.settings.settings import ClusterSettings, Settings

F = TypeVar("F", bound=Callable[..., Any])


_FIRST_YEAR, _LAST_YEAR = 1000, 9000


class Moment(click.ParamType[datetime]):
    """An RFC 3339 instant. One without an offset is refused, since it would mean another time on another machine."""

    name = "rfc3339"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        if isinstance(value, datetime):
            return value
        try:
            instant = datetime.fromisoformat(str(value))
        except ValueError:
            self.fail(f"{value!r} is not an RFC 3339 time, such as 2026-11-21T08:00:00Z.", param, ctx)
        if instant.tzinfo is None:
            words = instant.isoformat()  # a date alone needs a time before its Z
            self.fail(f"{value!r} has no offset: write {words}Z for UTC, or {words}+01:00.", param, ctx)
        # Windows and look-aheads need some years before and after that a `datetime` can hold.
        if not _FIRST_YEAR <= instant.year <= _LAST_YEAR:
            self.fail(f"{value!r} is not within the years {_FIRST_YEAR} to {_LAST_YEAR}.", param, ctx)
        return instant.astimezone(UTC)


_MOST = 1_000_000_000_000


class Amount(click.FloatRange):
    """A number from 0 to `_MOST`. Python reads nan and inf as numbers too: no amount exceeds them, so a bound would have no effect."""

    def __init__(self) -> None:
        super().__init__(min=0)

    def convert(self, value: float, param: click.Parameter | None, ctx: click.Context | None) -> float:
        amount = float(super().convert(value, param, ctx))
        if not amount <= _MOST:
            self.fail(f"{value!s} is not an amount up to {_MOST:,}: write one such as 100.", param, ctx)
        return amount


FILES = click.Path(readable=False)
"""A file or folder, or a URL in its place: shells complete it. Whoever reads it says what is wrong with it."""


def file_option(flag: str, metavar: str, words: str) -> Callable[[F], F]:
    return click.option(flag, type=FILES, metavar=metavar, help=words)


def _flag_option(flag: str, words: str) -> Callable[[F], F]:
    return click.option(flag, is_flag=True, help=words)


def _cluster_option(kinds: str, more: str = "") -> Callable[[F], F]:
    words = f"{kinds}. Default: in-cluster, else the current kubeconfig context{more}."
    return click.option("--cluster", metavar="CLUSTER", help=words)


_READ_CLUSTERS = "kubeconfig[:CONTEXT], in-cluster, snapshot:PATH, published[:BRANCH] or embedded[:SNAPSHOT]"
_OPTIONS: dict[str, Callable[[F], F]] = {
    "repo": file_option("--repo", "PATH|URL", "Repository of manifests: a folder or a Git URL. Default: this folder."),
    "revision": click.option(
        "--revision",
        metavar="REF",
        help="Branch, tag or commit. Default: a folder's files as they stand, and a URL's default branch.",
    ),
    "path": file_option(
        "--path", "SUBDIR", "Folder inside the repository, such as clusters/production. Default: all of it."
    ),
    "cluster": _cluster_option(_READ_CLUSTERS),
    "planned_cluster": _cluster_option(_READ_CLUSTERS, ", else the snapshot that the daemon published"),
    "written_cluster": _cluster_option("kubeconfig[:CONTEXT], in-cluster or embedded[:SNAPSHOT]"),
    "real_cluster": _cluster_option("kubeconfig[:CONTEXT] or in-cluster"),
    "catalog": file_option(
        "--catalog",
        "CATALOG",
        "Instance types and prices: FILE, karpenter-metrics:URL or observed (those of existing nodes, without prices). "
        "Default: those of the snapshot or the embedded cluster, else observed.",
    ),
    "dialect": click.option(
        "--dialect",
        type=click.Choice(list(map(str, Dialect))),
        help="Whose rules apply where Karpenter and Cluster Autoscaler disagree. Default: karpenter.",
    ),
    "now": click.option("--now", type=Moment(), help="Use this as the current time, such as 2026-12-24T18:00:00Z."),
    "config": file_option("--config", "FILE", "Settings file, like config/headroom.yaml, which lists every setting."),
    "timings": file_option("--timings", "FILE", "Write the seconds that each stage took, as JSON."),
    "include_pending": _flag_option("--include-pending", "Also plan nodes for the cluster's own pending pods."),
    "placement_mode": click.option(
        "--placement-mode",
        type=click.Choice(CHOICES["placement.mode"]),
        help="How new nodes are chosen; optimal takes longer and costs less. Default: fast.",
    ),
    "check_placement": _flag_option(
        "--check-placement", "Verify the placement with an independent checker; one that breaks a rule is not applied."
    ),
    "cost": _flag_option(
        "--cost", "Also compute what capacity costs over the coming 30 days, with all that schedules ask for."
    ),
    "detailed_exitcode": _flag_option(
        "--detailed-exitcode", "Exit 0 for no change, 2 for changes, 1 for any error, as Terraform does."
    ),
    "post": click.option(
        "--post",
        type=click.Choice(FORGES),
        help="Also post it on the pull request: comment, status, remarks beside lines.",
    ),
    "post_mode": click.option(
        "--post-mode",
        type=click.Choice(["update", "new", "hide-and-new", "delete-and-new"]),
        default="update",
        show_default=True,
        help="What becomes of the comment of an earlier run.",
    ),
    "pull_request": click.option(
        "--pull-request",
        metavar="NUMBER",
        type=click.IntRange(min=1),
        help="Post on this one. Default: the one that CI runs for.",
    ),
    "skip_no_diff": click.option(
        "--skip-no-diff/--no-skip-no-diff",
        default=True,
        help="Make no first comment where nothing changes. The default.",
    ),
    "post_above": click.option(
        "--post-above",
        type=Amount(),
        metavar="USD",
        help="Make no first comment where nothing is lost or wrong and 30 days cost less than this more or less.",
    ),
}


def options(*names: str) -> Callable[[F], F]:
    """The named shared options, in the order given."""

    def decorate(function: F) -> F:
        for name in reversed(names):
            function = _OPTIONS[name](function)
        return function

    return decorate


def output_option(*choices: str) -> Callable[[F], F]:
    return click.option(
        "--output", "-o", type=click.Choice(choices), default=choices[0], show_default=True, help="Output format."
    )


def settings_from(values: dict[str, Any]) -> Settings:
    """The settings of the one cluster that a command is about, overridden by the shared flags. values: the command's parameters by
    name."""
    if "cluster" not in values:
        return load_settings(values.get("config"), flags=_flags(values))
    return load_one(values.get("config"), flags=_flags(values))


def served_from(values: dict[str, Any]) -> tuple[ClusterSettings, ...]:
    """Every cluster that the settings name, for the daemon."""
    return load_served(values.get("config"), flags=_flags(values))


def _flags(values: dict[str, Any]) -> dict[str, object]:
    return {
        **{name: values.get(name) for name in ("revision", "path", "cluster", "catalog", "dialect")},
        "repository": values.get("repo"),
        "placement.mode": values.get("placement_mode"),
        "placement.check": values.get("check_placement") or None,
    }


def tell_unread(reasons: Iterable[str]) -> None:
    """Prints on stderr what of the cluster or the repository could not be read, so that what a command says may be wrong."""
    for reason in reasons:
        click.echo(terminal(f"headroom: this may be wrong: {reason}"), err=True)


PATIENCE = 2.0
"""Seconds without output that need no explanation."""
PHASE_WORDS = {
    "git": "reading the repository",
    "manifests": "reading manifests",
    "view": "reading the cluster",
    "demand": "working out demand",
    "placement": "placing chunks",
    "plan": "planning, and checking the repository's templates",
    "templates": "checking templates",
    "render": "rendering",
    "apply": "applying",
}
"""The phases of a pass in their order, in words for people who wait. Checking templates is validate's own."""
TIMED_PHASES = tuple(phase for phase in PHASE_WORDS if phase != "templates")
COMPILING = "compiling the loops of placement, once on a machine"


def paint_for_stdout() -> Paint:
    return _paint if takes_colours(sys.stdout, os.environ) else plain


def width_of_stdout() -> int | None:
    """The columns to wrap at; None if the output is piped, so that lines stay whole."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and (width := whole_number(columns)):
        return width
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def _paint(style: str, text: str) -> str:
    if style in {"bold", "dim"}:
        return click.style(text, bold=style == "bold" or None, dim=style == "dim" or None)
    return click.style(text, fg=style)


class Progress:
    """A context manager; call it with a stage's name whenever one begins.

    A stage that takes longer than PATIENCE is named once, and again every ten seconds while it lasts.
    """

    def __init__(self) -> None:
        self._stage = ""
        self._began = time.monotonic()
        self._compiled = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="progress", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def __call__(self, stage: str) -> None:
        self._stage, self._began, self._compiled = stage, time.monotonic(), _compiled()

    def _watch(self) -> None:
        told: tuple[str, float] = ("", 0.0)
        while not self._over.wait(0.25):
            stage = self._stage  # "" between the passes of a daemon, and always where nobody at a console is told
            words = COMPILING if stage and _compiled() > self._compiled else PHASE_WORDS.get(stage, stage)
            waited = time.monotonic() - self._began
            due = PATIENCE if told[0] != words else told[1] + 10
            if words and waited >= due:
                told = (words, waited)
                sys.stderr.write(f"… {words} ({waited:.0f} s)\n")
                sys.stderr.flush()


def _compiled() -> int:
    """How many loops this process has had to compile. Commands that place nothing do not import their module."""
    kernel = sys.modules.get("reconciler.placement.loops.kernel")
    return 0 if kernel is None else len(kernel.not_cached)

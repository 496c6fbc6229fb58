"""Options that several commands share, and the settings that they give."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, TypeVar

import click

from reconciler.settings.clusters import ClusterSettings, load_one, load_served
from reconciler.settings.load import load_settings
from reconciler.settings.settings import Settings

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


def _cluster_option(kinds: str, more: str = "") -> Callable[[F], F]:
    words = f"{kinds}. Default: in-cluster, else the current kubeconfig context{more}."
    return click.option("--cluster", metavar="CLUSTER", help=words)


_OPTIONS: dict[str, Callable[[F], F]] = {
    "repo": click.option("--repo", metavar="PATH|URL", help="Repository of manifests: a folder or a Git URL."),
    "revision": click.option(
        "--revision", metavar="REF", help="Branch, tag or commit to read instead of the files as they stand."
    ),
    "path": click.option("--path", metavar="SUBDIR", help="Folder inside the repository."),
    "cluster": _cluster_option(
        "kubeconfig[:CONTEXT], in-cluster, snapshot:PATH, published[:BRANCH] or embedded[:SNAPSHOT]",
        "; diff, plan and explain look for a published snapshot after those",
    ),
    "written_cluster": _cluster_option("kubeconfig[:CONTEXT], in-cluster or embedded[:SNAPSHOT]"),
    "real_cluster": _cluster_option("kubeconfig[:CONTEXT] or in-cluster"),
    "catalog": click.option(
        "--catalog", metavar="CATALOG", help="Instance types and prices: FILE, karpenter-metrics:URL or observed."
    ),
    "dialect": click.option(
        "--dialect",
        type=click.Choice(["karpenter", "ca"]),
        help="Whose rules apply where Karpenter and Cluster Autoscaler disagree.",
    ),
    "now": click.option("--now", type=Moment(), help="Use this as the current time."),
    "config": click.option("--config", metavar="FILE", help="Settings file; config/headroom.yaml lists every setting."),
    "timings": click.option("--timings", metavar="FILE", help="Write how long each stage took, as JSON."),
    "include_pending": click.option(
        "--include-pending", is_flag=True, help="Also plan nodes for the cluster's own pending pods."
    ),
    "placement_mode": click.option(
        "--placement-mode",
        type=click.Choice(["fast", "optimal"]),
        help="How new nodes are chosen; optimal takes longer and costs less.",
    ),
    "check_placement": click.option(
        "--check-placement",
        is_flag=True,
        help="Verify the placement with an independent checker; one that breaks a rule is not applied.",
    ),
    "cost": click.option(
        "--cost",
        is_flag=True,
        help="Also compute what capacity costs over the coming 30 days, with all that schedules ask for.",
    ),
    "detailed_exitcode": click.option(
        "--detailed-exitcode",
        is_flag=True,
        help="Exit 0 for no change, 2 for changes, 1 for any error, as Terraform does.",
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
        "repository": values.get("repo"),
        "revision": values.get("revision"),
        "path": values.get("path"),
        "cluster": values.get("cluster"),
        "catalog": values.get("catalog"),
        "dialect": values.get("dialect"),
        "placement.mode": values.get("placement_mode"),
        "placement.check": values.get("check_placement") or None,
    }

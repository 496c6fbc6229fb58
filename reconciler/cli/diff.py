"""`headroom diff BASE..HEAD`: what merging would change, for people and for pull requests."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import fields, replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from reconciler.cli.application import DETAILED_ERROR, GATE, exit_code_of_changes
from reconciler.cli.options import FILES, Amount, Progress, options, output_option, settings_from
from reconciler.cli.plan import tell_age
from reconciler.cli.posting import check_post_options, posting, tell

if TYPE_CHECKING:
    from reconciler.comparison import Comparison
    from reconciler.model.errors import Failure
    from reconciler.model.timelines import CapacityTimeline
    from reconciler.report.difference.difference import Difference
    from reconciler.settings.settings import Settings
    from reconciler.source.merging import Sides
    from reconciler.wiring.inputs import ReportedCluster


@click.command("diff")
@click.argument("revisions", type=FILES, metavar="BASE..HEAD|FOLDER")
@click.argument("other", type=FILES, metavar="[FOLDER]", required=False)
@options("repo", "path", "planned_cluster", "catalog", "dialect", "now", "config", "timings", "detailed_exitcode")
@click.option(
    "--max-monthly-increase",
    type=Amount(),
    metavar="USD",
    help="Fail when merging costs more than this over the coming 30 days.",
)
@click.option(
    "--max-new-nodes",
    type=click.IntRange(min=0),
    metavar="NODES",
    help="Fail when merging adds more nodes than this at any time of the coming 30 days.",
)
@click.option("--no-unplaced", is_flag=True, help="Fail when chunks lose or lack a place because of merging.")
@click.option(
    "--no-less-room", is_flag=True, help="Fail when a buffer has less room at any time of the coming 30 days."
)
@click.option("--no-drift", is_flag=True, help="Fail when a NodePool's change makes nodes drift.")
@click.option("--no-new-errors", is_flag=True, help="Fail on errors in manifests that BASE does not have.")
@click.option("--no-existing-errors", is_flag=True, help="Fail on errors in manifests that BASE has too.")
@click.option(
    "--fork/--no-fork",
    default=None,
    help="Whether HEAD is of a fork, whose templates are not rendered. Default: what the CI job tells.",
)
@click.option(
    "--page",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="Also write all of it as an HTML page, for the job's artifacts. The comment of --post links to them.",
)
@output_option("text", "json", "markdown", "html", "sarif", "github")
@options("post", "post_mode", "pull_request", "skip_no_diff", "post_above")
def diff_command(
    *,
    revisions: str,
    other: str | None,
    output: str,
    now: datetime | None,
    timings: str | None,
    detailed_exitcode: bool,
    **values: Any,
) -> int:
    """Plan BASE and the result of merging HEAD into it on the same cluster, and show how the plans differ.

    BASE...HEAD compares with the merge base of both instead. "main.." merges the working tree. Two folders are
    compared as they stand. With several folders under clusters/, each gets its own report. Exits 0 for no
    difference, 1 for a difference, 2 on an error, 3 when a bound is not kept. Findings do not change the exit code.

    \b
        headroom diff main..my-branch --path clusters/production --output markdown
        headroom diff main...my-branch --max-monthly-increase 500 --no-unplaced
        headroom diff origin/main..HEAD --post github
        headroom diff before/ after/ --cluster snapshot:production.tar.gz
    """
    from reconciler.cli.plan import write_timings
    from reconciler.clocks import SystemClock
    from reconciler.comparison import summed
    from reconciler.source.opening import place_in_repository

    check_post_options(click.get_current_context())
    settings = _settings(values, revisions, other)
    now = now or SystemClock().now()  # the same instant for both sides, so that time alone makes no difference
    clusters = () if settings.path else _clusters(settings, revisions, other)
    if len(clusters) > 1 and (output not in {"text", "markdown"} or values["page"]):
        names = ", ".join(clusters)
        raise click.UsageError(f"there are {len(clusters)} clusters, {names}: name the folder of one with --path.")
    place = place_in_repository(other or settings.repository)
    reports: list[tuple[Comparison, Failure | None]] = []
    for path in clusters if len(clusters) > 1 else ("",):
        its_settings = replace(settings, path=path or settings.path)
        if path and output == "text":
            click.echo(f"{path}:")
        read = partial(_sides, its_settings, revisions, other)
        reports.append(_report(its_settings, read, values, output=output, now=now, name=path, place=place))
        if path:
            click.echo()
        if timings:
            write_timings(timings, summed(comparison.timings for comparison, _ in reports))
    for _, failure in reports:
        if failure is not None:
            raise failure
    changes = [comparison.change for comparison, _ in reports]
    if any(change.failed_gates for change in changes):
        return DETAILED_ERROR if detailed_exitcode else GATE
    return exit_code_of_changes(changes=any(change.has_changes for change in changes), detailed=detailed_exitcode)


def _clusters(settings: Settings, revisions: str, other: str | None) -> tuple[str, ...]:
    """The folders of several clusters. None where the sides cannot be read, which the report itself says in its turn."""
    from reconciler.manifests.repository.validate import cluster_folders
    from reconciler.model.errors import Failure

    try:
        sides = _sides(settings, revisions, other)
    except Failure:
        return ()
    return cluster_folders((*sides.base.files, *sides.head.files))


def _report(
    settings: Settings,
    read: Callable[[], Sides],
    values: dict[str, Any],
    *,
    output: str,
    now: datetime,
    name: str,
    place: str | None,
) -> tuple[Comparison, Failure | None]:
    """Compares, prints and posts what differs for one cluster. read: reads the two sides. name: in the title; "" for its own. place: where
    the folder that is read is in its repository.

    Posting comes last, so that everything else is printed even if it fails. Its failure is returned.
    """
    from reconciler.cli.plan import write_file
    from reconciler.comparison import compare
    from reconciler.forge.forges import is_of_a_fork
    from reconciler.report.difference.headline import Gates
    from reconciler.wiring.inputs import reported_cluster
    from reconciler.wiring.posting import complete_page
    from reconciler.wiring.session import open_session

    gates = Gates(**{each.name: values[each.name] for each in fields(Gates)})
    with posting(values, settings) as report:
        with (
            Progress() as progress,
            open_session(settings, now=now, progress=progress, compares=True, published=True) as session,
        ):
            tell_age(session.cluster, now)
            progress("git")
            foreign = values["fork"]
            if foreign is None:  # the forge is more reliable than the CI job's variables
                foreign = is_of_a_fork(os.environ) or (report is not None and report.from_fork)
            comparison = compare(session.cycle, read(), caps=settings.caps, gates=gates, foreign=foreign)
            cluster = reported_cluster(session.cluster, settings)
            cluster = replace(cluster, name=name or cluster.name)
        print_difference(comparison.change, output, place, cluster=cluster, timelines=comparison.timelines)
        if values["page"]:
            write_file("--page", values["page"], complete_page(comparison, cluster))
        for sentence in comparison.change.failed_gates:
            click.echo(f"headroom: {sentence}", err=True)
        failure = None if report is None else tell(report, report.post(comparison, cluster, place))
    return comparison, failure


def _settings(values: dict[str, Any], revisions: str, other: str | None) -> Settings:
    from reconciler.source.merging import check_folders

    if other is not None:
        if values["repo"]:
            raise click.UsageError("--repo says nothing where two folders are compared: leave it out.")
        check_folders(revisions, other)
    return settings_from(values)


def _sides(settings: Settings, revisions: str, other: str | None) -> Sides:
    from reconciler.model.errors import Invalid
    from reconciler.source.merging import Revisions, folders, sides_of
    from reconciler.wiring.inputs import git_options, scope_of

    if other is not None:
        return folders(revisions, other, scope_of(settings))
    try:
        wanted = Revisions.parse(revisions)
    except Invalid as error:
        raise click.UsageError(error.message) from error
    return sides_of(settings.repository or ".", wanted, scope_of(settings), git_options(settings))


def print_difference(
    change: Difference,
    output: str,
    place: str | None,
    *,
    cluster: ReportedCluster,
    timelines: tuple[CapacityTimeline, CapacityTimeline] | None,
) -> None:
    """place: where the folder that is read is in its repository. timelines: of base and head, which show how the coming week differs."""
    from reconciler.cli.plan import print_page
    from reconciler.report.difference.document import difference_document
    from reconciler.report.difference.page import difference_page
    from reconciler.report.escaping import to_json
    from reconciler.report.findings import github_annotations, sarif_document

    if output == "json":
        click.echo(to_json(difference_document(change)), nl=False)
    elif output in {"sarif", "github"}:
        findings = [finding.below(place) for finding in change.new_findings]
        told = to_json(sarif_document(findings)) if output == "sarif" else github_annotations(findings)
        click.echo(told, nl=False)
    else:
        page = difference_page(change, cluster=cluster.name, snapshot=cluster.snapshot, timelines=timelines)
        print_page(page, output)

"""The commands that change a cluster: `headroom run` (the daemon), `apply` (one pass) and `release` (hands every held node back)."""

from __future__ import annotations

import sys
from datetime import datetime
from typing import Any

import click

from reconciler.cli.options import Amount, Progress, options, served_from, settings_from
from reconciler.model.changes import ChangeSet, Outcome
from reconciler.model.errors import Stalled, Transient
from reconciler.model.marks import SUSPEND_ANNOTATION
from reconciler.report.escaping import terminal

_OF_A_PASS = (
    *("repo", "revision", "path", "written_cluster", "catalog", "dialect"),
    *("placement_mode", "check_placement", "now", "config"),
)
"""The options of commands that make passes and write."""
_GO_ON = f"set suspend to false, and take the annotation {SUSPEND_ANNOTATION} from the ConfigMap of the inventory"


@click.command("run")
@options(*_OF_A_PASS)
@click.option("--until-settled", is_flag=True, help="Exit 0 once nothing is left that can be changed now.")
@click.option(
    "--at-most",
    metavar="SECONDS",
    type=Amount(),
    default=None,
    help="With --until-settled: give up after this many seconds.",
)
def run_command(*, now: datetime | None, until_settled: bool, at_most: float | None, **values: Any) -> int:
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
    with Progress() as progress:
        return run_daemon(clusters, now=now, until_settled=until_settled, at_most=at_most, progress=progress)


@click.command("apply")
@options(*_OF_A_PASS, "timings")
@click.option("--yes", is_flag=True, help="Apply without asking.")
@click.option(
    "--allow-removals", is_flag=True, help="Delete at once all that Git no longer declares, however much it is."
)
def apply_command(*, now: datetime | None, timings: str | None, yes: bool, allow_removals: bool, **values: Any) -> int:
    """Show what one pass would change, ask, and change it.

    Exits 1 when anything could not be applied; whatever can be applied is. A write that waits for another one is not a failure.
    What was shown is applied: if the plan changes meanwhile, the new one is shown and asked about.

    \b
        headroom apply --path clusters/production
    """
    from reconciler.cli.plan import print_plan, write_timings
    from reconciler.wiring.inputs import reported_cluster
    from reconciler.wiring.session import open_session

    settings = settings_from(values)
    if settings.cluster.partition(":")[0] in {"snapshot", "published"}:
        raise click.UsageError(f"{settings.cluster} is read-only: apply to a real or an embedded cluster.")
    with (
        Progress() as progress,
        open_session(settings, now=now, progress=progress, allow_removals=allow_removals) as session,
    ):
        done = session.cycle.plan()
        while done.failure is None and done.change_set is None:
            plan = done.required_plan
            print_plan(plan, "text", cluster=reported_cluster(session.cluster, settings))
            if done.suspended:
                if plan.has_changes:
                    raise Stalled("headroom is suspended, so that nothing is applied", reason="Suspended", hint=_GO_ON)
                break
            if plan.has_changes and not yes:
                _ask()
            done = session.cycle.run("apply") if yes else session.cycle.run("apply", tree=done.tree, agreed=plan)
            if done.failure is None and done.change_set is None:
                click.echo("headroom: the plan has changed meanwhile, so nothing is applied yet", err=True)
    if done.failure is not None:
        raise done.failure
    if timings:
        write_timings(timings, done.timings)
    return _tell(done.change_set or ChangeSet())


def _ask() -> None:
    if not sys.stdin.isatty():
        raise click.UsageError("Standard input is not a terminal, so nobody can confirm: give --yes to apply.")
    click.confirm("Apply this?", abort=True)


def _tell(changes: ChangeSet) -> int:
    from reconciler.report.plan.page import applied_words, waiting_lines

    if changes.results:
        click.echo(applied_words(changes))
    failed = [result for result in changes.failures if result.outcome is not Outcome.SKIPPED]
    for line in waiting_lines(changes):
        click.echo(terminal(line))
    for result in failed:
        click.echo(terminal(f"  {result.write.ref}: {result.outcome}: {result.message}"), err=True)
    if failed:
        raise Transient(f"{len(failed)} of {len(changes.results)} writes failed", hint="see the lines above")
    return 0


@click.command("release")
@click.option("--all", "everything", is_flag=True, help="All nodes and NodeClaims that headroom holds.")
@options("real_cluster", "config")
def release_command(*, everything: bool, **values: Any) -> int:
    """Take headroom's protection from every node and NodeClaim, so that Karpenter consolidates what is empty.

    Stop the daemon first: it would hold them again. While one leads by its Lease, this waits up to 40 seconds for its end, and then fails.
    What somebody else protected stays protected.

    \b
        kubectl -n headroom-system scale deployment headroom --replicas 0
        headroom release --all
    """
    if not everything:
        raise click.UsageError("Say --all: every node that headroom holds is released.")
    from reconciler.wiring.session import release_all

    settings = settings_from(values)
    with Progress() as progress:
        results = release_all(settings, progress)
    for result in results:
        words = "released" if result.ok else f"{result.outcome.value}: {result.message}"
        click.echo(f"{result.write.ref} {words}")
    if not results:
        click.echo("Nothing is held.")
    return int(any(not result.ok for result in results))

"""`headroom budgets`: how many nodes may be disrupted, by NodePool and reason, now and hour by hour."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import click

from reconciler.cli.options import Moment, Progress, options, output_option, settings_from, tell_unread
from reconciler.model.errors import Misused
from reconciler.model.findings import Finding, Severity
from reconciler.model.nodes import NodePool
from reconciler.model.schedules import PoolBudgets
from reconciler.plan.node_pools.disruption_budgets import PoolState

_WEEK = timedelta(days=7)
_LONGEST = timedelta(days=10 * 366)
_MOST_NODES = 10**6
_KIND = "NodePool"


class NodeCount(click.ParamType[tuple[str, int]]):
    """`12` or `general=12`: the pool's name, "" for every pool, and its nodes."""

    name = "[nodepool=]n"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, int]:
        pool, separator, count = str(value).rpartition("=")
        named = bool(pool) or not separator
        if not (named and count.isascii() and count.isdigit()) or int(count[:9]) > _MOST_NODES:
            self.fail(f"{value!r} is not a number of nodes: write 12, or general=12 for one NodePool.", param, ctx)
        return pool, int(count)


@dataclass(frozen=True, slots=True)
class Pools:
    """NodePools, and how many nodes each has. heading: where they come from, for people. local_budgets: those of pools whose budgets
    were compiled into UTC for a limited time."""

    heading: str
    pools: tuple[NodePool, ...]
    states: Mapping[str, PoolState] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    local_budgets: tuple[PoolBudgets, ...] = ()


@click.command("budgets")
@options("repo", "revision", "path", "cluster", "catalog", "now")
@click.option("--from", "start", type=Moment(), help="Start of the span.  [default: now]")
@click.option("--to", "end", type=Moment(), help="End of the span.  [default: one week after its start]")
@click.option(
    "--nodes",
    type=NodeCount(),
    multiple=True,
    help="Assume N ready nodes in every NodePool, or in one. No cluster is needed then.",
)
@options("config")
@output_option("text", "json")
def budgets_command(
    *,
    now: datetime | None,
    start: datetime | None,
    end: datetime | None,
    nodes: tuple[tuple[str, int], ...],
    output: str,
    **values: Any,
) -> int:
    """Show how many nodes of each NodePool Karpenter may disrupt for each reason, and which budget decides it. It does so for now,
    and hour by hour for a week or from --from to --to.

    Takes NodePools from the repository first, then those that only the cluster has. The future is computed with the
    nodes as they are now. JSON has one row per NodePool and reason for now; with --from or --to, one row for each period
    in which nothing changes.

    Exits 1 when there is an error and a NodePool or budget could not be shown.

    \b
        headroom budgets --path clusters/production
        headroom budgets --nodes 20 --from 2026-12-24T00:00:00Z --to 2027-01-02T00:00:00Z
        headroom budgets --nodes 20 --nodes batch=200 --output json
    """
    from reconciler.clocks import SystemClock

    present = now or SystemClock().now()
    span = _span(start, end, present)
    counts = dict(nodes)
    found = (
        _of_repository(values, counts, present)
        if counts and not values["cluster"]
        else _of_cluster(values, counts, now)
    )
    asked_for_span = start is not None or end is not None
    for part in _printed(output, found, present, span, asked_for_span=asked_for_span):
        click.echo(part, nl=False)
    return int(any(finding.severity is Severity.ERROR for finding in found.findings))


def _printed(
    output: str,
    found: Pools,
    now: datetime,
    span: tuple[datetime, datetime],
    *,
    asked_for_span: bool,
) -> Iterator[str]:
    """The output, in parts if it is large."""
    from reconciler.manifests.local_budgets import budget_periods
    from reconciler.plan.node_pools.disruption_budgets import budget_outcomes

    pools, states = found.pools, found.states
    if output == "json":
        from reconciler.report.budgets import budget_spans_json, budgets_document
        from reconciler.report.escaping import to_json

        if not asked_for_span:
            yield to_json(budgets_document(budget_outcomes(pools, states, now), now=now, findings=found.findings))
            return
        from reconciler.plan.node_pools.budget_timeline import pieces_over

        pieces = pieces_over(budget_periods(pools, found.local_budgets, *span), states)
        yield from budget_spans_json(pieces, now=now, findings=found.findings)
        return
    from reconciler.cli.options import paint_for_stdout, width_of_stdout
    from reconciler.plan.node_pools.budget_timeline import cells_over
    from reconciler.report.budgets import HourGrid, budgets_text, hours_text

    paint = paint_for_stdout()
    text = budgets_text(
        budget_outcomes(pools, states, now),
        heading=found.heading,
        now=now,
        zone=None,
        findings=found.findings,
        paint=paint,
        width=width_of_stdout(),
    )
    if not pools:
        yield text
        return
    grid = HourGrid(*span, zone=None)
    periods = budget_periods(pools, found.local_budgets, grid.edges[0], grid.edges[-1])
    cells = cells_over(periods, states, grid.edges)
    yield f"{text}\n{hours_text(cells, grid, now=now, zone=None, paint=paint)}"


def _span(start: datetime | None, end: datetime | None, now: datetime) -> tuple[datetime, datetime]:
    first = start or now
    last = end or first + _WEEK
    if last <= first:
        raise click.UsageError("--to must be later than --from (which is now, unless given).")
    if last - first > _LONGEST:
        raise click.UsageError("--from and --to may be at most ten years apart.")
    return first, last


def _of_repository(values: dict[str, Any], counts: Mapping[str, int], now: datetime) -> Pools:
    """The NodePools that the repository alone declares, with the given numbers of nodes."""
    from reconciler.manifests.local_budgets import in_utc, named_as_written
    from reconciler.manifests.node_pool import budgets_alone
    from reconciler.manifests.repository.declared import read
    from reconciler.wiring.inputs import repository_tree

    settings = settings_from(values)
    with Progress() as progress:
        progress("git")
        local = in_utc(read(repository_tree(settings, now).files), now)
    declared = local.declared
    partial = (item for item in declared.manifests if item.partial and item.ref.kind == _KIND)
    alone = [pool for pool in map(budgets_alone, partial) if pool is not None]
    all_pools = sorted((*declared.node_pools, *alone), key=lambda pool: pool.name)
    pools = named_as_written(all_pools, local.pools)
    states = _counted(pools, counts)
    missing = [pool.name for pool in pools if pool.name not in counts]
    if missing and "" not in counts:
        raise click.UsageError(
            f"The number of nodes of {missing[0]} is not known. Give --nodes {missing[0]}=N, or --nodes N for every other NodePool."
        )
    where = settings.path or settings.repository or "this folder"
    return Pools(
        f"Disruption budgets in {where}",
        pools,
        states,
        _told((*declared.findings, *local.findings)),
        local.pools,
    )


def _of_cluster(values: dict[str, Any], counts: Mapping[str, int], now: datetime | None) -> Pools:
    """The repository's NodePools over the cluster's, with the existing nodes or the given numbers."""
    from reconciler.plan.bins import all_bins
    from reconciler.plan.node_pools.disruption_budgets import pool_states
    from reconciler.plan.objects.objects import pool_not_there
    from reconciler.wiring.inputs import NoClusterHere
    from reconciler.wiring.session import open_session

    try:
        with Progress() as progress, open_session(settings_from(values), now=now, progress=progress) as session:
            seen = session.cycle.observe()
            cluster = session.cluster.name
    except NoClusterHere as error:
        hint = f"{error.hint}; or compute from the repository alone: --nodes N"
        raise NoClusterHere(error.message, hint=hint) from error
    tell_unread(seen.view.gaps)
    pools = seen.effective.node_pools
    not_there = [
        pool_not_there(item)
        for item in seen.effective.manifests
        if item.partial and item.ref.kind == _KIND and item.ref not in seen.view.objects
    ]
    states = {**pool_states(all_bins(seen.view)), **_counted(pools, counts)}
    return Pools(
        f"Disruption budgets on {cluster}", pools, states, (*_told(seen.findings), *not_there), seen.local_budgets
    )


def _counted(pools: Sequence[NodePool], counts: Mapping[str, int]) -> dict[str, PoolState]:
    """The given numbers of nodes, all ready, by the pools' names; "" stands for all others."""
    names = [pool.name for pool in pools]
    for name in counts:
        if name and name not in names:
            raise Misused(
                f"--nodes {name}={counts[name]}: there is no NodePool {name}",
                hint=f"there are: {', '.join(names[:8]) or 'none'}",
            )
    others = dict.fromkeys(names, counts[""]) if "" in counts else {}
    return {name: PoolState(total) for name, total in {**others, **counts}.items() if name}


def _told(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Findings because of which a NodePool is left out, and those about budgets. `headroom validate` prints the others."""
    return tuple(
        finding
        for finding in findings
        if (finding.ref is None or finding.ref.kind == _KIND)
        and (finding.severity is Severity.ERROR or finding.path.startswith("spec.disruption"))
    )

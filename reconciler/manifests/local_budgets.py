"""NodePools whose budgets are written in local time, with the budgets in UTC that Karpenter gets instead.

Only a repository's documents are compiled. An object in the cluster already has compiled budgets; its annotations are kept for
people to read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from reconciler.manifests.budgets import ALLOW_WINDOWS, TIME_ZONE, allow_windows_of
from reconciler.manifests.documents.document import Inspection, mapping_at, unreadable
from reconciler.manifests.node_pool import NODE_POOL, budgets_of, is_partial
from reconciler.manifests.schedule_findings import old_zone_data
from reconciler.model import codes
from reconciler.model.declared import Declared, DeclaredManifest
from reconciler.model.errors import Invalid
from reconciler.model.findings import Finding
from reconciler.model.nodes import BudgetOrigin, DisruptionBudget, NodePool
from reconciler.model.quantity import format_duration
from reconciler.model.refs import ObjectRef
from reconciler.model.schedules import BudgetPeriod, CompiledBudgets, LocalBudgets, PoolBudgets
from reconciler.model.view import Manifest
from reconciler.timetable.cron import parse_cron

_DEFAULT = (DisruptionBudget(),)
"""Karpenter's default for a pool without `budgets`."""
_MANY = 4
"""Windows a day. Fewer never need too many budgets, so they need not be compiled to find out, which takes 0.1 s."""
_REFERENCE_MONTHS = (1, 3, 9, 10)
"""Months in which clocks change, in either hemisphere. They need the most budgets."""


@dataclass(frozen=True, slots=True)
class InUtc:
    """declared: with compiled budgets in manifests and typed pools. pools: written and compiled budgets side by side.

    findings: about pools whose windows cannot be compiled. These are left out of `declared` and count as broken.
    """

    declared: Declared
    pools: tuple[PoolBudgets, ...] = ()
    findings: tuple[Finding, ...] = ()


def in_utc(repository: Declared, now: datetime) -> InUtc:
    """The repository with every NodePool's local budgets compiled for this instant."""
    from reconciler.timetable.compiled_budgets import compiled

    pools: list[PoolBudgets] = []
    findings: list[Finding] = []
    manifests: dict[ObjectRef, DeclaredManifest] = {}
    refused = set()
    for item in repository.manifests:
        try:
            written = written_in(item.manifest) if item.ref.kind == NODE_POOL.name else None
            form = None if written is None else compiled(written, now)
        except Invalid as error:
            path = "spec.disruption.budgets"
            findings.append(codes.TOO_MANY_BUDGETS.finding(error.message, item.position, item.ref, path, error.hint))
            refused.add(item.ref)
            continue
        except Exception as error:  # noqa: BLE001 - it concerns this NodePool alone and must not stop the pass
            findings.append(unreadable(error, item.position, item.ref))
            refused.add(item.ref)
            continue
        if written is None or form is None:
            continue
        pools.append(PoolBudgets(item.ref.name, written, form, item.position))
        manifests[item.ref] = replace(item, manifest=_with_budgets(item.manifest, form.budgets))
    if not (pools or refused):
        return InUtc(repository)
    local = next((pool for pool in pools if pool.written.time_zone != "UTC"), None)
    if local is not None:
        ref = ObjectRef(NODE_POOL.group, NODE_POOL.name, "", local.node_pool)
        findings += old_zone_data(now, ref, local.position, "spec.disruption.budgets")
    budgets = {pool.node_pool: pool.compiled.budgets for pool in pools}
    left = repository.without(refused)
    declared = replace(
        left,
        manifests=tuple(manifests.get(item.ref, item) for item in left.manifests),
        node_pools=tuple(replace(pool, budgets=budgets.get(pool.name, pool.budgets)) for pool in left.node_pools),
        broken=repository.broken | refused,
    )
    return InUtc(declared, tuple(pools), tuple(findings))


def named_as_written(pools: Iterable[NodePool], local: Iterable[PoolBudgets]) -> tuple[NodePool, ...]:
    """The pools with compiled budgets that know what they were compiled from, for reports of the binding budget."""
    forms = {item.node_pool: item for item in local}
    return tuple(
        replace(pool, budgets=_with_origins(form))
        if (form := forms.get(pool.name)) is not None and pool.budgets == form.compiled.budgets
        else pool
        for pool in pools
    )


def budget_periods(
    pools: Iterable[NodePool], local: Iterable[PoolBudgets], start: datetime, end: datetime
) -> tuple[BudgetPeriod, ...]:
    """The pools over [start, end), compiled again whenever their budgets in UTC run out.

    local: the written budgets of pools in local time. Raises `Invalid` if they cannot be compiled at some instant.
    """
    from reconciler.timetable.compiled_budgets import last_month_of

    all_pools = tuple(pools)
    by_name = {pool.name: pool for pool in all_pools}
    forms = tuple(item for item in local if item.node_pool in by_name)
    periods: list[BudgetPeriod] = []
    since = start
    while since < end:
        compiled_now = tuple(replace(item, compiled=_compiled_at(item, since)) for item in forms)
        until = min((last_month_of(item.compiled) for item in compiled_now), default=end)
        until = min(until, end)
        renewed = {item.node_pool: _with_origins(item) for item in compiled_now}
        here = tuple(replace(pool, budgets=renewed.get(pool.name, pool.budgets)) for pool in all_pools)
        periods.append(BudgetPeriod(since, until, here))
        since = until
    return tuple(periods)


def _compiled_at(item: PoolBudgets, at: datetime) -> CompiledBudgets:
    from reconciler.timetable.compiled_budgets import compiled

    try:
        return compiled(item.written, at)
    except Invalid as error:
        raise Invalid(f"NodePool {item.node_pool} in {at:%B %Y}: {error.message}", hint=error.hint) from error


def _with_origins(form: PoolBudgets) -> tuple[DisruptionBudget, ...]:
    pairs = zip(form.compiled.budgets, form.compiled.origins, strict=True)
    return tuple(replace(budget, origin=_origin(form.written, budget, index)) for budget, index in pairs)


def _origin(written: LocalBudgets, budget: DisruptionBudget, index: int | None) -> BudgetOrigin:
    zone = written.time_zone
    if index is None:
        lines = [
            f"{window.schedule} for {format_duration(window.duration)}"
            for window in written.allow_windows
            if window.reasons is None or budget.reasons is None or set(window.reasons) & set(budget.reasons)
        ]
        return BudgetOrigin(ALLOW_WINDOWS, f", outside of {'; '.join(lines)} ({zone})")
    budget_written = written.budgets[index]
    alone = len(written.budgets) == 1 and not written.allow_windows
    name = "the only budget" if alone else f"budgets[{index}]"
    if budget_written.schedule is None or budget_written.duration is None:
        return BudgetOrigin(name, "")
    return BudgetOrigin(
        name, f", for {format_duration(budget_written.duration)} from each {budget_written.schedule!r} ({zone})"
    )


def next_renewal(declared: Declared, after: datetime) -> datetime | None:
    """The first instant after this one at which budgets are compiled again; None where none are in local time.

    The present budgets stay right for at least another month, so a missed instant does no harm.
    """
    from reconciler.timetable.compiled_budgets import next_form

    if not any(written_in(item.manifest) for item in declared.manifests if item.ref.kind == NODE_POOL.name):
        return None
    return next_form(after)


def written_in(manifest: Manifest) -> LocalBudgets | None:
    """A NodePool's budgets in local time and its allow-windows; None if Karpenter gets the document as written."""
    annotations = mapping_at(manifest, "metadata", "annotations")
    zone, text = annotations.get(TIME_ZONE), annotations.get(ALLOW_WINDOWS)
    disruption = mapping_at(manifest, "spec", "disruption")
    if (zone is None and text is None) or (is_partial(manifest) and "budgets" not in disruption):
        return None
    budgets = budgets_of(disruption["budgets"]) if "budgets" in disruption else _DEFAULT
    windows = () if text is None else allow_windows_of(text)
    if not windows and not any(budget.schedule for budget in budgets):
        return None
    return LocalBudgets(budgets, windows, "UTC" if zone is None else str(zone))


def check_local_budgets(inspection: Inspection) -> None:
    """Reports malformed windows, and annotations about budgets that have no effect."""
    annotations = mapping_at(inspection.body, "metadata", "annotations")
    named = [name for name in (ALLOW_WINDOWS, TIME_ZONE) if name in annotations]
    if not named or inspection.ref.kind != NODE_POOL.name:
        return
    is_told = any(finding.code == codes.INVALID_ANNOTATION.name for finding in inspection.findings)
    if is_told or not all(isinstance(annotations[name], str) for name in named):
        return
    text = annotations.get(ALLOW_WINDOWS)
    if text is not None:
        try:
            allow_windows_of(str(text))
        except Invalid as error:
            path = ("metadata", "annotations", ALLOW_WINDOWS)
            inspection.report(codes.INVALID_ANNOTATION, path, error.message, hint=error.hint)
            return
    written = written_in(inspection.body)
    if written is None:
        _without_effect(inspection, named[0])
    elif _hits_a_day(written) > _MANY:
        _check_count(inspection, written, named[0])


def _without_effect(inspection: Inspection, name: str) -> None:
    if is_partial(inspection.body) and "budgets" not in mapping_at(inspection.body, "spec", "disruption"):
        message = f"{name} has no effect on a partial NodePool without budgets"
        hint = "write spec.disruption.budgets too: the windows are applied as budgets, and the list is applied whole"
    else:
        message = f"{name} has no effect: no budget has a schedule, and there are no {ALLOW_WINDOWS}"
        hint = "remove it, or give a budget schedule and duration"
    inspection.report(codes.ANNOTATION_WITHOUT_EFFECT, ("metadata", "annotations", name), message, hint=hint)


def _check_count(inspection: Inspection, written: LocalBudgets, name: str) -> None:
    """Reports too many compiled budgets on any day of the year: a pool accepted today must not fail when clocks change."""
    from reconciler.timetable.compiled_budgets import compiled

    for month in _REFERENCE_MONTHS:
        try:
            compiled(written, datetime(2026, month, 1, tzinfo=UTC))
        except Invalid as error:
            path = ("metadata", "annotations", name)
            inspection.report(codes.TOO_MANY_BUDGETS, path, error.message, hint=error.hint)
            return


def _hits_a_day(written: LocalBudgets) -> int:
    hits = 0
    schedules = [item.schedule for item in written.budgets] + [item.schedule for item in written.allow_windows]
    for schedule in schedules:
        try:
            cron = parse_cron(schedule or "")
        except Invalid:
            continue
        hits += len(cron.hours) * len(cron.minutes)
    return hits


def _with_budgets(manifest: Manifest, budgets: tuple[DisruptionBudget, ...]) -> Manifest:
    spec = mapping_at(manifest, "spec")
    disruption = {**mapping_at(spec, "disruption"), "budgets": [budget_manifest(budget) for budget in budgets]}
    if not is_partial(manifest):
        disruption.setdefault("consolidateAfter", "0s")
    return {**manifest, "spec": {**spec, "disruption": disruption}}


def budget_manifest(budget: DisruptionBudget) -> Mapping[str, Any]:
    """The budget as it is written in a NodePool's document."""
    body: dict[str, Any] = {"nodes": budget.nodes}
    if budget.reasons is not None:
        body["reasons"] = list(budget.reasons)
    if budget.schedule is not None:
        body["schedule"] = budget.schedule
    if budget.duration is not None:
        body["duration"] = format_duration(budget.duration)
    return body

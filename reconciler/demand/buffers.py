"""Buffers as demands: how many chunks of which shape each asks for, and whether it is ready."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import groupby

from reconciler.demand.draft import Context, Draft, draft, is_dedicated_minimum
from reconciler.demand.fulfilment import FULFILMENT_ANNOTATION, Keeping, Situation, asked_for, keeping
from reconciler.demand.kept_sizes import RunningShares, is_suspended, kept_size, once, suspended
from reconciler.demand.resolve import (
    READY,
    RESOLUTION_FAILED,
    RESOLVED,
    SHOWN_IN_FULL,
    LivePods,
    chunks_in_words,
    virtual_pod,
    workload_index,
)
from reconciler.demand.size import (
    Allowance,
    declared_priority,
    difference_of_shapes,
    pod_priority,
    within_quotas,
    without,
)
from reconciler.model import codes
from reconciler.model.buffers import (
    MOST_CHUNKS,
    ONE_SHOTS_KEY,
    SHRINK_AFTER,
    TOO_MANY_CHUNKS,
    TOO_MANY_HINT,
    Buffer,
    Dialect,
    Fulfilment,
    OneShot,
    Recreation,
    balloon_of,
    balloon_ref,
    standing_balloons,
    waiting_balloons,
)
from reconciler.model.conditions import Condition, ConditionStatus
from reconciler.model.declared import Declared
from reconciler.model.demand import NO_PRIORITY_CLASS, NOT_CREATED_YET, ChunkGroup, Demand
from reconciler.model.findings import Code, Finding
from reconciler.model.marks import PERCENT_OF_ANNOTATION, SERVES_REQUESTS_ANNOTATION
from reconciler.model.nodes import InstanceType
from reconciler.model.pods import PriorityClass
from reconciler.model.quantity import PODS
from reconciler.model.refs import ObjectRef, by_key
from reconciler.model.remembered import PassCache, remembered
from reconciler.model.view import ClusterView

_OF_ITS_TARGET = frozenset(
    {
        *(codes.TARGET_NOT_FOUND, codes.TARGET_WITHOUT_PODS, codes.RESOURCE_CLAIMS),
        *(codes.TARGET_IN_WRONG_GROUP, codes.TARGET_IN_ANOTHER_GROUP),
    }
)
_OF_ITS_GROUP = frozenset({codes.TARGET_IN_WRONG_GROUP, codes.TARGET_IN_ANOTHER_GROUP})
LIMITED = "LimitedByQuotas"
_FOUND_BY_MANIFESTS = frozenset(
    {
        codes.TEMPLATE_AND_SCALABLE,
        codes.BUFFER_WITHOUT_REFERENCE,
        codes.UNKNOWN_STRATEGY,
        codes.CHUNK_TOO_LARGE,
        codes.INVALID_ANNOTATION,
    }
)
_FOUND_BY_SCHEDULES = frozenset({codes.SCHEDULE_NOT_FOUND})
_SIZE_HINTS: Mapping[Code, str] = {
    codes.CHUNK_TOO_LARGE: "make the chunk smaller or the limits larger",
    codes.LIMITS_MATCH_NOTHING: "limit a resource that the pods request, such as cpu or memory",
    codes.SIZE_NOT_KNOWN: "add replicas or limits",
}


def field_of(buffer: Buffer, code: Code) -> str:
    """Its path; "" for the whole buffer."""
    proposed = buffer.ref.kind == "Buffer"
    if code in _OF_ITS_TARGET:
        if buffer.pod_template is not None:
            return "spec.podTemplateRef.name"
        return f"spec.{'targetRef' if proposed else 'scalableRef'}.{'apiGroup' if code in _OF_ITS_GROUP else 'name'}"
    if code in {codes.BUFFER_TOO_LARGE, codes.PERCENTAGE_IGNORED}:
        by_percentage = buffer.percentage is not None and (buffer.replicas is None or code == codes.PERCENTAGE_IGNORED)
        return "spec.capacity" if proposed else f"spec.{'percentage' if by_percentage else 'replicas'}"
    if code == codes.INVALID_ANNOTATION:
        return f"metadata.annotations['{PERCENT_OF_ANNOTATION}']"
    if code == codes.LIMITS_MATCH_NOTHING or (code == codes.CHUNK_TOO_LARGE and buffer.limits is not None):
        return "spec.limits"
    return "spec" if code == codes.SIZE_NOT_KNOWN else ""


def buffer_demands(
    declared: Declared,
    view: ClusterView,
    *,
    dialect: Dialect,
    instance_types: Sequence[InstanceType] = (),
    now: datetime | None = None,
    shrink_after: timedelta = SHRINK_AFTER,
    cache: PassCache | None = None,
) -> tuple[tuple[Demand, ...], tuple[Finding, ...]]:
    """A demand for every buffer, sorted by namespace, name and kind, and what is wrong with any of them.

    declared: the repository merged over the cluster. instance_types: what a chunk without a size of its own must fit.
    now: by the cluster's clock; None to ignore how old a status is, and which sizes a share of running pods had before.
    cache: of the pass before. A buffer that is not ready has `desired` None, and its condition says why.
    """
    cache = cache or PassCache()
    cache.begin()
    context = Context(
        declared,
        view,
        workload_index(declared.workloads, view.workloads),
        LivePods(view.pods),
        RunningShares(view, declared.node_pools, cache, now, shrink_after),
        cache,
        instance_types,
    )
    buffers = sorted(declared.buffers, key=lambda item: (item.ref.namespace, item.ref.name, item.ref.kind))
    drafts = [draft(buffer, context) for buffer in buffers]
    allowances = _allowances(drafts, view)
    balloons, waiting = standing_balloons(view.pods), waiting_balloons(view.pods)
    one_shots = remembered(view.inventory.records, ONE_SHOTS_KEY, OneShot)
    demands: list[Demand] = []
    findings: list[Finding] = []
    for item in drafts:
        ref = item.buffer.ref
        answers = _answers(item, allowances.get(ref))
        live = view.objects.get(ref)
        stays = is_suspended(item.buffer, live)
        if stays and item.unresolved is None:
            answers = dict.fromkeys(Dialect, Allowance(kept_size(live, view)))
        pods, count = balloon_ref(ref), answers[dialect].count
        kept = keeping(Situation(item.buffer, live, now, balloons[pods], waiting.get(pods, ()), count))
        asked = (item, answers, kept, dialect, declared.priority_classes)
        demand, its_findings = cache.once(("demand", ref), _demand_and_findings, *asked)
        demand = once(demand, item.buffer, "" if live is None else live.uid, one_shots, now)
        demands.append(suspended(demand, view) if stays else demand)
        findings += its_findings
    return tuple(demands), tuple(findings)


def _demand_and_findings(
    item: Draft,
    answers: Mapping[Dialect, Allowance],
    kept: Keeping,
    dialect: Dialect,
    classes: tuple[PriorityClass, ...],
) -> tuple[Demand, list[Finding]]:
    findings = [*_findings(item, answers, dialect), *_findings_of_keeping(item.buffer, kept)]
    return _kept(_demand(item, answers[dialect], dialect, classes), item, kept), findings


def _allowances(drafts: Sequence[Draft], view: ClusterView) -> dict[ObjectRef, Allowance]:
    """What quotas leave of each buffer. As in Cluster Autoscaler, a namespace's oldest buffer is counted first.

    A buffer's own balloon pods are what it asks for, and so are not taken off a second time as pods that run.
    """
    by_namespace = by_key((item.buffer.ref.namespace, item) for item in drafts)
    allowances: dict[ObjectRef, Allowance] = {}
    for namespace, quotas in groupby(view.resource_quotas, key=lambda quota: quota.namespace):
        asking = [
            (item.buffer.ref, ChunkGroup(shape, count))
            for item in sorted(by_namespace.get(namespace, ()), key=_age)
            if (shape := item.shapes.get(Dialect.CLUSTER_AUTOSCALER)) is not None
            and (count := item.sizes[Dialect.CLUSTER_AUTOSCALER].count) is not None
        ]
        deployments = {balloon_ref(ref) for ref, _ in asking}
        balloon_shapes = [pod.shape for pod in view.pods if balloon_of(pod) in deployments]
        answers, _ = within_quotas(
            (chunks for _, chunks in asking), [without(quota, balloon_shapes) for quota in quotas], pods=False
        )
        allowances |= {ref: answer for (ref, _), answer in zip(asking, answers, strict=True)}
    return allowances


def _age(item: Draft) -> tuple[str, str, str]:
    return (item.buffer.created or NOT_CREATED_YET, item.buffer.ref.name, item.buffer.ref.kind)


def _answers(item: Draft, allowance: Allowance | None) -> Mapping[Dialect, Allowance]:
    """The size in each dialect. Only Cluster Autoscaler's is cut by quotas."""
    sizes = {kind: Allowance(item.sizes[kind].count if kind in item.sizes else None) for kind in Dialect}
    return sizes if allowance is None else {**sizes, Dialect.CLUSTER_AUTOSCALER: allowance}


def _demand(item: Draft, answer: Allowance, dialect: Dialect, classes: tuple[PriorityClass, ...]) -> Demand:
    """The buffer's size and rules, whoever keeps it; without its chunks."""
    buffer, size, shape = item.buffer, item.sizes.get(dialect), item.shapes.get(dialect)
    explanation = (*(size.facts if size is not None else ()), *item.facts)
    if answer.quotas:
        explanation = (*explanation, f"{answer.count:,} within ResourceQuota {', '.join(answer.quotas)}")
    return Demand(
        ref=buffer.ref,
        desired=answer.count,
        source=buffer.position,
        priority=NO_PRIORITY_CLASS if shape is None else pod_priority(shape, classes, without_class=NO_PRIORITY_CLASS),
        declared_priority=declared_priority(buffer.annotations),
        created=buffer.created,
        serves_requests=(SERVES_REQUESTS_ANNOTATION, "false") not in buffer.annotations,
        recreation=Recreation.KEEP_EMPTY if is_dedicated_minimum(buffer) else buffer.recreation,
        conditions=_conditions(item, answer, dialect),
        explanation=explanation,
        pod_template=item.pod_template,
        filled=0 if size is None else size.filled,
        shape=None if shape is None else virtual_pod(shape, buffer),
        share=None if item.share is None else item.share.record,
        shrinks_at=None if item.share is None else item.share.shrinks_at,
    )


def _kept(demand: Demand, item: Draft, kept: Keeping) -> Demand:
    """Adds who keeps the buffer, and its chunks if they take room. Of a buffer that an autoscaler keeps, the status has the size."""
    native = kept.fulfilment is Fulfilment.NATIVE
    if native and kept.autoscaler is not None and demand.desired is not None:
        demand = replace(
            demand, desired=demand.desired if kept.autoscaler.replicas is None else kept.autoscaler.replicas
        )
    groups: tuple[ChunkGroup, ...] = ()
    count = max(0, (demand.desired or 0) - kept.balloons - len(kept.waiting_balloons))
    if kept.is_placed and demand.shape is not None and count:
        groups = (ChunkGroup(demand.shape, min(count, MOST_CHUNKS)),)
    # Conditions that the autoscaler writes stay; headroom adds none of the same type.
    types = kept.autoscaler.conditions if native and kept.autoscaler is not None else frozenset[str]()
    theirs = tuple(each for each in item.buffer.status_conditions if each.type in types)
    ours = tuple(each for each in demand.conditions if each.type not in types) if kept.holds_nodes or not native else ()
    said = () if kept.condition is None else (kept.condition,)
    return replace(
        demand,
        groups=groups,
        opens_nodes=kept.opens_nodes,
        holds_nodes=kept.holds_nodes,
        conditions=(*theirs, *ours, *said),
        explanation=(*demand.explanation, *(each.message for each in said)),
        fulfilment=kept.fulfilment,
        autoscaler=kept.autoscaler,
        silent=kept.silent,
        balloons=kept.balloons,
        waiting_balloons=kept.waiting_balloons,
    )


def _conditions(item: Draft, answer: Allowance, dialect: Dialect) -> tuple[Condition, ...]:
    if item.unresolved is not None:
        return (Condition(READY, ConditionStatus.FALSE, item.unresolved.reason, item.unresolved.message),)
    if answer.count is None:
        problem = item.sizes[dialect].problem
        return (Condition(READY, ConditionStatus.FALSE, RESOLUTION_FAILED, "" if problem is None else problem[1]),)
    ready = Condition(READY, ConditionStatus.TRUE, RESOLVED, _size_in_words(answer.count))
    if not answer.compared:
        return (ready,)
    if not answer.quotas:
        return (ready, Condition(LIMITED, ConditionStatus.FALSE, "WithinQuotas"))
    asked = item.sizes[dialect].count
    message = f"{answer.count:,} of {asked:,} chunks are within ResourceQuota {', '.join(answer.quotas)}"
    return (ready, Condition(LIMITED, ConditionStatus.TRUE, LIMITED, message))


def _findings(item: Draft, answers: Mapping[Dialect, Allowance], dialect: Dialect) -> list[Finding]:
    buffer, count = item.buffer, answers[dialect].count
    if item.unresolved is not None:
        problem = item.unresolved
        # Of documents in the repository the same was found when they were read, with line and column.
        found_before = _FOUND_BY_SCHEDULES if buffer.position is None else _FOUND_BY_SCHEDULES | _FOUND_BY_MANIFESTS
        is_new = problem.code not in found_before
        return [_finding(buffer, problem.code, f"not ready: {problem.message}", problem.hint)] if is_new else []
    if count is not None and count > MOST_CHUNKS:
        asked = f"{count:,}" if count < SHOWN_IN_FULL else "more than a quadrillion"
        message = f"{asked} {TOO_MANY_CHUNKS}; at most {MOST_CHUNKS:,} are tried"
        return [_finding(buffer, codes.BUFFER_TOO_LARGE, message, TOO_MANY_HINT)]
    findings: list[Finding] = []
    trouble = item.sizes[dialect].problem
    if trouble is not None:
        findings.append(_finding(buffer, trouble[0], trouble[1], _SIZE_HINTS.get(trouble[0], "")))
    if buffer.percentage is not None and buffer.pod_template is not None and item.share is None:
        message = "a PodTemplate has no replicas to take a percentage of: the percentage is ignored"
        hint = f"use replicas, a scalableRef, or {PERCENT_OF_ANNOTATION} for a share of running pods"
        findings.append(_finding(buffer, codes.PERCENTAGE_IGNORED, message, hint))
    if count and dialect in item.shapes and item.shapes[dialect].requests.names() == (PODS,):
        message = "its pods request nothing: it is full wherever a node takes one more pod, whatever else runs there"
        hint = "write requests into the template; defaults of a LimitRange are not read"
        findings.append(_finding(buffer, codes.CHUNK_TOO_SMALL, message, hint))
    findings += [_finding(buffer, note.code, note.message, note.hint, note.field) for note in item.notes]
    findings += _dialects_differ(item, answers, dialect)
    return findings


def _dialects_differ(item: Draft, answers: Mapping[Dialect, Allowance], dialect: Dialect) -> list[Finding]:
    other = next(kind for kind in Dialect if kind is not dialect)
    parts = []
    sizes = [_size_in_words(answers[kind].count) for kind in (dialect, other)]
    if answers[dialect].count != answers[other].count:
        parts.append(f"{dialect.spoken} reads this buffer as {sizes[0]}, {other.spoken} as {sizes[1]}")
    shapes = difference_of_shapes(item.shapes, dialect, pod=item.live_pod)
    if shapes:
        parts.append(shapes)
    hint = f"--dialect {other} gives the other reading"
    # A live pod that asks for more than a chunk may not fit where a chunk does.
    fits = not shapes or item.shapes[Dialect.CLUSTER_AUTOSCALER].requests.fits(item.shapes[dialect].requests)
    code = codes.DIALECTS_DIFFER if fits else codes.CHUNK_TOO_SMALL
    return [_finding(item.buffer, code, "; ".join(parts), hint)] if parts else []


def _findings_of_keeping(buffer: Buffer, kept: Keeping) -> list[Finding]:
    """An autoscaler serves the buffer, which did not ask for that."""
    if kept.autoscaler is None or asked_for(buffer) is Fulfilment.NATIVE:
        return []
    name = kept.autoscaler.name
    if kept.fulfilment is Fulfilment.NATIVE:
        message = f"{name} serves this buffer, so headroom leaves it to {name}"
        hint = f"annotate it {FULFILMENT_ANNOTATION}: {Fulfilment.NATIVE} to say so, or switch buffers off in {name}"
        return [_finding(buffer, codes.STATUS_OF_ANOTHER, message, hint)]
    message = f"{name} serves this buffer too, whatever its fulfilment: both keep its capacity"
    hint = f"switch buffers off in {name}, declare a Buffer instead, which it does not know, or leave it to {name}"
    return [_finding(buffer, codes.SERVED_TWICE, message, hint)]


def _size_in_words(count: int | None) -> str:
    return "not ready" if count is None else chunks_in_words(count)


def _finding(buffer: Buffer, code: Code, message: str, hint: str, field: str = "") -> Finding:
    path = field or field_of(buffer, code)
    return code.finding(message, buffer.position, buffer.ref, path, hint)

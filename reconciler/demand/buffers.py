"""Buffers as demands: how many chunks of which shape each asks for, and whether it is ready."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from reconciler.demand import codes
from reconciler.demand.chunk import virtual_pod
from reconciler.demand.dialect import Dialect
from reconciler.demand.draft import Context, Draft, draft, is_dedicated_minimum
from reconciler.demand.priorities import Priorities, declared_priority
from reconciler.demand.quota import Allowance, Request, within_quotas
from reconciler.demand.resolve import RESOLUTION_FAILED, RESOLVED, workload_index
from reconciler.model.buffers import Buffer, Fulfilment, Recreation
from reconciler.model.conditions import Condition, ConditionStatus
from reconciler.model.declared import Declared
from reconciler.model.demand import ChunkGroup, Demand
from reconciler.model.findings import Code, Finding
from reconciler.model.marks import SUSPEND_ANNOTATION
from reconciler.model.nodes import InstanceType
from reconciler.model.precedence import NO_PRIORITY_CLASS
from reconciler.model.refs import ObjectRef
from reconciler.model.view import ClusterView

READY = "ReadyForProvisioning"
PROVISIONING = "Provisioning"
LIMITED = "LimitedByQuotas"
SUSPENDED = "Suspended"
FULFILMENT_ANNOTATION = "headroom.dev/fulfilment"
NOT_CREATED_YET = "9999"
"""Sorts after every creation time: a buffer that is only in Git is the youngest."""
_FOUND_BY_MANIFESTS = frozenset(
    {codes.TEMPLATE_AND_SCALABLE, codes.BUFFER_WITHOUT_REFERENCE, codes.UNKNOWN_STRATEGY, codes.CHUNK_TOO_LARGE},
)
_FOUND_BY_SCHEDULES = frozenset({codes.SCHEDULE_NOT_FOUND})


@dataclass(frozen=True, slots=True)
class _Answer:
    """The size of a draft in the dialect asked for. other: the count in the other dialect."""

    count: int | None
    quotas: tuple[str, ...]
    other: int | None


def buffer_demands(
    declared: Declared,
    view: ClusterView,
    *,
    dialect: Dialect,
    instance_types: Sequence[InstanceType] = (),
) -> tuple[tuple[Demand, ...], tuple[Finding, ...]]:
    """A demand for every buffer, sorted by namespace, name and kind, and what is wrong with any of them.

    declared: the repository merged over the cluster. instance_types: what a chunk without a size of its own must fit.
    A buffer that is not ready has `desired` None, and its condition says why.
    """
    context = Context(
        workloads=workload_index(declared.workloads, view.workloads),
        pods=view.pods,
        node_pools=declared.node_pools,
        instance_types=instance_types,
        runtime_classes=view.runtime_classes,
    )
    buffers = sorted(declared.buffers, key=lambda item: (item.ref.namespace, item.ref.name, item.ref.kind))
    drafts = [draft(buffer, context) for buffer in buffers]
    allowances = _allowances(drafts, view)
    priorities = Priorities(declared.priority_classes, without_class=NO_PRIORITY_CLASS)  # chunks yield to every pod
    demands: list[Demand] = []
    findings: list[Finding] = []
    for item in drafts:
        answer = _answer(item, allowances.get(item.buffer.ref), dialect)
        suspended = _is_suspended(item.buffer, view)
        demands.append(_demand(item, answer, dialect, priorities, suspended=suspended))
        findings += _findings(item, answer, dialect)
    return tuple(demands), tuple(findings)


MOST_CHUNKS = 150_000
"""Pods in the largest cluster that Kubernetes supports (kubernetes.io, Considerations for large clusters).

No more chunks of one buffer are placed, so that a mistyped number cannot hold up every pass."""
_SHOWN_IN_FULL = 10**15


def _allowances(drafts: Sequence[Draft], view: ClusterView) -> dict[ObjectRef, Allowance]:
    """What quotas leave of each buffer. As in Cluster Autoscaler, a namespace's oldest buffer is counted first."""
    by_namespace: dict[str, list[Draft]] = {}
    for item in drafts:
        by_namespace.setdefault(item.buffer.ref.namespace, []).append(item)
    allowances: dict[ObjectRef, Allowance] = {}
    for namespace, quotas in groupby(view.resource_quotas, key=lambda quota: quota.namespace):
        asking = [
            (item.buffer, Request(item.shape, count))
            for item in sorted(by_namespace.get(namespace, ()), key=_age)
            if item.shape is not None and (count := item.sizes[Dialect.CLUSTER_AUTOSCALER].count) is not None
        ]
        answers = within_quotas((request for _, request in asking), tuple(quotas))
        allowances |= {buffer.ref: answer for (buffer, _), answer in zip(asking, answers, strict=True)}
    return allowances


def _age(item: Draft) -> tuple[str, str, str]:
    return (item.buffer.created or NOT_CREATED_YET, item.buffer.ref.name, item.buffer.ref.kind)


def _answer(item: Draft, allowance: Allowance | None, dialect: Dialect) -> _Answer:
    counts = {kind: size.count for kind, size in item.sizes.items()}
    if allowance is not None:
        counts[Dialect.CLUSTER_AUTOSCALER] = allowance.count
    other = next(kind for kind in Dialect if kind is not dialect)
    limiting = allowance.quotas if allowance is not None and dialect is Dialect.CLUSTER_AUTOSCALER else ()
    return _Answer(counts.get(dialect), limiting, counts.get(other))


def _fulfilment(buffer: Buffer) -> Fulfilment:
    """As annotated. An unknown value is reported by validation and means a placeholder."""
    written = buffer.annotation(FULFILMENT_ANNOTATION)
    return next((kind for kind in Fulfilment if kind.value == written), Fulfilment.PLACEHOLDER)


def _is_suspended(buffer: Buffer, view: ClusterView) -> bool:
    """Whether the annotation is in Git, or on the object in the cluster."""
    live = view.objects.get(buffer.ref)
    annotations = {} if live is None else live.body.get("metadata", {}).get("annotations") or {}
    return "true" in {buffer.annotation(SUSPEND_ANNOTATION), annotations.get(SUSPEND_ANNOTATION)}


def _stands_down(buffer: Buffer) -> bool:
    return buffer.status_manager is not None and _fulfilment(buffer) is not Fulfilment.NATIVE


def _demand(
    item: Draft,
    answer: _Answer,
    dialect: Dialect,
    priorities: Priorities,
    *,
    suspended: bool,
) -> Demand:
    buffer, size = item.buffer, item.sizes.get(dialect)
    if _stands_down(buffer):
        message = f"{buffer.status_manager} writes its status, so headroom stands down"
        condition = Condition(READY, ConditionStatus.FALSE, "StatusOfAnother", message)
        return Demand(
            ref=buffer.ref,
            source=buffer.position,
            opens_nodes=False,
            conditions=(condition,),
            explanation=(message,),
            fulfilment=Fulfilment.NATIVE,
        )
    fulfilment = _fulfilment(buffer)
    explanation = (*(size.facts if size is not None else ()), *item.facts)
    if answer.quotas:
        explanation = (*explanation, f"{answer.count:,} within ResourceQuota {', '.join(answer.quotas)}")
    demand = Demand(
        ref=buffer.ref,
        desired=answer.count,
        source=buffer.position,
        priority=NO_PRIORITY_CLASS if item.shape is None else priorities.of(item.shape),
        declared_priority=declared_priority(buffer.annotations),
        created=buffer.created,
        recreation=Recreation.KEEP_EMPTY if is_dedicated_minimum(buffer) else buffer.recreation,
        conditions=_conditions(item, answer, dialect),
        explanation=explanation,
        pod_template=item.pod_template,
        fulfilment=fulfilment,
        limited_by=", ".join(answer.quotas),
    )
    if fulfilment is not Fulfilment.PLACEHOLDER:
        return _left_to_others(demand, buffer, fulfilment)
    if item.shape is not None and answer.count:
        placed = min(answer.count, MOST_CHUNKS)
        demand = replace(demand, groups=(ChunkGroup(virtual_pod(item.shape, buffer), placed),))
    if suspended:
        message = f"{SUSPEND_ANNOTATION}: it keeps what it holds, and no node is created for it"
        condition = Condition(SUSPENDED, ConditionStatus.TRUE, SUSPENDED, message)
        demand = replace(
            demand,
            opens_nodes=False,
            conditions=(*demand.conditions, condition),
            explanation=(*demand.explanation, message),
        )
    return demand


def _left_to_others(demand: Demand, buffer: Buffer, fulfilment: Fulfilment) -> Demand:
    """Its size is reported, but no chunk of it is placed: somebody else keeps the capacity, or nobody yet."""
    if fulfilment is Fulfilment.BALLOON:
        message = "it asks for balloon pods, which headroom does not create: no capacity is kept for it"
        shown = (*demand.conditions, Condition(PROVISIONING, ConditionStatus.FALSE, "FulfilledByBalloon", message))
    elif buffer.status_conditions:
        message = "left to the autoscaler, whose conditions these are"
        shown = buffer.status_conditions
    else:
        message = "left to the autoscaler, which has not picked it up yet"
        shown = (Condition(READY, ConditionStatus.UNKNOWN, "LeftToAutoscaler", message),)
    return replace(demand, opens_nodes=False, conditions=shown, explanation=(*demand.explanation, message))


def _conditions(item: Draft, answer: _Answer, dialect: Dialect) -> tuple[Condition, ...]:
    if item.unresolved is not None:
        return (Condition(READY, ConditionStatus.FALSE, item.unresolved.reason, item.unresolved.message),)
    if answer.count is None:
        problem = item.sizes[dialect].problem
        return (Condition(READY, ConditionStatus.FALSE, RESOLUTION_FAILED, "" if problem is None else problem[1]),)
    ready = Condition(READY, ConditionStatus.TRUE, RESOLVED, _told(answer.count))
    if dialect is Dialect.KARPENTER:
        return (ready,)
    if not answer.quotas:
        return (ready, Condition(LIMITED, ConditionStatus.FALSE, "WithinQuotas"))
    asked = item.sizes[dialect].count
    message = f"{answer.count:,} of {asked:,} chunks are within ResourceQuota {', '.join(answer.quotas)}"
    return (ready, Condition(LIMITED, ConditionStatus.TRUE, LIMITED, message))


def _findings(item: Draft, answer: _Answer, dialect: Dialect) -> list[Finding]:
    buffer = item.buffer
    found: list[Finding] = []
    if _stands_down(buffer):
        message = f"{buffer.status_manager} writes this buffer's status, so headroom leaves the buffer to it"
        hint = (
            f"annotate it {FULFILMENT_ANNOTATION}: native to say so, or switch buffers off in {buffer.status_manager}"
            " and clear the status"
        )
        return [_finding(buffer, codes.STATUS_OF_ANOTHER, message, hint)]
    if item.unresolved is not None:
        problem = item.unresolved
        # A repository's documents were checked when they were read, with line and column.
        if problem.code in _FOUND_BY_SCHEDULES:
            return found
        if problem.code not in _FOUND_BY_MANIFESTS or buffer.position is None:
            found.append(_finding(buffer, problem.code, f"not ready: {problem.message}", problem.hint))
        return found
    if answer.count is not None and answer.count > MOST_CHUNKS:
        asked = f"{answer.count:,}" if answer.count < _SHOWN_IN_FULL else "more than a quadrillion"
        message = f"{asked} chunks are more than the {MOST_CHUNKS:,} pods that a cluster can have; only {MOST_CHUNKS:,} are placed"
        found.append(_finding(buffer, codes.BUFFER_TOO_LARGE, message, "write the number that was meant"))
        return found
    trouble = item.sizes[dialect].problem
    if trouble is not None:
        found.append(_finding(buffer, trouble[0], trouble[1], _SIZE_HINTS.get(trouble[0], "")))
    if buffer.percentage is not None and buffer.pod_template is not None:
        message = "a PodTemplate has no replicas to take a percentage of: the percentage is ignored"
        found.append(_finding(buffer, codes.PERCENTAGE_IGNORED, message, "use replicas, or a scalableRef"))
    if answer.count != answer.other:
        other = next(kind for kind in Dialect if kind is not dialect)
        message = (
            f"{dialect.spoken} reads this buffer as {_told(answer.count)}, {other.spoken} as {_told(answer.other)}"
        )
        found.append(_finding(buffer, codes.DIALECTS_DIFFER, message, f"--dialect {other} gives the other reading"))
    if _fulfilment(buffer) is Fulfilment.BALLOON:
        message = "headroom creates no balloon pods: no capacity is kept for this buffer"
        hint = f"annotate it {FULFILMENT_ANNOTATION}: {Fulfilment.PLACEHOLDER}, or remove the annotation"
        found.append(_finding(buffer, codes.BALLOON_NOT_MADE, message, hint))
    return found


_SIZE_HINTS: Mapping[Code, str] = {
    codes.LIMITS_MATCH_NOTHING: "limit a resource that the pods request, such as cpu or memory",
    codes.SIZE_NOT_KNOWN: "add replicas or limits",
}


def _told(count: int | None) -> str:
    if count is None:
        return "not ready"
    return f"{count:,} {'chunk' if count == 1 else 'chunks'}" if count < _SHOWN_IN_FULL else "too many chunks"


def _finding(buffer: Buffer, code: Code, message: str, hint: str) -> Finding:
    return Finding(code.name, code.severity, message, buffer.position, buffer.ref, hint=hint)

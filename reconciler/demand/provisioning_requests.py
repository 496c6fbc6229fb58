"""ProvisioningRequests as demands: what each still asks for.

A request is placed as a whole until it is provisioned. Afterwards it is a booking: for a while it keeps the room that its pods have not
used yet, each pod's room on its own. Its pods that exist already are not asked for: those that wait are placed before it, as all pods are.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import chain
from operator import attrgetter

from reconciler.demand.resolve import POD_TEMPLATE, TEMPLATE_NOT_FOUND, workload_index
from reconciler.demand.size import (
    Allowance,
    declared_priority,
    pod_priority,
    within_quotas,
)
from reconciler.model import codes
from reconciler.model.conditions import REMOVAL, Condition, ConditionStatus
from reconciler.model.declared import Declared
from reconciler.model.demand import REQUEST_KIND, ChunkGroup, Demand
from reconciler.model.findings import Code, Finding
from reconciler.model.pods import (
    FINISHED_PHASES,
    Pod,
    PodShape,
    ResourceQuota,
    Workload,
    admitted,
    claims_words,
)
from reconciler.model.provisioning_requests import (
    ACCEPTED,
    BOOKED_FOR,
    CLASS_ANNOTATIONS,
    CONSUME_ANNOTATIONS,
    MOST_RUN,
    NO_RETRY,
    PROVISIONED,
    RESERVED_NODES,
    Phase,
    ProvisioningRequest,
    RequestKind,
    RequestRules,
    RequestState,
    may_come,
    own_taint,
    parameter_problems,
    seconds_of,
    toleration_to_write,
)
from reconciler.model.refs import POD_KIND, ObjectRef, by_key
from reconciler.model.remembered import RequestRecord, read_records
from reconciler.model.view import ClusterView
from reconciler.requests.conditions import LEFT_TO_ANOTHER, accepted_requests, over_quota
from reconciler.requests.life import (
    Consumption,
    attempts_in,
    consumption_of,
    phase_of,
    record_of,
    spec_digest,
    valid_until,
)

NOT_TOLERATED = "TolerationMissing"
_WITH_CHUNKS = frozenset({Phase.WAITING, Phase.BOOKED})


@dataclass(frozen=True, slots=True)
class _Context:
    """What requests are judged by. attempts: number of the last attempt that has a NodeClaim, by uid of the request. queued:
    priorities of Kueue's Workloads, by namespace and name."""

    workloads: Mapping[ObjectRef, Workload]
    declared: Declared
    queued: Mapping[tuple[str, str], int]
    view: ClusterView
    now: datetime
    rules: RequestRules
    records: Mapping[str, RequestRecord]
    attempts: Mapping[str, int]
    consumption: Consumption


def request_demands(
    declared: Declared, view: ClusterView, now: datetime, rules: RequestRules
) -> tuple[tuple[Demand, ...], tuple[Finding, ...]]:
    """A demand for each request of a class that is provided here. The findings are on requests that lack a PodTemplate, were edited after
    they had ended, or said no while their pods wait. Others are on pods that name a request in vain.

    Requests that have ended ask for no chunk.

    declared: the repository merged over the cluster. now: by the cluster's clock.
    """
    of_pods = consumer_findings(declared.provisioning_requests, view)
    if not declared.provisioning_requests:
        return (), of_pods
    context = _Context(
        workloads=workload_index(declared.workloads, view.workloads),
        declared=declared,
        queued={(item.namespace, item.name): item.priority for item in view.queued},
        view=view,
        now=now,
        rules=rules,
        records=read_records(view.inventory.records),
        attempts=attempts_in(view),
        consumption=consumption_of((*view.pods, *view.finished_pods)),
    )
    provided = accepted_requests(declared, rules)
    demands = _within_quotas(tuple(_demand(*accepted, context) for accepted in provided), view.resource_quotas)
    found = (_findings(request, item, context) for (request, _), item in zip(provided, demands, strict=True))
    return demands, (*chain.from_iterable(found), *of_pods)


def _findings(request: ProvisioningRequest, demand: Demand, context: _Context) -> Iterable[Finding]:
    state = demand.request
    record = None if state is None or state.exists else state.record
    # While the object exists, the API server refuses the change.
    if record is not None and record.ended is not None and record.spec != spec_digest(request):
        message = "a request of this name ran with another spec and has ended: it is not run again"
        hint = "a request runs once: give the changed one a new name"
        yield codes.IMMUTABLE_FIELD.finding(message, request.position, request.ref, "spec", hint)
    if any(item.reason == TEMPLATE_NOT_FOUND for item in demand.conditions):
        yield _without_template(request, context)
    if state is not None and _says_no(state):
        yield _before_answer(demand, state)
    for field, ref in _templates(request):
        template = context.workloads.get(ref)
        if template is None or template.shape is None or not template.shape.claims_devices:
            continue
        if request.position is None or template.position is None:  # else it was found when they were read
            message, hint = claims_words(ref)
            yield codes.RESOURCE_CLAIMS.finding(message, request.position, request.ref, field, hint)


def _within_quotas(demands: tuple[Demand, ...], quotas: Sequence[ResourceQuota]) -> tuple[Demand, ...]:
    """Requests whose pods the ResourceQuotas of their namespace would not let be created ask for nothing. Each takes from what those that
    are served before it leave. An attempt that is under way goes on."""
    if not quotas:
        return demands
    left = by_key((quota.namespace, quota) for quota in quotas)
    judged: dict[ObjectRef, Demand] = {}
    for demand in sorted(demands, key=attrgetter("order")):
        there, state = left.get(demand.ref.namespace), demand.request
        if not there or state is None or not demand.groups:
            continue
        allowed, rest = within_quotas(demand.groups, there, pods=True)
        if not any(item.quotas for item in allowed):
            left[demand.ref.namespace] = rest
        elif state.phase is Phase.WAITING and not state.record.under_way:
            judged[demand.ref] = _over_quota(demand, state, allowed)
    return tuple(judged.get(demand.ref, demand) for demand in demands)


def _over_quota(demand: Demand, state: RequestState, allowed: Sequence[Allowance]) -> Demand:
    names = ", ".join(
        f"{demand.ref.namespace}/{name}" for name in sorted({name for item in allowed for name in item.quotas})
    )
    count = sum(group.count for group in demand.groups)
    message = (
        f"ResourceQuota {names} lets {sum(item.count or 0 for item in allowed):,} of its {count:,} pods be created"
    )
    state = replace(state, phase=Phase.NOT_READY)
    return replace(demand, groups=(), desired=None, request=state, conditions=over_quota(state, message))


def _says_no(state: RequestState) -> bool:
    """Whether a check has no room for its pods, and some of them wait all the same."""
    answers = (item.status for item in state.status_conditions if item.type == PROVISIONED)
    said_no = state.record.provisioned is None and ConditionStatus.FALSE in answers
    return state.kind is RequestKind.CHECK and said_no and bool(state.own_pods) and state.phase is not Phase.LEFT


def _before_answer(demand: Demand, state: RequestState) -> Finding:
    """Karpenter heeds no annotation, and headroom cannot stop it."""
    count = len(state.own_pods)
    pods = "1 pod of it waits" if count == 1 else f"{count:,} pods of it wait"
    message = f"the check says no, and {pods}: Karpenter makes nodes for pods that wait, whatever a check says"
    hint = "give the pods a scheduling gate until the request is Provisioned, or let Kueue start them"
    return codes.PODS_BEFORE_ANSWER.finding(message, demand.source, demand.ref, "status.conditions", hint)


def _without_template(request: ProvisioningRequest, context: _Context) -> Finding:
    field, ref = next(item for item in _templates(request) if _shape(item[1], context) is None)
    absence = context.declared.absence_of(ref)
    message = f"not ready: {ref} {absence.words}"
    hint = absence.hint or "a PodTemplate must be in the request's own namespace"
    return codes.TARGET_NOT_FOUND.finding(message, request.position, request.ref, field, hint)


def _demand(request: ProvisioningRequest, refused: Condition | None, context: _Context) -> Demand:
    """refused: why nothing is done for it, as its condition Accepted."""
    kind = request.kind
    assert kind is not None
    if refused is not None and refused.reason == LEFT_TO_ANOTHER:
        left = RequestState(kind, Phase.LEFT, RequestRecord("", ""))
        return Demand(request.ref, source=request.position, conditions=(refused,), request=left)
    shapes = _shapes(request, context)
    state = _state(request, kind, shapes, context)
    demand = Demand(
        ref=request.ref,
        source=request.position,
        desired=state.pods if state.phase is Phase.BACKING_OFF else 0,
        opens_nodes=kind is RequestKind.ATOMIC and state.phase in _WITH_CHUNKS,
        only_ready=kind is RequestKind.CHECK and state.phase is Phase.WAITING,
        whole=state.phase is not Phase.BOOKED,
        priority=_priority(request, shapes, context),
        declared_priority=declared_priority(request.annotations),
        booked=state.phase is Phase.BOOKED,
        created=request.created,
        request=state,
        explanation=tuple(f"{item.count:,} of PodTemplate {item.pod_template}" for item in request.pod_sets),
    )
    if state.phase not in _WITH_CHUNKS:
        return demand
    if isinstance(shapes, str):
        return _not_ready(demand, state, Condition(ACCEPTED, ConditionStatus.FALSE, TEMPLATE_NOT_FOUND, shapes))
    refused = refused or _not_tolerated(request, shapes)
    if refused is not None and state.phase is Phase.WAITING and not state.record.under_way:
        return _not_ready(demand, state, refused)
    used = state.record.consumed if state.phase is Phase.BOOKED else context.consumption.served(request, shapes)
    counts = context.consumption.left(request, shapes, used)
    groups = tuple(ChunkGroup(shape, count) for shape, count in zip(shapes, counts, strict=True))
    return replace(demand, groups=groups, desired=sum(counts))


def _priority(request: ProvisioningRequest, shapes: tuple[PodShape, ...] | str, context: _Context) -> int:
    """That of the Workload for which Kueue has made it, as Kueue orders them; else the least of its pods."""
    queued = context.queued.get((request.ref.namespace, request.queued_as))
    if queued is not None:
        return queued
    classes = context.declared.priority_classes  # of real pods, since real pods will use the room
    return 0 if isinstance(shapes, str) else min(pod_priority(each, classes, without_class=0) for each in shapes)


def _not_ready(demand: Demand, state: RequestState, condition: Condition) -> Demand:
    return replace(demand, desired=None, request=replace(state, phase=Phase.NOT_READY), conditions=(condition,))


def _state(
    request: ProvisioningRequest, kind: RequestKind, shapes: tuple[PodShape, ...] | str, context: _Context
) -> RequestState:
    record = record_of(request, context.records, context.attempts, context.now)
    if record.provisioned is not None and record.ended is None and not isinstance(shapes, str):
        record = context.consumption.counted(record, request, shapes, complete=context.view.complete)
    pods = sum(item.count for item in request.pod_sets)
    served = 0 if isinstance(shapes, str) else sum(context.consumption.served(request, shapes))
    state = RequestState(
        kind,
        Phase.WAITING,
        record,
        exists=bool(request.uid),
        deleting=request.deleting,
        is_same_object=record.uid in {"", request.uid},
        declared=request.position is not None or request.ref in context.view.inventory.members,
        valid_until=valid_until(request, kind, context.rules),
        no_retry=request.parameter(NO_RETRY) == "true",
        status_conditions=tuple(item for item in request.status_conditions if item.type != REMOVAL),
        ignored=tuple(problem.message for problem in parameter_problems(kind, request.parameters)),
        pods=pods,
        served=served,
        own_pods=context.consumption.waiting(request, most=pods - served),
        booked_for=seconds_of(request.parameter(BOOKED_FOR)) or context.rules.booked_for,
        runs_for=seconds_of(request.parameter(MOST_RUN)),
        details=() if (taint := own_taint(request)) is None else ((RESERVED_NODES, taint.value),),
    )
    phase, ends = phase_of(state, context.now, complete=context.view.complete)
    return replace(state, phase=phase, ends=ends)


def _shapes(request: ProvisioningRequest, context: _Context) -> tuple[PodShape, ...] | str:
    """The shape of each pod set, or in words what is missing."""
    shapes: list[PodShape] = []
    taint = own_taint(request)
    for _, ref in _templates(request):
        shape = _shape(ref, context)
        if shape is None:
            return f"{ref} {context.declared.absence_of(ref).words}"
        shape = context.view.storage.keep_bound(admitted(shape, context.view.runtime_classes))
        shapes.append(replace(shape, own_taint=taint))
    return tuple(shapes)


def _templates(request: ProvisioningRequest) -> Iterable[tuple[str, ObjectRef]]:
    """The PodTemplate of each pod set, after the path of its name."""
    for number, item in enumerate(request.pod_sets):
        template = ObjectRef("", POD_TEMPLATE, request.ref.namespace, item.pod_template)
        yield f"spec.podSets[{number}].podTemplateRef", template


def _shape(template: ObjectRef, context: _Context) -> PodShape | None:
    workload = context.workloads.get(template)
    return None if workload is None else workload.shape


def _not_tolerated(request: ProvisioningRequest, shapes: Sequence[PodShape]) -> Condition | None:
    """The refusal if its pods do not tolerate the taint of the nodes that are reserved for them."""
    taint = own_taint(request)
    if taint is None:
        return None
    for item, shape in zip(request.pod_sets, shapes, strict=True):
        if not may_come(shape, taint):
            what = "does not tolerate the taint of nodes that are reserved for this request"
            message = f"PodTemplate {item.pod_template} {what}: add {toleration_to_write(taint)} to it and to the pods"
            return Condition(ACCEPTED, ConditionStatus.FALSE, NOT_TOLERATED, message)
    return None


_Key = tuple[str, str]
_MOST_NAMES = 3
"""How many other requests of the namespace a hint names."""
_LOOKED_AT = frozenset({*CONSUME_ANNOTATIONS, *CLASS_ANNOTATIONS})


@dataclass(frozen=True, slots=True)
class _Problem:
    """What is wrong with a pod, in words that are the same for all pods of its owner."""

    namespace: str
    owner: str
    code: Code
    message: str
    hint: str


def consumer_findings(requests: Iterable[ProvisioningRequest], view: ClusterView) -> tuple[Finding, ...]:
    """One finding for all pods of an owner, about the first by name. requests: of every class, in Git or in the cluster."""
    pods_by_problem: dict[_Problem, list[str]] = {}
    classes: dict[_Key, str] | None = None
    for pod in view.pods:
        if not pod.annotations or pod.deleting or pod.phase in FINISHED_PHASES:
            continue
        if not any(name in _LOOKED_AT for name, _ in pod.annotations):
            continue
        if classes is None:
            classes = {(item.ref.namespace, item.ref.name): item.class_name for item in requests}
        problem = _problem(pod, classes, complete=view.complete)
        if problem is not None:
            pods_by_problem.setdefault(problem, []).append(pod.name)
    return tuple(_finding(problem, sorted(names)) for problem, names in pods_by_problem.items())


def _problem(pod: Pod, classes: dict[_Key, str], *, complete: bool) -> _Problem | None:
    annotations = dict(pod.annotations)
    consume = next((name for name in CONSUME_ANNOTATIONS if annotations.get(name)), "")
    given = next((name for name in CLASS_ANNOTATIONS if annotations.get(name)), "")
    owner = f"{pod.owner_kind}/{pod.owner_name}" if pod.owner_name else f"{POD_KIND}/{pod.name}"
    if not consume and not given:
        return None
    if not consume:
        message = f"{given} has no effect without {CONSUME_ANNOTATIONS[0]}"
        hint = f"add {CONSUME_ANNOTATIONS[0]}: NAME to the pod's template"
        return _Problem(pod.namespace, owner, codes.HALF_CONSUMPTION, message, hint)
    name = annotations[consume]
    class_name = classes.get((pod.namespace, name))
    request = f"{REQUEST_KIND}/{pod.namespace}/{name}"
    if class_name is None and complete and pod.node_name is None and not pod.gated:
        message = f"{consume} names {request}, which does not exist"
        hint = f"correct the name{_others(pod.namespace, classes)}, or create the request"
        return _Problem(pod.namespace, owner, codes.REQUEST_NOT_FOUND, message, hint)
    if not given:
        message = f"{consume} names {request} without {CLASS_ANNOTATIONS[0]} beside it: both are required"
        hint = f"add {CLASS_ANNOTATIONS[0]}: {class_name or 'CLASS'} to the pod's template"
        return _Problem(pod.namespace, owner, codes.HALF_CONSUMPTION, message, hint)
    return None


def _others(namespace: str, classes: Collection[_Key]) -> str:
    names = sorted(name for place, name in classes if place == namespace)
    return f" ({namespace} has {', '.join(names[:_MOST_NAMES])})" if names else ""


def _finding(problem: _Problem, names: list[str]) -> Finding:
    ref = ObjectRef("", POD_KIND, problem.namespace, names[0])
    count = "" if len(names) == 1 else f" ({len(names):,} pods of {problem.owner})"
    return problem.code.finding(problem.message + count, None, ref, "metadata.annotations", problem.hint)

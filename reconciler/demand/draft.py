"""One buffer by itself: its shape, and its size in both dialects, before quotas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from reconciler.demand.kept_sizes import RunningShares, Share, share_asked
from reconciler.demand.node_class import Note, split
from reconciler.demand.resolve import LivePods, Target, Unresolved, resolve
from reconciler.demand.size import Size, limit_count, size_of
from reconciler.model import codes
from reconciler.model.attachments import Storage
from reconciler.model.buffers import ACTIVE_CAPACITY, ONE_SHOT, RECREATE, Buffer, Dialect, PodsOf, Recreation
from reconciler.model.declared import Declared
from reconciler.model.nodes import InstanceType
from reconciler.model.pods import Pod, PodShape, RuntimeClass, Workload, admitted, claims_words
from reconciler.model.quantity import Resources
from reconciler.model.refs import ObjectRef
from reconciler.model.remembered import PassCache
from reconciler.model.view import ClusterView


@dataclass(frozen=True, slots=True)
class Context:
    """What buffers refer to. workloads: the repository's and the cluster's; cache: of the previous pass."""

    declared: Declared
    view: ClusterView
    workloads: Mapping[ObjectRef, Workload]
    live_pods: LivePods
    shares: RunningShares
    cache: PassCache
    instance_types: Sequence[InstanceType] = ()


@dataclass(frozen=True, slots=True)
class Draft:
    """shapes, sizes: by dialect, empty when unresolved, for the reason in `unresolved`. A buffer that sleeps has no shape.

    shapes: of the workload's own pods, before they become those of virtual pods.
    """

    buffer: Buffer
    shapes: Mapping[Dialect, PodShape] = field(default_factory=dict)
    sizes: Mapping[Dialect, Size] = field(default_factory=dict)
    facts: tuple[str, ...] = ()
    unresolved: Unresolved | None = None
    pod_template: tuple[str, int | None] | None = None
    notes: tuple[Note, ...] = ()
    """What the user should know though the buffer is ready."""
    live_pod: str = ""
    """The pod that gave the shape in Cluster Autoscaler's reading; "" where the template did."""
    share: Share | None = None
    """Of a buffer that is a share of running pods."""


def draft(buffer: Buffer, context: Context) -> Draft:
    """Never raises: what is wrong with a buffer is in `unresolved`, or a size's problem."""
    of_pods = share_asked(buffer)
    refused = _refusal(buffer) or (of_pods if isinstance(of_pods, Unresolved) else None)
    if refused is not None:
        return Draft(buffer, unresolved=refused)
    if buffer.dormant:
        return Draft(buffer, sizes=dict.fromkeys(Dialect, Size(0, (f"0: {buffer.dormant}",))))
    if buffer.node_class is not None:
        parts = split(buffer, context.declared.node_pools, context.instance_types, context.declared.absence_of)
        if isinstance(parts, Unresolved):
            return Draft(buffer, unresolved=parts)
        size = _less_what_is_used(buffer, parts.shape, Size(parts.count, parts.facts), context.view.pods)
        return Draft(buffer, dict.fromkeys(Dialect, parts.shape), dict.fromkeys(Dialect, size), notes=parts.notes)
    known = (context.workloads, context.live_pods)
    targets = {dialect: resolve(buffer, *known, dialect, context.declared.absence_of) for dialect in Dialect}
    found = {dialect: target for dialect, target in targets.items() if isinstance(target, Target)}
    for target in targets.values():
        if isinstance(target, Unresolved):
            return Draft(buffer, unresolved=target)
    pods = context.view.pods if is_dedicated_minimum(buffer) else ()
    # A PodTemplate gives the same shape in both dialects.
    chunk = next(iter(found.values())).shape.requests
    share = context.shares.of(buffer, of_pods, chunk) if isinstance(of_pods, PodsOf) else None
    has_claims = any(target.shape.volume_claims for target in found.values())
    storage = context.view.storage if has_claims else None
    asked = (buffer, found, pods, context.view.runtime_classes, storage, share)
    return context.cache.once(("draft", buffer.ref), _of_targets, *asked)


def _of_targets(
    buffer: Buffer,
    targets: Mapping[Dialect, Target],
    pods: tuple[Pod, ...],
    runtime_classes: tuple[RuntimeClass, ...],
    storage: Storage | None,
    share: Share | None,
) -> Draft:
    """pods: those that may be the buffer's own. storage: None where no template names claims."""
    sizes = {}
    of_pods = None if share is None else (share.count, share.facts)
    for dialect, target in targets.items():
        size = size_of(buffer, target.shape.requests, target.base(dialect), dialect, of_pods)
        left = _less_what_is_used(buffer, target.shape, size, pods)
        sizes[dialect] = replace(left, facts=(*left.facts, *target.facts))
    either = next(iter(targets.values()))
    manager = None if either.workload is None else either.workload.replicas_manager
    facts = (f"the replicas of {either.words} are set by {manager}",) if manager and buffer.percentage else ()
    # Like both autoscalers, sizes follow the template as written; placement needs the RuntimeClass overhead too.
    shapes = {dialect: admitted(target.shape, runtime_classes) for dialect, target in targets.items()}
    if storage is not None:
        shapes = {dialect: storage.keep_bound(shape) for dialect, shape in shapes.items()}
    pod = targets[Dialect.CLUSTER_AUTOSCALER].pod
    notes = () if share is None else share.notes
    is_declared = buffer.position is not None and (either.workload is None or either.workload.position is not None)
    if not is_declared and any(shape.claims_devices for shape in shapes.values()):
        notes = (*notes, Note(codes.RESOURCE_CLAIMS, *claims_words(either.words)))
    return Draft(
        buffer,
        shapes,
        sizes,
        facts,
        pod_template=either.pod_template,
        notes=notes,
        live_pod="" if pod is None else pod.name,
        share=share,
    )


def _refusal(buffer: Buffer) -> Unresolved | None:
    reference = "scalableRef to follow a workload, or podTemplateRef for a shape of its own"
    if buffer.waits_for:
        message = f"its size is not known: {buffer.waits_for}"
        declare = "declare a MetricsProducer of that name, or correct the annotation"
        return Unresolved(message, codes.SCHEDULE_NOT_FOUND, declare)
    if buffer.strategy != ACTIVE_CAPACITY:
        message = f"strategy {buffer.strategy} is not supported"
        return Unresolved(message, codes.UNKNOWN_STRATEGY, f"remove the field, or write {ACTIVE_CAPACITY}")
    if buffer.refill not in {RECREATE, ONE_SHOT}:
        message = f"refill strategy {buffer.refill} is not supported"
        return Unresolved(message, codes.UNKNOWN_STRATEGY, f"remove the field, or write {RECREATE} or {ONE_SHOT}")
    if buffer.pod_template is not None and buffer.target is not None:
        return Unresolved(
            "it has both podTemplateRef and scalableRef", codes.TEMPLATE_AND_SCALABLE, f"keep {reference}"
        )
    if not (buffer.pod_template or buffer.target or buffer.pod_shape or buffer.node_class):
        message = "it has neither podTemplateRef nor scalableRef"
        return Unresolved(message, codes.BUFFER_WITHOUT_REFERENCE, f"add {reference}")
    return None


def is_dedicated_minimum(buffer: Buffer) -> bool:
    """KeepMinimum with a pod selector (Buffers API proposal, appendix): what those pods use counts as filled."""
    return buffer.recreation is Recreation.KEEP_MINIMUM and buffer.pod_selector is not None


def _less_what_is_used(buffer: Buffer, shape: PodShape, size: Size, pods: Sequence[Pod]) -> Size:
    """Takes off the whole chunks that the dedicated buffer's own pods already fill."""
    selector = buffer.pod_selector
    if not is_dedicated_minimum(buffer) or selector is None or size.count is None:
        return size
    used = Resources.total(
        pod.shape.requests
        for pod in pods
        if pod.namespace == buffer.ref.namespace
        and pod.node_name is not None
        and not pod.deleting
        and selector.matches(dict(pod.shape.labels))
    )
    filled = limit_count(shape.requests, ((name, used.get(name)) for name in shape.requests.names())) or 0
    if not filled:
        return size
    left = max(0, size.count - filled)
    return replace(
        size,
        count=left,
        filled=size.count - left,
        facts=(*size.facts, f"its own pods fill {filled:,}: {left:,} left"),
    )

"""Whether a buffer's capacity is there, whoever keeps it; and the balloon pods that keep it for an autoscaler.

The reasons of conditions are Karpenter's (controllers/provisioning/buffers.go). Unlike there, chunks on a node that is still on its way are
not capacity that fits. The condition becomes true when the capacity is there.

An object says since when its buffer lacks capacity, so that a restart does not make an old shortage look new. An autoscaler that looks for
room too must find the room that headroom holds, or it would make that room a second time.

The Deployment is treated as every manifest is: applied, compared, and pruned through the inventory. Pruning it gives up the buffer's
capacity. So that happens only in a plan that holds the capacity in another way, or once the buffer is gone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from reconciler.model.autoscalers import (
    ANSWERED_WITHIN,
    ASKED_AFTER,
    CORRECTED_AFTER,
    GRACE,
    SILENCE,
    condition_of,
)
from reconciler.model.buffers import (
    BALLOON_LABEL,
    BALLOON_PRIORITY,
    BALLOON_PRIORITY_CLASS,
    DEPLOYMENT_KIND,
    FULFILLED,
    Fulfilment,
    balloon_ref,
)
from reconciler.model.changes import Action, DemandOutcome, FieldChange, ObjectChange
from reconciler.model.conditions import Availability, Condition, ConditionStatus
from reconciler.model.declared import Declared, DeclaredManifest
from reconciler.model.demand import Demand
from reconciler.model.pod_spec_from_shape import pod_spec_of
from reconciler.model.pods import PodAffinityTerm, PodShape, TopologySpread, WeightedPodAffinityTerm
from reconciler.model.quantity import CPU, EPHEMERAL_STORAGE, MEMORY, time_of
from reconciler.model.refs import ObjectRef, SourcePosition, counted
from reconciler.model.requirements import LabelSelector
from reconciler.model.schedules import Edge
from reconciler.model.view import ClusterView, LiveObject, Manifest

PROVISIONING = "Provisioning"
FULFILMENT = "Fulfilment"
_SHORT, _MISSING = "RequiresNewCapacity", "CapacityMissing"
_TAKEN_BACK, _ALSO_SERVED = "TakenBack", "AlsoServed"
_MOMENT = timedelta(seconds=1)
"""Added since times in the cluster are whole seconds, and the second must be over."""


def provisioning(demand: Demand, where: Availability, starting: int = 0) -> tuple[Condition, ...]:
    """The demand's conditions with Provisioning added, and with what the placement means for whoever keeps the buffer.

    starting: chunks that have room but whose balloon pods do not run yet.
    """
    if demand.fulfilment == Fulfilment.NATIVE and not demand.holds_nodes:
        return tuple(_missing(item, demand, where) for item in demand.conditions)
    if any(item.type == PROVISIONING for item in demand.conditions):
        return demand.conditions
    return (*demand.conditions, _provisioning(demand, where, starting))


def _missing(condition: Condition, demand: Demand, where: Availability) -> Condition:
    """Headroom takes a buffer back whose autoscaler is silent; until then the condition says that its capacity is missing."""
    if condition.type != FULFILMENT or not demand.silent or not where.unplaced or demand.autoscaler is None:
        return condition
    message = f"{demand.autoscaler.name} has not written for long, and not all of the capacity is there"
    return Condition(FULFILMENT, ConditionStatus.FALSE, _MISSING, message)


def _provisioning(demand: Demand, where: Availability, starting: int) -> Condition:
    if demand.desired is None:
        return _condition(ConditionStatus.FALSE, "NotReadyForProvisioning", "the buffer is not ready")
    if demand.desired == 0 and demand.filled:
        return _condition(ConditionStatus.TRUE, "FitsExistingCapacity", f"its own pods fill {_all(demand.filled)}")
    if demand.ended is not None and demand.ended.type == FULFILLED:
        return _condition(ConditionStatus.TRUE, "FitsExistingCapacity", demand.ended.message)
    if demand.desired == 0:
        message = "the buffer asks for nothing" if demand.ended is None else demand.ended.message
        return _condition(ConditionStatus.FALSE, "BufferEmpty", message)
    # New nodes count as on their way: they are once the status is written, and another message would be another write.
    unmade = where.new if where.suspended else 0
    missing = [
        f"{count:,} {words}"
        for count, words in (
            (where.coming + where.new - unmade, "on nodes that are on their way"),
            (unmade, "on nodes that are not made while headroom is suspended"),
            (where.not_ready, "on nodes that are not ready"),
            (starting, "with room for balloon pods that do not run yet"),
            (where.unplaced, "without a place"),
        )
        if count
    ]
    if missing:
        message = f"of {counted(demand.desired, 'chunk')}, {', '.join(missing)}"
        message = "; ".join(filter(None, (message, where.unlaunched, where.cut, where.stopped)))
        return _condition(ConditionStatus.FALSE, _SHORT, message)
    words = f"{_all(demand.desired)} {'has' if demand.desired == 1 else 'have'} room"
    return _condition(ConditionStatus.TRUE, "FitsExistingCapacity", words)


def _all(chunks: int) -> str:
    return "the 1 chunk" if chunks == 1 else f"all {chunks:,} chunks"


def _condition(status: ConditionStatus, reason: str, message: str) -> Condition:
    return Condition(PROVISIONING, status, reason, message)


def with_shortages(outcomes: Iterable[DemandOutcome], view: ClusterView) -> list[DemandOutcome]:
    """Outcomes of buffers that were short when their status was last written, with the time since when."""
    return [_with_shortage(outcome, view) for outcome in outcomes]


def _with_shortage(outcome: DemandOutcome, view: ClusterView) -> DemandOutcome:
    if outcome.demand.is_pending_pod or outcome.demand.request is not None:
        return outcome
    before = condition_of(view.objects.get(outcome.demand.ref), PROVISIONING)
    since = time_of(before.get("lastTransitionTime")) if before.get("reason") == _SHORT else None
    return outcome if since is None else replace(outcome, short_since=since + view.clock_skew)


def served_elsewhere(demands: Iterable[Demand]) -> frozenset[ObjectRef]:
    """Buffers that are being handed over, and those that both serve. A buffer taken back from a silent autoscaler is headroom's alone."""
    return frozenset(
        demand.ref
        for demand in demands
        if demand.fulfilment == Fulfilment.NATIVE
        or also_served(demand)
        or (demand.autoscaler is not None and not _says(demand, _TAKEN_BACK))
    )


def also_served(demand: Demand) -> bool:
    """Headroom keeps it, and an autoscaler is known to serve it as well."""
    return _says(demand, _ALSO_SERVED)


def _says(demand: Demand, reason: str) -> bool:
    return any(item.type == FULFILMENT and item.reason == reason for item in demand.conditions)


def keeping_edges(outcomes: Iterable[DemandOutcome], view: ClusterView, now: datetime) -> tuple[Edge, ...]:
    """The instants ahead at which a buffer's keeper may change. now: by the cluster's clock."""
    edges = (edge for outcome in outcomes for edge in _edges(outcome, view, now))
    return tuple(edge for edge in edges if edge.at > now)


def _edges(outcome: DemandOutcome, view: ClusterView, now: datetime) -> Iterable[Edge]:
    autoscaler = outcome.demand.autoscaler
    if autoscaler is None and also_served(outcome.demand):
        yield Edge(
            now + ANSWERED_WITHIN + _MOMENT, f"{outcome.demand.ref}: no autoscaler has said that it still serves it"
        )
    if autoscaler is None or autoscaler.last_write is None:
        return
    ref, written = outcome.demand.ref, autoscaler.last_write
    if outcome.demand.fulfilment != Fulfilment.NATIVE:
        yield Edge(written + CORRECTED_AFTER + _MOMENT, f"{ref}: what {autoscaler.name} says of it may be corrected")
        if autoscaler.answers and also_served(outcome.demand):
            asked = max(written + ASKED_AFTER, now + ANSWERED_WITHIN)
            yield Edge(asked + _MOMENT, f"{ref}: {autoscaler.name} is asked whether it still serves it")
    elif outcome.unplaced and not outcome.demand.holds_nodes:
        yield Edge(written + SILENCE + _MOMENT, f"{ref}: {autoscaler.name} has written nothing for ten minutes")
        told = condition_of(view.objects.get(ref), FULFILMENT)
        since = time_of(told.get("lastTransitionTime")) if told.get("reason") == _MISSING else None
        # A condition that is not there yet is written by this pass.
        began = since or max(now, written + SILENCE + _MOMENT)
        yield Edge(began + GRACE + _MOMENT, f"{ref}: its capacity has been missing for a minute")


_WITHOUT_LIMIT = (CPU, MEMORY, EPHEMERAL_STORAGE)
_RESTRICTED_POD: Manifest = {
    "terminationGracePeriodSeconds": 0,  # they make way at once for whoever pushes them out
    "automountServiceAccountToken": False,
    "enableServiceLinks": False,
    "securityContext": {"runAsNonRoot": True, "runAsUser": 65535, "seccompProfile": {"type": "RuntimeDefault"}},
}
"""With `_RESTRICTED_CONTAINER` the Pod Security Standard `restricted`, and no token."""
_RESTRICTED_CONTAINER: Manifest = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "readOnlyRootFilesystem": True,
}
_NO_SIDECAR = {"sidecar.istio.io/inject": "false", "linkerd.io/inject": "disabled"}
"""A sidecar would take room beside the chunk. Istio reads the label, Linkerd the annotation."""


def with_balloons(declared: Declared, demands: Iterable[Demand], view: ClusterView, image: str) -> Declared:
    """What the repository declares, and the Deployments of balloon pods that follow from it. image: of the pods."""
    buffers = [demand for demand in demands if demand.shape is not None or demand.desired is None]
    wanted = [
        _declared(demand, image) for demand in buffers if demand.fulfilment == Fulfilment.BALLOON and demand.desired
    ]
    refs = {item.ref for item in wanted}
    there = {ref for ref, live in view.objects.items() if _is_balloon(ref, live)}
    kept = {balloon_ref(demand.ref) for demand in buffers if _is_needed_still(demand)} & there - refs
    leaving = dict.fromkeys(sorted(there - refs - kept), "its buffer is not kept by balloon pods any more")
    if not (wanted or there):
        return declared
    return replace(
        declared,
        manifests=(*declared.manifests, *wanted),
        broken=declared.broken | kept,
        dormant={**declared.dormant, **leaving},
    )


def priority_class_changes(demands: Iterable[Demand], view: ClusterView) -> tuple[ObjectChange, ...]:
    """Creates the PriorityClass with the first balloon. It stays: pods cannot be made without it, and it costs nothing."""
    needed = any(demand.fulfilment == Fulfilment.BALLOON and demand.desired for demand in demands)
    if not needed or any(item.name == BALLOON_PRIORITY_CLASS for item in view.priority_classes):
        return ()
    manifest: Manifest = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": BALLOON_PRIORITY_CLASS},
        "value": BALLOON_PRIORITY,
        "preemptionPolicy": "Never",
        "globalDefault": False,
        "description": "Pods of headroom that keep room until another pod needs it",
    }
    ref = ObjectRef("scheduling.k8s.io", "PriorityClass", "", BALLOON_PRIORITY_CLASS)
    change = FieldChange("value", None, BALLOON_PRIORITY)
    return (ObjectChange(ref, Action.CREATE, (change,), manifest, reason="balloon pods need it"),)


def _is_balloon(ref: ObjectRef, live: LiveObject) -> bool:
    labels = (live.body.get("metadata") or {}).get("labels") or {}
    return ref.kind == DEPLOYMENT_KIND and BALLOON_LABEL in labels


def _is_needed_still(demand: Demand) -> bool:
    """The Deployment stays: its size is unknown, or the autoscaler that takes over does not report the capacity yet."""
    if demand.fulfilment == Fulfilment.NATIVE:
        return demand.autoscaler is None or not demand.autoscaler.reports
    return demand.fulfilment == Fulfilment.BALLOON and demand.desired is None


def _declared(demand: Demand, image: str) -> DeclaredManifest:
    ref = balloon_ref(demand.ref)
    position = demand.source or SourcePosition(str(demand.ref), 1)
    return DeclaredManifest(ref, _deployment(demand, ref, image), position)


def _deployment(demand: Demand, ref: ObjectRef, image: str) -> Manifest:
    assert demand.shape is not None
    labels = {BALLOON_LABEL: ref.name, "app.kubernetes.io/managed-by": "headroom"}
    spec = pod_spec_of(balloon_shape(demand.shape, ref.name), "balloon")
    container: dict[str, Any] = {**spec["containers"][0], "image": image, "securityContext": _RESTRICTED_CONTAINER}
    # The API server takes no request for devices and huge pages without an equal limit.
    limits = {name: text for name, text in container["resources"]["requests"].items() if name not in _WITHOUT_LIMIT}
    if limits:
        container["resources"] = {**container["resources"], "limits": limits}
    pod = {**spec, "containers": [container], "priorityClassName": BALLOON_PRIORITY_CLASS, **_RESTRICTED_POD}
    metadata = {"labels": {**labels, **_NO_SIDECAR}, "annotations": _NO_SIDECAR}
    return {
        "apiVersion": "apps/v1",
        "kind": DEPLOYMENT_KIND,
        "metadata": {"name": ref.name, "namespace": ref.namespace, "labels": labels},
        "spec": {
            "replicas": demand.desired,
            "selector": {"matchLabels": {BALLOON_LABEL: ref.name}},
            # No pod above the size while a new shape is rolled out: each would need a node.
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": "25%"}},
            "template": {"metadata": metadata, "spec": pod},
        },
    }


def balloon_shape(shape: PodShape, name: str) -> PodShape:
    """The shape of a balloon's pods. They have labels of their own, since the workload's would make them backends of its Services. Its
    rules about its own pods become rules about the balloon's pods."""
    own = LabelSelector(match_labels=((BALLOON_LABEL, name),))
    labels = dict(shape.labels)

    def matches(selector: LabelSelector | None) -> bool:
        return selector is not None and selector.matches(labels)

    def spread(item: TopologySpread) -> TopologySpread:
        return replace(item, selector=own, match_label_keys=()) if matches(item.selector) else item

    def near(term: PodAffinityTerm) -> PodAffinityTerm:
        return _about(term, own) if matches(term.selector) else term

    def away(terms: Sequence[PodAffinityTerm]) -> tuple[PodAffinityTerm, ...]:
        return (*terms, *(_about(term, own) for term in terms if matches(term.selector)))

    def weighted(items: Sequence[WeightedPodAffinityTerm]) -> tuple[WeightedPodAffinityTerm, ...]:
        return tuple(replace(item, term=near(item.term)) for item in items)

    return replace(
        shape,
        labels=own.match_labels,
        topology_spread=tuple(spread(item) for item in shape.topology_spread),
        pod_affinity=tuple(near(term) for term in shape.pod_affinity),
        pod_anti_affinity=away(shape.pod_anti_affinity),
        preferred_pod_affinity=weighted(shape.preferred_pod_affinity),
        preferred_pod_anti_affinity=weighted(shape.preferred_pod_anti_affinity),
        priority_class_name="",
    )


def _about(term: PodAffinityTerm, selector: LabelSelector) -> PodAffinityTerm:
    return replace(term, selector=selector, match_label_keys=(), mismatch_label_keys=())

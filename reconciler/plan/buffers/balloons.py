"""Balloon pods as objects to be applied: a Deployment for each buffer that asks for them, and their PriorityClass.

The Deployment is treated as every manifest is: applied, compared, and pruned through the inventory. Pruning it gives up the buffer's
capacity. So that happens only in a plan that holds the capacity in another way, or once the buffer is gone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from reconciler.model.buffers import (
    BALLOON_LABEL,
    BALLOON_PRIORITY,
    BALLOON_PRIORITY_CLASS,
    DEPLOYMENT_KIND,
    Fulfilment,
    balloon_ref,
)
from reconciler.model.changes import Action, FieldChange, ObjectChange
from reconciler.model.declared import Declared, DeclaredManifest
from reconciler.model.demand import Demand
from reconciler.model.pod_spec_from_shape import pod_spec_of
from reconciler.model.pods import PodAffinityTerm, PodShape, TopologySpread, WeightedPodAffinityTerm
from reconciler.model.quantity import CPU, EPHEMERAL_STORAGE, MEMORY
from reconciler.model.refs import ObjectRef, SourcePosition
from reconciler.model.requirements import LabelSelector
from reconciler.model.view import ClusterView, LiveObject, Manifest

_WITHOUT_LIMIT = (CPU, MEMORY, EPHEMERAL_STORAGE)


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
    container: dict[str, Any] = {**spec["containers"][0], "image": image}
    # The API server takes no request for devices and huge pages without an equal limit.
    limits = {name: text for name, text in container["resources"]["requests"].items() if name not in _WITHOUT_LIMIT}
    if limits:
        container["resources"] = {**container["resources"], "limits": limits}
    pod = {**spec, "containers": [container], "priorityClassName": BALLOON_PRIORITY_CLASS}
    return {
        "apiVersion": "apps/v1",
        "kind": DEPLOYMENT_KIND,
        "metadata": {"name": ref.name, "namespace": ref.namespace, "labels": labels},
        "spec": {
            "replicas": demand.desired,
            "selector": {"matchLabels": {BALLOON_LABEL: ref.name}},
            "template": {"metadata": {"labels": labels}, "spec": pod},
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

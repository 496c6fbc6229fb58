"""Shares pod shapes, since the pods of one workload are equal.

Computing a shape costs far more than comparing two specs. Equal pods that share one shape object take less memory, and can be
grouped by identity.
"""

from __future__ import annotations

from dataclasses import fields, replace
from operator import attrgetter
from typing import Any

from reconciler.cluster.decoding.resized import as_counted
from reconciler.cluster.decoding.wire import PodWire
from reconciler.manifests.pod_shape import shape_of
from reconciler.manifests.pod_spec_wire import PodSpecWire
from reconciler.model.pods import GeneratedClaim, PodShape

_SPEC = attrgetter(
    *(
        name
        for name in PodSpecWire.__struct_fields__
        # These fields differ from pod to pod without changing the shape. Pods with volumes that matter have no likeness.
        if name not in {"node_name", "priority", "scheduling_gates", "volumes"}
    )
)
_SHARED = tuple(item.name for item in fields(PodShape) if item.compare and item.name != "requests")
_MOST = 20_000


class ShapePool:
    """Not thread-safe: its owner holds a lock."""

    def __init__(self) -> None:
        self._siblings: dict[tuple[str, str, str], tuple[object, PodShape]] = {}
        self._shapes: dict[PodShape, PodShape] = {}
        self._parts: dict[Any, Any] = {}

    def shape_of(self, pod: PodWire, owner_kind: str, owner_name: str) -> PodShape:
        """The pod's shape, the same object for equal shapes. Raises `Invalid`."""
        pod = as_counted(pod)
        metadata, spec = pod.metadata, pod.spec
        namespace = metadata.namespace or ""
        key = (namespace, owner_kind, owner_name)
        likeness = _likeness(pod) if owner_name else None
        sibling = self._siblings.get(key) if likeness is not None else None
        if sibling is not None and sibling[0] == likeness:
            return sibling[1]
        shape = shape_of(
            spec,
            namespace=namespace,
            labels=metadata.labels or {},
            pod_name=metadata.name,
            pod_uid=metadata.uid,
        )
        if _has_generated_claims(pod):
            shape = _with_generated_claims(shape, pod)
        if max(len(self._shapes), len(self._siblings)) > _MOST:
            self._shapes.clear()  # most are of pods that are long gone
            self._siblings.clear()
            self._parts.clear()
        known = self._shapes.get(shape)
        if known is None:
            known = self._with_shared_parts(shape)
            self._shapes[known] = known
        shape = known
        if likeness is not None:
            self._siblings[key] = (likeness, shape)
        return shape

    def _with_shared_parts(self, shape: PodShape) -> PodShape:
        """The shape with parts shared with others. Many shapes differ only in requests, and share all other parts."""
        parts: dict[str, Any] = {name: part for name in _SHARED if (part := getattr(shape, name))}
        return replace(shape, **{name: self._parts.setdefault(part, part) for name, part in parts.items()})


def _likeness(pod: PodWire) -> object | None:
    """What is equal only for pods of equal shape; None for a pod whose volumes or claims are its own."""
    if _claims_volumes(pod.spec) or _has_generated_claims(pod):
        return None
    return pod.metadata.labels, _SPEC(pod.spec)


def _claims_volumes(spec: PodSpecWire) -> bool:
    for volume in spec.volumes or ():  # a loop, since it runs for every pod of the cluster
        if volume.persistent_volume_claim is not None or volume.ephemeral is not None:
            return True
    return False


def _has_generated_claims(pod: PodWire) -> bool:
    """Whether its generated claims matter. Not for a pod on a node: its devices are allocated, and its successor gets claims of its
    own."""
    return bool(pod.status.resource_claim_statuses) and not pod.spec.node_name


def _with_generated_claims(shape: PodShape, pod: PodWire) -> PodShape:
    """The shape with claims in place of templates. A template stays while no claim was made; if none is needed (a status without a
    name), it goes too."""
    names = {status.name: status.resource_claim_name for status in pod.status.resource_claim_statuses or ()}
    templates: list[str] = []
    generated: list[GeneratedClaim] = []
    for claim in pod.spec.resource_claims or ():
        template, name = claim.resource_claim_template_name, names.get(claim.name)
        if template and claim.name not in names:
            templates.append(template)
        elif template and name:
            generated.append(GeneratedClaim(template, name, pod.metadata.uid))
    return replace(
        shape,
        resource_claim_templates=tuple(sorted(templates)),
        generated_claims=tuple(sorted(generated, key=lambda claim: claim.name)),
    )

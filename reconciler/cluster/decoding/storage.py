"""Volumes, claims, storage and runtime classes: their wire format, and its decoding into the model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from reconciler.cluster.decoding.wire import MetadataWire, Texts, controller_of
from reconciler.cluster.resources import Resource
from reconciler.manifests.pods.pod_shape import node_term_of, toleration_of
from reconciler.manifests.pods.pod_spec_wire import NodeSelectorWire, Quantities, ResourcesWire, TolerationWire, Wire
from reconciler.model.attachments import PersistentVolume, StorageClass, VolumeClaim, VolumeLimits
from reconciler.model.errors import Invalid
from reconciler.model.nodes import REGION_LABEL, ZONE_LABEL
from reconciler.model.pods import NodeSelectorTerm, RuntimeClass
from reconciler.model.quantity import Resources, parse_quantity
from reconciler.model.requirements import Operator, Requirement

BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
"""On a claim: the node of its first pod, for which its volume is provisioned."""
DEFAULT_CLASS = ("storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class")
_OLDER_ZONE, _OLDER_REGION = "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region"
PLACE_LABELS = (ZONE_LABEL, REGION_LABEL, _OLDER_ZONE, _OLDER_REGION)
"""Labels of a volume that a node must match (kube-scheduler's plugin VolumeZone)."""


class _VolumeAffinityWire(Wire, frozen=True):
    required: NodeSelectorWire | None = None


class _CsiWire(Wire, frozen=True):
    driver: str = ""
    volume_handle: str = ""


class _ClaimRefWire(Wire, frozen=True):
    namespace: str = ""
    name: str = ""


class _VolumeSpecWire(Wire, frozen=True):
    node_affinity: _VolumeAffinityWire | None = None
    csi: _CsiWire | None = None
    claim_ref: _ClaimRefWire | None = None
    storage_class_name: str | None = None
    capacity: Quantities | None = None
    access_modes: tuple[str, ...] | None = None


class VolumeWire(Wire, frozen=True):
    metadata: MetadataWire
    spec: _VolumeSpecWire = _VolumeSpecWire()


class _ClaimSpecWire(Wire, frozen=True):
    volume_name: str | None = None
    storage_class_name: str | None = None
    access_modes: tuple[str, ...] | None = None
    resources: ResourcesWire | None = None


class _ClaimStatusWire(Wire, frozen=True):
    phase: str | None = None


class VolumeClaimWire(Wire, frozen=True):
    metadata: MetadataWire
    spec: _ClaimSpecWire = _ClaimSpecWire()
    status: _ClaimStatusWire = _ClaimStatusWire()


class _TopologyLabelWire(Wire, frozen=True):
    key: str
    values: tuple[str, ...] = ()


class _TopologyTermWire(Wire, frozen=True):
    match_label_expressions: tuple[_TopologyLabelWire, ...] | None = None


class StorageClassWire(Wire, frozen=True):
    metadata: MetadataWire
    provisioner: str = ""
    volume_binding_mode: str | None = None
    allowed_topologies: tuple[_TopologyTermWire, ...] | None = None


class _AllocatableWire(Wire, frozen=True):
    count: int | None = None


class _NodeDriverWire(Wire, frozen=True):
    name: str = ""
    allocatable: _AllocatableWire | None = None


class _CsiNodeSpecWire(Wire, frozen=True):
    drivers: tuple[_NodeDriverWire, ...] | None = None


class CsiNodeWire(Wire, frozen=True):
    metadata: MetadataWire
    spec: _CsiNodeSpecWire = _CsiNodeSpecWire()


class _OverheadWire(Wire, frozen=True):
    pod_fixed: Quantities | None = None


class _SchedulingWire(Wire, frozen=True):
    node_selector: Texts | None = None
    tolerations: tuple[TolerationWire, ...] | None = None


class RuntimeClassWire(Wire, frozen=True):
    metadata: MetadataWire
    overhead: _OverheadWire | None = None
    scheduling: _SchedulingWire | None = None


def persistent_volume(_resource: Resource, volume: VolumeWire, _data: Any) -> PersistentVolume:
    """Raises `Invalid`."""
    spec = volume.spec
    required = spec.node_affinity.required if spec.node_affinity is not None else None
    labels = volume.metadata.labels or {}
    return PersistentVolume(
        name=volume.metadata.name,
        terms=tuple(node_term_of(term) for term in (required.node_selector_terms or ()))
        if required is not None
        else (),
        labels=tuple((key, labels[key]) for key in PLACE_LABELS if key in labels),
        storage_class=spec.storage_class_name or "",
        capacity=_bytes(spec.capacity),
        access_modes=spec.access_modes or (),
        claim=(spec.claim_ref.namespace, spec.claim_ref.name) if spec.claim_ref is not None else None,
        driver=spec.csi.driver if spec.csi is not None else "",
        handle=spec.csi.volume_handle if spec.csi is not None else "",
    )


def _bytes(quantities: Quantities | None) -> int:
    value = (quantities or {}).get("storage")
    return 0 if value is None else int(parse_quantity(value))


def volume_claim(_resource: Resource, claim: VolumeClaimWire, _data: Any) -> VolumeClaim:
    """A claim. It is bound if the binding controller has marked it so, or if a hand-made object says so."""
    metadata, spec = claim.metadata, claim.spec
    phase = claim.status.phase or ""
    marked = BIND_COMPLETED in (metadata.annotations or {})
    return VolumeClaim(
        namespace=metadata.namespace or "",
        name=metadata.name,
        volume=spec.volume_name or "",
        bound=bool(spec.volume_name) and (marked or phase == "Bound"),
        lost=phase == "Lost",
        deleting=metadata.deletion_timestamp is not None,
        storage_class=spec.storage_class_name,
        requested=_bytes(spec.resources.requests if spec.resources is not None else None),
        access_modes=spec.access_modes or (),
        controller=controller_of(metadata).uid,
        selected_node=(metadata.annotations or {}).get(SELECTED_NODE) or "",
    )


def storage_class(_resource: Resource, found: StorageClassWire, _data: Any) -> StorageClass:
    annotations = found.metadata.annotations or {}
    return StorageClass(
        name=found.metadata.name,
        provisioner=found.provisioner,
        waits=found.volume_binding_mode == "WaitForFirstConsumer",
        topologies=tuple(
            NodeSelectorTerm(
                tuple(Requirement(item.key, Operator.IN, item.values) for item in term.match_label_expressions)
            )
            for term in found.allowed_topologies or ()
            if term.match_label_expressions
        ),
        default=any(annotations.get(key) == "true" for key in DEFAULT_CLASS),
    )


def volume_limits(_resource: Resource, node: CsiNodeWire, _data: Any) -> VolumeLimits:
    limits = [
        (driver.name, driver.allocatable.count)
        for driver in node.spec.drivers or ()
        if driver.allocatable is not None and driver.allocatable.count is not None
    ]
    return VolumeLimits(node.metadata.name, tuple(sorted(limits)))


def runtime_class(_resource: Resource, found: RuntimeClassWire, _data: Any) -> RuntimeClass:
    """Raises `Invalid`."""
    scheduling = found.scheduling or _SchedulingWire()
    fixed = found.overhead.pod_fixed if found.overhead is not None else None
    try:
        overhead = Resources.parse({name: value for name, value in (fixed or {}).items() if value is not None})
    except Invalid as error:
        raise Invalid(f"overhead: {error.message}", hint=error.hint) from error
    return RuntimeClass(
        name=found.metadata.name,
        overhead=overhead,
        node_selector=tuple(sorted((scheduling.node_selector or {}).items())),
        tolerations=tuple(toleration_of(item) for item in scheduling.tolerations or ()),
    )


StorageValue = PersistentVolume | VolumeClaim | StorageClass | VolumeLimits | RuntimeClass
DECODERS: dict[tuple[str, str], tuple[msgspec.json.Decoder[Any], Callable[[Resource, Any, Any], StorageValue]]] = {
    ("", "PersistentVolume"): (msgspec.json.Decoder(VolumeWire), persistent_volume),
    ("", "PersistentVolumeClaim"): (msgspec.json.Decoder(VolumeClaimWire), volume_claim),
    ("storage.k8s.io", "StorageClass"): (msgspec.json.Decoder(StorageClassWire), storage_class),
    ("storage.k8s.io", "CSINode"): (msgspec.json.Decoder(CsiNodeWire), volume_limits),
    ("node.k8s.io", "RuntimeClass"): (msgspec.json.Decoder(RuntimeClassWire), runtime_class),
}

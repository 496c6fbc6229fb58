"""Volumes, claims, storage and runtime classes: their wire format, and its decoding into the model."""

from __future__ import annotations

from reconciler.cluster.decoding.wire import MetadataWire, Texts, resources_of
from reconciler.manifests.pods.pod_shape import node_term_of, toleration_of
from reconciler.manifests.pods.pod_spec_wire import NodeSelectorWire, Quantities, TolerationWire, Wire
from reconciler.model.attachments import PersistentVolume, StorageClass, VolumeClaim
from reconciler.model.errors import Invalid
from reconciler.model.pods import NodeSelectorTerm, RuntimeClass
from reconciler.model.requirements import Operator, Requirement

BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
"""On a claim: the node of its first pod, for which its volume is provisioned."""
DEFAULT_CLASS = ("storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class")


class _VolumeAffinityWire(Wire, frozen=True):
    required: NodeSelectorWire | None = None


class _VolumeSpecWire(Wire, frozen=True):
    node_affinity: _VolumeAffinityWire | None = None


class VolumeWire(Wire, frozen=True):
    metadata: MetadataWire
    spec: _VolumeSpecWire = _VolumeSpecWire()


class _ClaimSpecWire(Wire, frozen=True):
    volume_name: str | None = None
    storage_class_name: str | None = None


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


class _OverheadWire(Wire, frozen=True):
    pod_fixed: Quantities | None = None


class _SchedulingWire(Wire, frozen=True):
    node_selector: Texts | None = None
    tolerations: tuple[TolerationWire, ...] | None = None


class RuntimeClassWire(Wire, frozen=True):
    metadata: MetadataWire
    overhead: _OverheadWire | None = None
    scheduling: _SchedulingWire | None = None


def persistent_volume_of(volume: VolumeWire) -> PersistentVolume:
    """Raises `Invalid`."""
    spec = volume.spec
    required = spec.node_affinity.required if spec.node_affinity is not None else None
    return PersistentVolume(
        name=volume.metadata.name,
        terms=tuple(node_term_of(term) for term in (required.node_selector_terms or ()))
        if required is not None
        else (),
    )


def volume_claim_of(claim: VolumeClaimWire) -> VolumeClaim:
    """A claim. It is bound if the binding controller has marked it so, or if a hand-made object says so."""
    metadata, spec = claim.metadata, claim.spec
    phase = claim.status.phase or ""
    marked = BIND_COMPLETED in (metadata.annotations or {})
    return VolumeClaim(
        namespace=metadata.namespace or "",
        name=metadata.name,
        volume=spec.volume_name or "",
        bound=bool(spec.volume_name) and (marked or phase == "Bound"),
        storage_class=spec.storage_class_name,
        selected_node=(metadata.annotations or {}).get(SELECTED_NODE) or "",
    )


def storage_class_of(found: StorageClassWire) -> StorageClass:
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


def runtime_class_of(found: RuntimeClassWire) -> RuntimeClass:
    """Raises `Invalid`."""
    scheduling = found.scheduling or _SchedulingWire()
    fixed = found.overhead.pod_fixed if found.overhead is not None else None
    try:
        overhead = resources_of(fixed)
    except Invalid as error:
        raise Invalid(f"overhead: {error.message}", hint=error.hint) from error
    return RuntimeClass(
        name=found.metadata.name,
        overhead=overhead,
        node_selector=tuple(sorted((scheduling.node_selector or {}).items())),
        tolerations=tuple(toleration_of(item) for item in scheduling.tolerations or ()),
    )

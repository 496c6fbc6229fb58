"""What all kinds have in common: names, labels and resource lists."""

from __future__ import annotations

from reconciler.cluster.decoding import wire
from reconciler.cluster.resources import Resource
from reconciler.manifests.pod_spec_wire import Quantities
from reconciler.model.nodes import Labels
from reconciler.model.quantity import Resources
from reconciler.model.refs import ObjectRef


def ref_of(resource: Resource, metadata: wire.MetadataWire) -> ObjectRef:
    return ObjectRef(resource.group, resource.kind, metadata.namespace or "", metadata.name)


def labels_of(texts: wire.Texts | None) -> Labels:
    return tuple(sorted(texts.items())) if texts else ()


def resources_of(quantities: Quantities | None) -> Resources:
    """A resource list without entries that are null."""
    return Resources.parse({name: value for name, value in (quantities or {}).items() if value is not None})

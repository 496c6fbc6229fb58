"""NodeOverlay (karpenter.sh/v1alpha1): reading. Its rules stand in its schema."""

from __future__ import annotations

from reconciler.manifests.documents.document import mapping_at
from reconciler.manifests.kind import Kind, Origin
from reconciler.manifests.node_pool import requirements_of
from reconciler.model.nodes import KARPENTER_GROUP, NodeOverlay
from reconciler.model.quantity import Resources
from reconciler.model.refs import ObjectRef
from reconciler.model.view import Manifest


def read(ref: ObjectRef, manifest: Manifest, origin: Origin) -> NodeOverlay:
    spec = mapping_at(manifest, "spec")
    return NodeOverlay(
        ref=ref,
        requirements=requirements_of(spec.get("requirements")),
        weight=spec.get("weight", 0),
        price=spec.get("price"),
        price_adjustment=spec.get("priceAdjustment"),
        capacity=Resources.parse(mapping_at(spec, "capacity")),
        position=origin.position,
    )


NODE_OVERLAY = Kind(
    group=KARPENTER_GROUP,
    name="NodeOverlay",
    versions=("v1alpha1",),
    slot="node_overlays",
    schema="node_overlay",
    namespaced=False,
    read=read,
)

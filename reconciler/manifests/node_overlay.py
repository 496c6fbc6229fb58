"""NodeOverlay (karpenter.sh/v1alpha1): rules and reading."""

from __future__ import annotations

from decimal import Decimal

from reconciler.manifests.documents.document import Inspection, mapping_at
from reconciler.manifests.kind import Kind, Origin
from reconciler.manifests.requirements import check_requirements, requirements_of
from reconciler.model import codes
from reconciler.model.nodes import KARPENTER_GROUP, MOST_PRICE, NodeOverlay
from reconciler.model.quantity import Resources
from reconciler.model.refs import ObjectRef
from reconciler.model.view import Manifest

_STANDARD = frozenset({"cpu", "memory", "ephemeral-storage", "pods"})


def check(inspection: Inspection) -> None:
    spec = mapping_at(inspection.body, "spec")
    check_requirements(inspection, spec.get("requirements", []), ("spec", "requirements"), of_pool=False)
    if "price" in spec and "priceAdjustment" in spec:
        # x-kubernetes-validations of the CRD: !has(self.price) || !has(self.priceAdjustment)
        inspection.report(
            codes.PRICE_AND_ADJUSTMENT,
            ("spec", "priceAdjustment"),
            "spec has both price and priceAdjustment",
            hint="keep price to replace the price, priceAdjustment to change it",
        )
    for field in ("price", "priceAdjustment"):
        _check_price(inspection, field, str(spec.get(field, "")))
    for name in mapping_at(spec, "capacity"):
        if name in _STANDARD:
            # x-kubernetes-validations of the CRD: only extended resources may be added
            inspection.report(
                codes.STANDARD_RESOURCE,
                ("spec", "capacity", name),
                f"an overlay may not change {name}",
                hint="only extended resources such as example.com/gpu may be added",
            )


def _check_price(inspection: Inspection, field: str, text: str) -> None:
    """Reports a price that is too high. text: a number, as the schema has ensured. A percentage cannot be judged here."""
    if text and not text.endswith("%") and abs(Decimal(text)) > MOST_PRICE:
        inspection.report(
            codes.INVALID_VALUE,
            ("spec", field),
            f"spec.{field} is {text}, more than ${MOST_PRICE:,} an hour",
            hint='write dollars an hour of one node, such as "0.25"',
        )


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
    check=check,
    read=read,
)

"""ProvisioningClass (autoscaling.x-k8s.io/v1alpha1), a kind that the ProvisioningRequest proposal only sketches."""

from __future__ import annotations

from reconciler.manifests import codes
from reconciler.manifests.capacity_buffer import GROUP
from reconciler.manifests.inspection import Inspection
from reconciler.manifests.kind import Kind, Origin, labels_of
from reconciler.manifests.provisioning_request import check_parameters
from reconciler.model.provisioning_requests import ProvisioningClass
from reconciler.model.refs import ObjectRef
from reconciler.model.view import Manifest


def correct(inspection: Inspection) -> None:
    body = inspection.body
    if "Parameters" in body and "parameters" not in body:
        body["parameters"] = body.pop("Parameters")
        inspection.report(
            codes.OLD_SPELLING, ("Parameters",), "Parameters is read as parameters", hint="write parameters"
        )
        inspection.moved(("parameters",), ("Parameters",))


def check(inspection: Inspection) -> None:
    check_parameters(inspection, inspection.ref.name, ("parameters",))
    allowed = inspection.body.get("allowedParameters")
    if allowed is None:
        return
    for name in inspection.body.get("parameters", {}):
        if name not in allowed:
            inspection.report(
                codes.PARAMETER_NOT_ALLOWED,
                ("parameters", name),
                f"the class sets {name} by default but does not allow it",
                hint=f"add {name} to allowedParameters",
            )


def read(ref: ObjectRef, manifest: Manifest, origin: Origin) -> ProvisioningClass:
    allowed = manifest.get("allowedParameters")
    return ProvisioningClass(
        ref=ref,
        class_name=ref.name,
        defaults=labels_of(manifest, "parameters"),
        allowed=tuple(sorted(allowed)) if allowed is not None else None,
        position=origin.position,
    )


PROVISIONING_CLASS = Kind(
    group=GROUP,
    name="ProvisioningClass",
    versions=("v1alpha1",),
    slot="provisioning_classes",
    schema="provisioning_class",
    namespaced=False,
    correct=correct,
    check=check,
    read=read,
)

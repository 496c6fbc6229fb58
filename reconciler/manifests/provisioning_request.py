"""ProvisioningRequest (autoscaling.x-k8s.io v1, v1beta1, and the proposal's spelling): rules and reading."""

from __future__ import annotations

from reconciler.manifests import codes
from reconciler.manifests.capacity_buffer import GROUP
from reconciler.manifests.inspection import Inspection, mapping_at
from reconciler.manifests.kind import (
    Kind,
    Origin,
    condition_times_of,
    conditions_of,
    created_of,
    generation_of,
    labels_of,
)
from reconciler.model.provisioning_requests import CLASSES, PodSet, ProvisioningRequest
from reconciler.model.refs import ObjectRef
from reconciler.model.view import Manifest

VALID_UNTIL_SECONDS = "ValidUntilSeconds"
KNOWN_CLASSES = tuple(CLASSES)
_OLD_SPELLINGS = {"provisioningClass": "provisioningClassName", "Parameters": "parameters"}


def correct(inspection: Inspection) -> None:
    spec = inspection.body.get("spec")
    if not isinstance(spec, dict):
        return
    for old, new in _OLD_SPELLINGS.items():
        if old in spec and new not in spec:
            spec[new] = spec.pop(old)
            inspection.report(codes.OLD_SPELLING, ("spec", old), f"spec.{old} is read as {new}", hint=f"write {new}")
            inspection.moved(("spec", new), ("spec", old))


def check(inspection: Inspection) -> None:
    spec = mapping_at(inspection.body, "spec")
    class_name = spec.get("provisioningClassName", "")
    if class_name not in KNOWN_CLASSES:
        inspection.report(
            codes.FOREIGN_CLASS,
            ("spec", "provisioningClassName"),
            f"class {class_name} is not provided here: the request is left to others",
            hint=f"the classes here are {', '.join(KNOWN_CLASSES)}",
        )
    valid_until = mapping_at(spec, "parameters").get(VALID_UNTIL_SECONDS)
    if valid_until is not None and not (valid_until.isdecimal() and int(valid_until) > 0):
        inspection.report(
            codes.INVALID_PARAMETER,
            ("spec", "parameters", VALID_UNTIL_SECONDS),
            f"{VALID_UNTIL_SECONDS} must be a number of seconds above 0, not {valid_until!r}; the default is used",
            hint=f'write {VALID_UNTIL_SECONDS}: "600"',
        )


def read(ref: ObjectRef, manifest: Manifest, origin: Origin) -> ProvisioningRequest:
    spec = mapping_at(manifest, "spec")
    of_the_server = manifest if origin.position is None else {}
    return ProvisioningRequest(
        ref=ref,
        class_name=spec["provisioningClassName"],
        pod_sets=tuple(PodSet(pod_set["podTemplateRef"]["name"], pod_set["count"]) for pod_set in spec["podSets"]),
        parameters=labels_of(spec, "parameters"),
        annotations=labels_of(manifest, "metadata", "annotations"),
        position=origin.position,
        created=created_of(of_the_server),
        generation=generation_of(manifest),
        status_conditions=conditions_of(of_the_server),
        uid=str(mapping_at(of_the_server, "metadata").get("uid") or ""),
        status_times=condition_times_of(of_the_server),
        status_manager=origin.other_manager("status.conditions"),
    )


PROVISIONING_REQUEST = Kind(
    group=GROUP,
    name="ProvisioningRequest",
    versions=("v1", "v1beta1"),
    slot="provisioning_requests",
    schema="provisioning_request",
    correct=correct,
    check=check,
    read=read,
)

"""ProvisioningRequest (autoscaling.x-k8s.io) and headroom's ProvisioningClass: rules and reading."""

from __future__ import annotations

from reconciler.manifests.capacity_buffer import GROUP
from reconciler.manifests.documents.document import Inspection, mapping_at
from reconciler.manifests.documents.structure import nearest
from reconciler.manifests.kind import (
    Kind,
    Origin,
    condition_times_of,
    conditions_of,
    created_of,
    labels_of,
)
from reconciler.model import codes
from reconciler.model.marks import RESERVE_ANNOTATION
from reconciler.model.provisioning_requests import (
    CLASSES,
    PARAMETERS,
    PodSet,
    ProvisioningClass,
    ProvisioningRequest,
    RequestKind,
    parameter_problems,
    parameters_of,
)
from reconciler.model.refs import ObjectRef
from reconciler.model.view import Manifest

KNOWN_CLASSES = tuple(CLASSES)


def check(inspection: Inspection) -> None:
    spec = mapping_at(inspection.body, "spec")
    class_name = spec.get("provisioningClassName", "")
    if class_name not in KNOWN_CLASSES:
        inspection.report(
            codes.FOREIGN_CLASS,
            ("spec", "provisioningClassName"),
            f"class {class_name} is not one of headroom's: the request is left to other controllers",
            hint=_similar_class(class_name) or f"headroom's classes are {', '.join(KNOWN_CLASSES)}",
        )
    check_parameters(inspection, class_name, ("spec", "parameters"))
    _check_reserve(inspection, class_name)


def _similar_class(class_name: str) -> str:
    """`did you mean "check-capacity.kubernetes.io"?`, or "". The domain, which many classes share, is not compared."""
    first_part, _, _ = class_name.partition(".")
    similar = [name for name in KNOWN_CLASSES if nearest(first_part, [name.partition(".")[0]])]
    return nearest(class_name, similar)


def _check_reserve(inspection: Inspection, class_name: str) -> None:
    """Reports a reservation on a request that headroom makes no nodes for."""
    asked = mapping_at(inspection.body, "metadata", "annotations").get(RESERVE_ANNOTATION)
    kind = CLASSES.get(class_name)
    if asked != "true" or kind is RequestKind.ATOMIC:
        return
    why = (
        "on a check"
        if kind is RequestKind.CHECK
        else f"on a request of class {class_name}, which is left to other controllers"
    )
    inspection.report(
        codes.ANNOTATION_WITHOUT_EFFECT,
        ("metadata", "annotations", RESERVE_ANNOTATION),
        f"{RESERVE_ANNOTATION} has no effect {why}: headroom makes no node for it",
        hint=(_similar_class(class_name) if kind is None else "") or "remove it, or ask for an atomic class",
    )


def check_parameters(inspection: Inspection, class_name: str, path: tuple[str, ...]) -> None:
    """Reports parameters at this path that are ignored. The parameters of other controllers' classes are not known."""
    kind = CLASSES.get(class_name)
    if kind is None:
        return
    for problem in parameter_problems(kind, labels_of(inspection.body, *path)):
        code = codes.UNKNOWN_PARAMETER if problem.unknown else codes.INVALID_PARAMETER
        similar = nearest(problem.name, parameters_of(kind)) if problem.name not in PARAMETERS else ""
        inspection.report(code, (*path, problem.name), problem.message, hint=similar or problem.hint)


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
        status_conditions=conditions_of(of_the_server),
        uid=str(mapping_at(of_the_server, "metadata").get("uid") or ""),
        status_times=condition_times_of(of_the_server),
        status_manager=origin.other_manager("status.conditions"),
        queued_as=_queued_as(of_the_server),
        deleting="deletionTimestamp" in mapping_at(of_the_server, "metadata"),
    )


def _queued_as(manifest: Manifest) -> str:
    """The name of Kueue's Workload that owns the object; "" for none."""
    owners = mapping_at(manifest, "metadata").get("ownerReferences") or ()
    names = (
        str(owner.get("name", ""))
        for owner in owners
        if owner.get("kind") == "Workload" and str(owner.get("apiVersion", "")).startswith("kueue.x-k8s.io/")
    )
    return next(names, "")


PROVISIONING_REQUEST = Kind(
    group=GROUP,
    name="ProvisioningRequest",
    versions=("v1", "v1beta1"),
    slot="provisioning_requests",
    schema="provisioning_request",
    renamed={
        ("spec", "provisioningClass"): ("spec", "provisioningClassName"),
        ("spec", "Parameters"): ("spec", "parameters"),
    },
    check=check,
    read=read,
)


def _check_class(inspection: Inspection) -> None:
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


def _read_class(ref: ObjectRef, manifest: Manifest, origin: Origin) -> ProvisioningClass:
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
    renamed={("Parameters",): ("parameters",)},
    check=_check_class,
    read=_read_class,
)

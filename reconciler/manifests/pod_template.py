"""PodTemplates, alone (core v1) and inside workloads: structure, rules, and the shape of their chunks.

A chunk never becomes a pod, so its shape has no volume claims. Its PersistentVolumeClaim will never exist, and a buffer that
waited for it would stay empty forever.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from reconciler.manifests import codes
from reconciler.manifests.document import Path, path_text
from reconciler.manifests.inspection import Inspection, mapping_at
from reconciler.manifests.kind import Kind, Origin, generation_of, labels_of
from reconciler.manifests.pod_shape import pod_spec_from, shape_of
from reconciler.manifests.structure import check_structure
from reconciler.model.errors import Invalid
from reconciler.model.marks import ANNOTATION_PREFIX
from reconciler.model.pods import PodShape, Workload
from reconciler.model.refs import ObjectRef
from reconciler.model.view import Manifest

CONSUME_REQUEST = "consume-provisioning-request"
CLASS_NAME = "provisioning-class-name"
_PREFIXES = ("autoscaling.x-k8s.io/", "cluster-autoscaler.kubernetes.io/")


TEMPLATE_FIELDS: Mapping[str, Any] = {
    "properties": {"metadata": {}, "spec": {}},
    "x-kubernetes-preserve-unknown-fields": True,
}
"""The fields of a PodTemplateSpec for those beside it; `check_template` has the others."""


def virtual_shape(template: Manifest, namespace: str) -> PodShape:
    """The shape of a chunk made from a PodTemplateSpec. Raises `Invalid`."""
    spec = pod_spec_from(mapping_at(template, "spec"))
    labels = dict(labels_of(template, "metadata", "labels"))
    return replace(shape_of(spec, namespace=namespace, labels=labels), volume_claims=())


def check_template(inspection: Inspection, template: Any, path: Path, around: Iterable[str] = ()) -> None:
    """Reports what is wrong with the PodTemplateSpec at the path. around: the fields that belong beside it."""
    before = len(inspection.findings)
    check_structure(inspection, "pod_template", template, path, tuple(around))
    if any(finding.severity == codes.WRONG_TYPE.severity for finding in inspection.findings[before:]):
        return
    annotations, at = mapping_at(template, "metadata", "annotations"), (*path, "metadata", "annotations")
    check_consumption(inspection, annotations, at)
    _check_misplaced(inspection, annotations, at)
    try:
        virtual_shape(template, inspection.ref.namespace)
    except Invalid as error:
        inspection.report(codes.INVALID_VALUE, (*path, "spec"), error.message, hint=error.hint)


def _check_misplaced(inspection: Inspection, annotations: Mapping[str, Any], path: Path) -> None:
    """Reports headroom's own annotations, which have no effect on pods."""
    for name in annotations:
        if name.startswith(ANNOTATION_PREFIX):
            inspection.report(
                codes.ANNOTATION_WITHOUT_EFFECT,
                (*path, name),
                f"{name} has no effect on pods",
                hint="write it in metadata.annotations of the object that it is about, or remove it",
            )


def check_pod_spec(inspection: Inspection, spec: Any, path: Path) -> None:
    """Reports what is wrong with the bare PodSpec at the path."""
    inspection.moved((*path, "spec"), path)
    check_template(inspection, {"spec": spec}, path)


def check_consumption(inspection: Inspection, annotations: Mapping[str, Any], path: Path) -> None:
    """Reports one consumption annotation without the other, since pods need both (ProvisioningRequest proposal)."""
    for prefix in _PREFIXES:
        names = (prefix + CONSUME_REQUEST, prefix + CLASS_NAME)
        found = [name for name in names if name in annotations]
        if len(found) == 1:
            missing = names[1 - names.index(found[0])]
            inspection.report(
                codes.HALF_CONSUMPTION,
                (*path, found[0]),
                f"{path_text((*path, found[0]))} is set without {missing}: pods need both",
                hint=f"add {missing}, or remove both",
            )


def check(inspection: Inspection) -> None:
    template = inspection.body.get("template")
    if template is None:
        inspection.report(
            codes.MISSING_FIELD,
            ("template",),
            "template is missing",
            hint="a PodTemplate has its pod at template.spec, with no spec above it",
        )
        return
    check_template(inspection, template, ("template",))


def read(ref: ObjectRef, manifest: Manifest, origin: Origin) -> Workload:
    return Workload(
        ref=ref,
        shape=virtual_shape(mapping_at(manifest, "template"), ref.namespace),
        generation=generation_of(manifest),
        position=origin.position,
    )


POD_TEMPLATE = Kind(
    group="",
    name="PodTemplate",
    versions=("v1",),
    slot="workloads",
    fields={"properties": {"template": TEMPLATE_FIELDS}},
    check=check,
    read=read,
)

"""What pods come from: workloads, PodTemplates and priority classes, and how many pods a Job still runs.

Something else deploys workloads. Headroom only reads their pod shape, replicas and selector.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from reconciler.manifests.documents.document import Inspection, mapping_at
from reconciler.manifests.documents.load import schema_of
from reconciler.manifests.documents.structure import check_structure
from reconciler.manifests.kind import Kind, Origin, generation_of, labels_of
from reconciler.manifests.pods.pod_shape import converted, pod_spec_from, selector_of, shape_of
from reconciler.manifests.pods.pod_spec_wire import (
    LabelSelectorWire,
    TemplateWire,
    WorkloadSpecWire,
    WorkloadStatusWire,
)
from reconciler.model import codes
from reconciler.model.errors import Invalid
from reconciler.model.marks import ANNOTATION_PREFIX
from reconciler.model.pods import GROUP_OF_WORKLOAD, PodShape, PriorityClass, Workload
from reconciler.model.refs import ObjectRef, Path, SourcePosition, path_text
from reconciler.model.requirements import LabelSelector
from reconciler.model.view import Manifest

ENDINGS = frozenset({"Complete", "Failed", "FailureTarget", "SuccessCriteriaMet"})
"""Condition types of a Job that has ended or is ending: no more pods are created for it."""


def workload_from(
    ref: ObjectRef,
    spec: WorkloadSpecWire,
    status: WorkloadStatusWire | None = None,
    *,
    manager: Callable[[str], str | None] = lambda _: None,
    generation: int | None = None,
    position: SourcePosition | None = None,
) -> Workload:
    """A workload of Kubernetes' own, in Git or in the cluster. manager: the other manager that owns the field at a path. Raises `Invalid`."""
    status = status or WorkloadStatusWire()
    template, replicas, path = spec.template, spec.replicas, "spec.replicas"
    if ref.kind == "Job":
        replicas, path = _pods_left(spec, status), "spec.parallelism"
    elif ref.kind == "CronJob":
        job = WorkloadSpecWire() if spec.job_template is None else spec.job_template.spec
        # The Jobs that it creates have not begun.
        replicas = _pods_left(msgspec.structs.replace(job, suspend=spec.suspend), WorkloadStatusWire())
        template, path = job.template, "spec.jobTemplate"
    return Workload(
        ref=ref,
        shape=None if template is None else template_shape(template, ref.namespace),
        replicas=replicas,
        observed_replicas=status.replicas,
        selector=_selector(ref, spec.selector),
        replicas_manager=manager(path),
        generation=generation,
        position=position,
    )


def template_shape(template: TemplateWire, namespace: str) -> PodShape:
    """The shape of pods made from the template, as a chunk has it. Raises `Invalid`."""
    labels = None if template.metadata is None else template.metadata.labels
    return shape_of(template.spec, namespace=namespace, labels=labels or {})


def _pods_left(job: WorkloadSpecWire, status: WorkloadStatusWire) -> int:
    """min(parallelism, completions - succeeded); none when it has ended or is suspended.

    Without completions the pods share a queue of work: once one has succeeded, no new pod is made.
    """
    done = status.succeeded or 0
    if job.suspend or any(item.type in ENDINGS and item.status == "True" for item in status.conditions or ()):
        return 0
    most = 1 if job.parallelism is None else max(0, job.parallelism)
    if job.completions is not None:
        return max(0, min(most, job.completions - done))
    if done and job.parallelism is not None:
        return min(most, status.active or 0)
    return 0 if done else most


def _selector(ref: ObjectRef, written: Mapping[str, Any] | None) -> LabelSelector | None:
    if written is None:
        return None
    if ref.kind == "ReplicationController":  # the one kind whose selector is a bare map of labels
        written = {"matchLabels": written}
    return selector_of(converted(written, LabelSelectorWire, "spec.selector"))


CONSUME_REQUEST = "consume-provisioning-request"
CLASS_NAME = "provisioning-class-name"
_PREFIXES = ("autoscaling.x-k8s.io/", "cluster-autoscaler.kubernetes.io/")


def virtual_shape(template: Manifest, namespace: str) -> PodShape:
    """The shape of a chunk made from a PodTemplateSpec. Raises `Invalid`."""
    spec = pod_spec_from(mapping_at(template, "spec"))
    labels = dict(labels_of(template, "metadata", "labels"))
    return shape_of(spec, namespace=namespace, labels=labels)


def check_template(inspection: Inspection, template: Any, path: Path, around: Iterable[str] = ()) -> None:
    """Reports what is wrong with the PodTemplateSpec at the path. around: the fields that belong beside it."""
    if not check_structure(inspection, "pod_template", template, path, tuple(around)):
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
        present = [name for name in names if name in annotations]
        if len(present) == 1:
            missing = names[1 - names.index(present[0])]
            inspection.report(
                codes.HALF_CONSUMPTION,
                (*path, present[0]),
                f"{path_text((*path, present[0]))} is set without {missing}: pods need both",
                hint=f"add {missing}, or remove both",
            )


def _check_pod_template(inspection: Inspection) -> None:
    template = inspection.body.get("template")
    if template is not None:
        check_template(inspection, template, ("template",))


def _read_pod_template(ref: ObjectRef, manifest: Manifest, origin: Origin) -> Workload:
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
    schema="workloads/PodTemplate",
    check=_check_pod_template,
    read=_read_pod_template,
)


_POD = ("spec", "template")
_POD_OF_A_CRON_JOB = ("spec", "jobTemplate", "spec", "template")


def _check_workload(inspection: Inspection) -> None:
    """Runs even on documents that violate the schema, so that what is wrong with their pods is told too."""
    path = _POD_OF_A_CRON_JOB if inspection.ref.kind == "CronJob" else _POD
    template = inspection.get(*path)
    if template is not None:
        beside = schema_of(f"workloads/{inspection.ref.kind}")
        for step in path[:-1]:
            beside = beside["properties"][step]
        check_template(inspection, template, path, beside["properties"])
    for annotation in sorted(mapping_at(inspection.body, "metadata", "annotations")):
        if annotation.endswith((f"/{CONSUME_REQUEST}", f"/{CLASS_NAME}")):
            inspection.report(
                codes.HALF_CONSUMPTION,
                ("metadata", "annotations", annotation),
                f"{annotation} has no effect here: only pods consume a provisioning request",
                hint=f"move it to {'.'.join(path)}.metadata.annotations",
            )


def _read_workload(ref: ObjectRef, manifest: Manifest, origin: Origin) -> Workload:
    spec = converted(mapping_at(manifest, "spec"), WorkloadSpecWire, "spec")
    return workload_from(ref, spec, generation=generation_of(manifest), position=origin.position)


WORKLOADS = tuple(
    Kind(
        group=group,
        name=name,
        versions=("v1",),
        slot="workloads",
        schema=f"workloads/{name}",
        applied=False,
        check=_check_workload,
        checks_anything=True,
        read=_read_workload,
    )
    for name, group in GROUP_OF_WORKLOAD.items()
)


def _read_priority_class(ref: ObjectRef, manifest: Manifest, origin: Origin) -> PriorityClass:
    return PriorityClass(
        name=ref.name,
        value=manifest["value"],
        global_default=bool(manifest.get("globalDefault")),
        position=origin.position,
    )


PRIORITY_CLASS = Kind(
    group="scheduling.k8s.io",
    name="PriorityClass",
    versions=("v1",),
    slot="priority_classes",
    schema="priority_class",
    namespaced=False,
    applied=False,
    read=_read_priority_class,
)

"""Deployment, StatefulSet, ReplicaSet, ReplicationController, Job and CronJob: the workloads that buffers refer to.

Something else deploys them. Headroom only reads their pod shape, replicas and selector.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from reconciler.manifests import codes
from reconciler.manifests.inspection import Inspection, mapping_at
from reconciler.manifests.job import pods_left
from reconciler.manifests.kind import Kind, Origin, generation_of
from reconciler.manifests.pod_shape import selector_of
from reconciler.manifests.pod_spec_wire import LabelSelectorWire
from reconciler.manifests.pod_template import (
    CLASS_NAME,
    CONSUME_REQUEST,
    TEMPLATE_FIELDS,
    check_template,
    virtual_shape,
)
from reconciler.model.errors import Invalid
from reconciler.model.pods import Workload
from reconciler.model.refs import ObjectRef
from reconciler.model.requirements import LabelSelector
from reconciler.model.view import Manifest

_Steps = tuple[str, ...]
_PARALLELISM = "parallelism"
_REPLICAS = ("replicas", "minReadySeconds", "selector", "template")
_FIELDS: Mapping[str, tuple[str, ...]] = {
    "Deployment": (*_REPLICAS, "strategy", "revisionHistoryLimit", "paused", "progressDeadlineSeconds"),
    "StatefulSet": (
        *(*_REPLICAS, "volumeClaimTemplates", "serviceName", "podManagementPolicy", "updateStrategy"),
        *("revisionHistoryLimit", "persistentVolumeClaimRetentionPolicy", "ordinals"),
    ),
    "ReplicaSet": _REPLICAS,
    "ReplicationController": _REPLICAS,
    "Job": (
        *(_PARALLELISM, "completions", "activeDeadlineSeconds", "podFailurePolicy", "successPolicy", "backoffLimit"),
        *("backoffLimitPerIndex", "maxFailedIndexes", "selector", "manualSelector", "template", "completionMode"),
        *("ttlSecondsAfterFinished", "suspend", "podReplacementPolicy", "managedBy"),
    ),
    "CronJob": (
        *("schedule", "timeZone", "startingDeadlineSeconds", "concurrencyPolicy", "suspend", "jobTemplate"),
        *("successfulJobsHistoryLimit", "failedJobsHistoryLimit"),
    ),
}
"""The fields of each spec (Kubernetes: apps/v1, batch/v1, core/v1). Their values are of no interest, except those that are read."""


def _fields(name: str) -> Mapping[str, Any]:
    """The names of the fields of a workload, as in a schema."""
    selector: Mapping[str, Any] = (
        {} if name == "ReplicationController" else {"properties": {"matchLabels": {}, "matchExpressions": {}}}
    )
    known = {"template": TEMPLATE_FIELDS, "selector": selector}
    spec: dict[str, Any] = {field: known.get(field, {}) for field in _FIELDS[name]}
    if "jobTemplate" in spec:
        spec["jobTemplate"] = {"properties": {"metadata": {}, **_fields("Job")["properties"]}}
    return {"properties": {"spec": {"properties": spec}}}


def _workload(group: str, name: str, *, replicas: _Steps = ("spec", "replicas"), pod: _Steps = ("spec",)) -> Kind:
    """replicas: the path of the number. pod: the path of the parent of `template`."""
    template = (*pod, "template")
    return Kind(
        group=group,
        name=name,
        versions=("v1",),
        slot="workloads",
        fields=_fields(name),
        applied=False,
        check=_checking(replicas, template),
        read=_reading(replicas, template),
    )


def _checking(replicas: _Steps, template: _Steps) -> Callable[[Inspection], None]:
    def check(inspection: Inspection) -> None:
        count = inspection.get(*replicas)
        if count is not None and (not isinstance(count, int) or isinstance(count, bool) or count < 0):
            inspection.report(
                codes.WRONG_TYPE,
                replicas,
                f"{'.'.join(replicas)} must be a whole number of at least 0",
                hint="write it without quotes, such as 3",
            )
        pod = inspection.get(*template)
        if pod is None:
            inspection.report(codes.MISSING_FIELD, template, f"{'.'.join(template)} is missing")
        else:
            check_template(
                inspection, pod, template, _FIELDS["Job" if "jobTemplate" in template else inspection.ref.kind]
            )
        for annotation in sorted(mapping_at(inspection.body, "metadata", "annotations")):
            if annotation.endswith((f"/{CONSUME_REQUEST}", f"/{CLASS_NAME}")):
                inspection.report(
                    codes.HALF_CONSUMPTION,
                    ("metadata", "annotations", annotation),
                    f"{annotation} has no effect here: only pods consume a provisioning request",
                    hint=f"move it to {'.'.join(template)}.metadata.annotations",
                )

    return check


def _reading(replicas: _Steps, template: _Steps) -> Callable[[ObjectRef, Manifest, Origin], Workload]:
    def read(ref: ObjectRef, manifest: Manifest, origin: Origin) -> Workload:
        size = mapping_at(manifest, *replicas[:-1])
        count = size.get(replicas[-1])
        observed = mapping_at(manifest, "status").get("replicas")
        return Workload(
            ref=ref,
            shape=virtual_shape(mapping_at(manifest, *template), ref.namespace),
            replicas=_of_job(manifest, size) if replicas[-1] == _PARALLELISM else count,
            observed_replicas=observed if isinstance(observed, int) else None,
            selector=_selector(ref, mapping_at(manifest, "spec").get("selector")),
            replicas_manager=origin.other_manager(".".join(replicas)),
            generation=generation_of(manifest),
            position=origin.position,
        )

    return read


def _of_job(manifest: Manifest, size: Manifest) -> int:
    """The size of a Job, or of the Jobs that a CronJob creates. A Job's progress is known only in the cluster."""
    completions = size.get("completions")
    return pods_left(
        size.get(_PARALLELISM),
        completions if isinstance(completions, int) else None,
        suspended=mapping_at(manifest, "spec").get("suspend") is True,
    )


def _selector(ref: ObjectRef, selector: Any) -> LabelSelector | None:
    if selector is None:
        return None
    if ref.kind == "ReplicationController":  # the one kind whose selector is a bare map of labels
        selector = {"matchLabels": selector}
    try:
        return selector_of(msgspec.convert(selector, LabelSelectorWire))
    except msgspec.ValidationError as error:
        raise Invalid(f"spec.selector: {error}", hint="write selector: {matchLabels: {app: web}}") from error


WORKLOADS: tuple[Kind, ...] = (
    _workload("apps", "Deployment"),
    _workload("apps", "StatefulSet"),
    _workload("apps", "ReplicaSet"),
    _workload("", "ReplicationController"),
    _workload("batch", "Job", replicas=("spec", _PARALLELISM)),
    _workload(
        "batch",
        "CronJob",
        replicas=("spec", "jobTemplate", "spec", _PARALLELISM),
        pod=("spec", "jobTemplate", "spec"),
    ),
)

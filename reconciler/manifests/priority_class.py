"""PriorityClass (scheduling.k8s.io/v1), read for the priority of pods."""

from __future__ import annotations

from reconciler.manifests.kind import Kind, Origin
from reconciler.model.pods import PriorityClass
from reconciler.model.refs import ObjectRef
from reconciler.model.view import Manifest


def read(ref: ObjectRef, manifest: Manifest, origin: Origin) -> PriorityClass:
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
    read=read,
)

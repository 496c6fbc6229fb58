"""Manifests from Git against the cluster's objects: what must be created or updated.

A live object is up to date when it has every declared field and its `applied-hash` is that of the manifest. The hash
reveals a field that was removed from the manifest, which comparing the declared fields alone cannot.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from reconciler.model.changes import Action, FieldChange, ObjectChange
from reconciler.model.declared import Declared, DeclaredManifest
from reconciler.model.field_differences import DiffRules, path_text
from reconciler.model.findings import Code, Finding
from reconciler.model.marks import MODE_ANNOTATION, OWN_MANAGER, PART_OF_LABEL, SUSPEND_ANNOTATION
from reconciler.model.view import ClusterView, LiveObject, Manifest
from reconciler.plan.codes import POOL_NOT_THERE, STATIC_POOL_CHANGE
from reconciler.plan.objects.drift import Drift, drift_finding, drift_of, is_taken_back

HASH_ANNOTATION = "headroom.dev/applied-hash"
SOURCE_ANNOTATION = "headroom.dev/source"
PARTIAL_ANNOTATION = "headroom.dev/partial"
"""On objects of which headroom applies only some fields: never members of the ApplySet, never deleted."""
NODE_POOL = "NodePool"
_APPLY_ORDER = {"PodTemplate": 0, "NodePool": 1}
_OF_THE_SERVER = frozenset(
    {"uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "managedFields", "selfLink"},
)


@dataclass(frozen=True, slots=True)
class ObjectPlan:
    changes: tuple[ObjectChange, ...] = ()
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = field(default=())


def annotations_of(body: Manifest | None) -> Mapping[str, str]:
    metadata = (body or {}).get("metadata") or {}
    annotations: Mapping[str, str] = metadata.get("annotations") or {}
    return annotations


def partial_mark(applyset_id: str) -> str:
    """Value of the annotation on objects that are applied in part."""
    return applyset_id or "true"


def object_changes(declared: Declared, view: ClusterView, applyset_id: str, drift: Drift = Drift.CORRECT) -> ObjectPlan:
    """Creations and updates in the order of applying: objects that others refer to come first.

    applyset_id: of the ApplySet that every whole object joins by label; "" for none. drift: the policy for changes in the cluster where the
    manifest names none.
    """
    changes: list[ObjectChange] = []
    findings: list[Finding] = []
    notes: list[str] = []
    for item in sorted(declared.manifests, key=_order):
        live = view.objects.get(item.ref)
        mode = annotations_of(item.manifest).get(MODE_ANNOTATION)
        if mode == "Ignore" or (mode == "IfNotPresent" and live is not None):
            continue
        if _is_suspended(item, live):
            becomes = "it is not created" if live is None else "it is left as it is"
            notes.append(f"{item.ref} is suspended: {becomes}")
            continue
        refused = _refusal(item, live)
        if refused is not None:
            findings.append(refused)
            continue
        change = _change(item, live, applyset_id, reduced=view.reduced)
        if change is not None and live is not None and _was_applied(change.manifest, live):
            if drift_of(annotations_of(item.manifest), drift) is Drift.REPORT:
                findings.append(drift_finding(item, change.changes, live))
                continue
            reason = f"changed in the cluster since it was applied from {item.position.file}"
            change = replace(change, reason=reason, force=is_taken_back(change.changes, live))
        if change is not None:
            changes.append(change)
    return ObjectPlan(tuple(changes), tuple(findings), tuple(notes))


def _order(item: DeclaredManifest) -> tuple[int, str, str, str, str]:
    ref = item.ref
    return (_APPLY_ORDER.get(ref.kind, len(_APPLY_ORDER)), ref.group, ref.kind, ref.namespace, ref.name)


def _is_suspended(item: DeclaredManifest, live: LiveObject | None) -> bool:
    bodies = (item.manifest, None if live is None else live.body)
    return any(annotations_of(body).get(SUSPEND_ANNOTATION) == "true" for body in bodies)


def _refusal(item: DeclaredManifest, live: LiveObject | None) -> Finding | None:
    if item.ref.kind != NODE_POOL:
        return None
    if item.partial and live is None:
        return pool_not_there(item)
    if live is None:
        return None
    is_static = "replicas" in (live.body.get("spec") or {})
    becomes_static = "replicas" in (item.manifest.get("spec") or {})
    if is_static == becomes_static or (item.partial and not becomes_static):
        return None
    words = ("dynamic", "static") if becomes_static else ("static", "dynamic")
    return _finding(
        item,
        STATIC_POOL_CHANGE,
        f"{words[0]}, and cannot become {words[1]}: Karpenter refuses to add or remove spec.replicas",
        "declare a NodePool of another name, and remove this one when its nodes are gone",
        "spec.replicas",
    )


def pool_not_there(item: DeclaredManifest) -> Finding:
    """Condition message for a partial document of a NodePool that the cluster does not have."""
    return _finding(
        item,
        POOL_NOT_THERE,
        "not in the cluster, and this document has no template to make it from",
        "add spec.template, or correct the name",
    )


def _finding(item: DeclaredManifest, code: Code, message: str, hint: str, path: str = "") -> Finding:
    return Finding(code.name, code.severity, message, item.position, item.ref, path, hint)


def _change(
    item: DeclaredManifest,
    live: LiveObject | None,
    applyset_id: str,
    *,
    reduced: bool,
) -> ObjectChange | None:
    manifest = prepared(item, applyset_id)
    if live is None:
        spec = manifest.get("spec")
        fields = sorted(spec.items()) if isinstance(spec, Mapping) else ()
        created = tuple(FieldChange(path_text(("spec", key)), None, value) for key, value in fields)
        reason = f"declared in {item.position.file}, not in the cluster"
        return ObjectChange(item.ref, Action.CREATE, created, manifest, item.position, reason)
    changes = _differences(item, manifest, live, reduced=reduced)
    if not changes:
        return None
    reason = f"differs from {item.position.file}"
    return ObjectChange(item.ref, Action.UPDATE, changes, manifest, item.position, reason)


def _was_applied(manifest: Manifest | None, live: LiveObject) -> bool:
    """Whether the very same manifest was applied before, so that what differs was changed in the cluster."""
    return annotations_of(live.body).get(HASH_ANNOTATION) == annotations_of(manifest).get(HASH_ANNOTATION)


def _differences(
    item: DeclaredManifest,
    manifest: Manifest,
    live: LiveObject,
    *,
    reduced: bool,
) -> tuple[FieldChange, ...]:
    compared = {key: value for key, value in manifest.items() if key not in {"apiVersion", "kind"}}
    comparison = DiffRules(drops_empty=not item.ref.group)
    hash_path = path_text(("metadata", "annotations", HASH_ANNOTATION))
    found = comparison.differences(compared, _with_annotations(live.body))
    if _was_applied(manifest, live):
        # The same manifest was applied, so a field that a snapshot lacks was left out of the snapshot, not removed in the cluster.
        return tuple(change for change in found if not (reduced and change.before is None))
    # The hash only says that the manifest changed. The other differences and the owners of fields say which fields.
    others = tuple(change for change in found if change.path != hash_path)
    return (*others, *_given_up(manifest, live)) or found


def _with_annotations(body: Manifest) -> Manifest:
    """The object with a mapping of annotations, even an empty one, so that they can be compared one by one."""
    return {**body, "metadata": {**(body.get("metadata") or {}), "annotations": annotations_of(body)}}


def _given_up(manifest: Manifest, live: LiveObject) -> tuple[FieldChange, ...]:
    """Fields of the spec that headroom set once and the manifest no longer has."""
    declared, there = manifest.get("spec") or {}, live.body.get("spec") or {}
    names = sorted(
        name
        for path in live.managers.get(OWN_MANAGER, frozenset())
        if path.startswith("spec.") and (name := path.split(".")[1]) not in declared and name in there
    )
    return tuple(FieldChange(path_text(("spec", name)), there[name], None) for name in dict.fromkeys(names))


def prepared(item: DeclaredManifest, applyset_id: str) -> dict[str, Any]:
    """The manifest as it is applied: without nulls, status and fields that the server sets, with headroom's own marks."""
    body = {key: _without_nulls(value) for key, value in item.manifest.items() if key != "status" and value is not None}
    metadata = {key: value for key, value in (body.get("metadata") or {}).items() if key not in _OF_THE_SERVER}
    written = dict(metadata.get("annotations") or {})
    annotations = {key: value for key, value in written.items() if key not in {PARTIAL_ANNOTATION, HASH_ANNOTATION}}
    annotations[SOURCE_ANNOTATION] = item.position.file
    metadata["name"] = item.ref.name
    if item.ref.namespace:
        metadata["namespace"] = item.ref.namespace
    if item.partial:
        annotations[PARTIAL_ANNOTATION] = partial_mark(applyset_id)
    elif applyset_id:
        metadata["labels"] = dict(metadata.get("labels") or {}) | {PART_OF_LABEL: applyset_id}
    body["metadata"] = metadata | {"annotations": annotations}
    annotations[HASH_ANNOTATION] = _hash(body)
    return body


def _without_nulls(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    return value


def _hash(body: Mapping[str, Any]) -> str:
    text = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"

"""Manifests from Git against the cluster's objects: what must be created or updated.

A live object is up to date when it has every declared field and its `applied-hash` is that of the manifest. The hash
reveals a field that was removed from the manifest, which comparing the declared fields alone cannot.

A live object has drifted if it carries the hash of the manifest that would be applied, and yet differs from it. Then it was changed in the
cluster, not in Git. The policy is a setting (`drift`) and, for one object, the annotation `headroom.dev/drift`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from reconciler.model import codes
from reconciler.model.changes import Action, Drift, FieldChange, ObjectChange
from reconciler.model.declared import Declared, DeclaredManifest
from reconciler.model.field_differences import differences
from reconciler.model.findings import Code, Finding
from reconciler.model.marks import (
    ADOPT_ANNOTATION,
    APPLYSET_PREFIX,
    CLAIM_ANNOTATION,
    DRIFT_ANNOTATION,
    INVENTORY_ANNOTATION,
    MODE_ANNOTATION,
    OWN_MANAGER,
    PART_OF_LABEL,
    SUSPEND_ANNOTATION,
)
from reconciler.model.refs import ObjectRef, path_text
from reconciler.model.view import ClusterView, LiveObject, Manifest

HASH_ANNOTATION = "headroom.dev/applied-hash"
SOURCE_ANNOTATION = "headroom.dev/source"
PARTIAL_ANNOTATION = "headroom.dev/partial"
"""On objects of which headroom applies only some fields: never members of the ApplySet, never deleted."""
NODE_POOL = "NodePool"
_APPLY_ORDER = {"PodTemplate": 0, "NodePool": 1}


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


@dataclass(frozen=True, slots=True)
class Owner:
    """An inventory. id: of its ApplySet, "" for none. name: its ConfigMap as NAMESPACE/NAME."""

    id: str = ""
    name: str = ""

    def of_others(self, live: LiveObject | None) -> Owner | None:
        """The other inventory that a live object belongs to, by its label or, where only fields are applied, by its mark."""
        if live is None or not self.id:
            return None
        annotations = annotations_of(live.body)
        labels = (live.body.get("metadata") or {}).get("labels") or {}
        found = labels.get(PART_OF_LABEL) or annotations.get(PARTIAL_ANNOTATION) or ""
        if not found.startswith(APPLYSET_PREFIX) or found == self.id:
            return None
        return Owner(found, annotations.get(INVENTORY_ANNOTATION, ""))

    @property
    def words(self) -> str:
        return self.name or f"the ApplySet {self.id}"


def object_changes(declared: Declared, view: ClusterView, owner: Owner, drift: Drift = Drift.CORRECT) -> ObjectPlan:
    """Creations and updates in the order of applying: objects that others refer to come first.

    owner: the inventory whose ApplySet every whole object joins by label. drift: the policy for changes in the cluster where the
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
        refused = _refusal(item, live) or _owned_elsewhere(item, owner.of_others(live))
        if refused is not None:
            findings.append(refused)
            continue
        if live is not None and (other := claimant(live, owner)):
            findings.append(_declared_elsewhere(item, other))
        change = _change(item, live, owner, reduced=view.reduced)
        if change is not None and live is not None and _was_applied(change.manifest, live):
            if drift_of(annotations_of(item.manifest), drift) is Drift.REPORT:
                findings.append(drift_finding(item, change.changes, live))
                continue
            reason = f"changed in the cluster since it was applied from {item.position.file}"
            change = replace(change, reason=reason, force=is_taken_back(change.changes, live))
        if change is not None:
            changes.append(change)
    refused_refs = {item.ref for item in findings if item.code == codes.OWNED_ELSEWHERE.name and item.ref is not None}
    return ObjectPlan((*changes, *_claims(view, owner, refused_refs)), tuple(findings), tuple(notes))


def _claims(view: ClusterView, owner: Owner, refused: Collection[ObjectRef]) -> Iterator[ObjectChange]:
    """Marks objects of other inventories that are declared here too, so that their owner does not delete them, and takes marks back."""
    if not owner.name:
        return
    for ref, live in sorted(view.objects.items()):
        claimed, is_others = annotations_of(live.body).get(CLAIM_ANNOTATION), owner.of_others(live) is not None
        wanted = ref in refused and is_others
        if (wanted and claimed is None) or (claimed == owner.name and not wanted):
            after = owner.name if wanted else None
            words = "declared here too, and not to be deleted by its owner" if wanted else "no longer declared here too"
            mark = FieldChange(path_text(("metadata", "annotations", CLAIM_ANNOTATION)), claimed, after)
            yield ObjectChange(ref, Action.UPDATE, (mark,), reason=words)


def claimant(live: LiveObject, owner: Owner) -> str:
    """The other inventory whose repository declares the object too; "" for none."""
    found = annotations_of(live.body).get(CLAIM_ANNOTATION, "")
    return "" if found == owner.name else found


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
    if item.partial and [name for name, fields in live.managers.items() if "spec.template" in fields] == [OWN_MANAGER]:
        name = item.ref.name
        return _finding(
            item,
            codes.POOL_BECOMES_PARTIAL,
            "headroom alone has applied its template, which a document without spec.template would remove",
            f"keep spec.template here, or annotate this with {MODE_ANNOTATION}: Override, and give the pool another owner first: kubectl get nodepool {name} -o yaml --show-managed-fields=false"
            " | kubectl apply --server-side --force-conflicts --field-manager=platform-team -f -",
        )
    is_static = "replicas" in (live.body.get("spec") or {})
    becomes_static = "replicas" in (item.manifest.get("spec") or {})
    if is_static == becomes_static or (item.partial and not becomes_static):
        return None
    words = ("dynamic", "static") if becomes_static else ("static", "dynamic")
    return _finding(
        item,
        codes.STATIC_POOL_CHANGE,
        f"{words[0]}, and cannot become {words[1]}: Karpenter refuses to add or remove spec.replicas",
        "declare a NodePool of another name, and remove this one when its nodes are gone",
        "spec.replicas",
    )


def _owned_elsewhere(item: DeclaredManifest, other: Owner | None) -> Finding | None:
    if other is None or annotations_of(item.manifest).get(ADOPT_ANNOTATION, "") in {other.name, other.id} - {""}:
        return None
    return _finding(
        item,
        codes.OWNED_ELSEWHERE,
        f"belongs to {'the inventory ' if other.name else ''}{other.words}: this one neither changes nor deletes it",
        f'remove it from one of the two; to take it over, annotate it with {ADOPT_ANNOTATION}: "{other.name or other.id}"',
    )


def _declared_elsewhere(item: DeclaredManifest, other: str) -> Finding:
    return _finding(
        item,
        codes.OWNED_ELSEWHERE,
        f"the repository of the inventory {other} declares it too: it is applied from here",
        "remove it from one of the two",
    )


def new_inventory_finding(view: ClusterView, owner: Owner) -> Finding | None:
    """The finding if this inventory does not exist yet, but objects of other inventories do: it may have been moved."""
    if view.inventory.recorded or not owner.id:
        return None
    others = sorted({other.words for live in view.objects.values() if (other := owner.of_others(live)) is not None})
    count = sum(owner.of_others(live) is not None for live in view.objects.values())
    if not others:
        return None
    are = "object belongs" if count == 1 else "objects belong"
    return codes.INVENTORY_IS_NEW.finding(
        f"the inventory {owner.name} is new, and {count:,} {are} to {' and '.join(others)}",
        hint=f"if the inventory was moved, set inventory.namespace and inventory.name back, or take objects over with {ADOPT_ANNOTATION}",
    )


def pool_not_there(item: DeclaredManifest) -> Finding:
    """Condition message for a partial document of a NodePool that the cluster does not have."""
    return _finding(
        item,
        codes.POOL_NOT_THERE,
        "not in the cluster, and this document has no template to make it from",
        "add spec.template, or correct the name",
    )


def _finding(item: DeclaredManifest, code: Code, message: str, hint: str, path: str = "") -> Finding:
    return code.finding(message, item.position, item.ref, path, hint)


def _change(item: DeclaredManifest, live: LiveObject | None, owner: Owner, *, reduced: bool) -> ObjectChange | None:
    manifest = prepared(item, owner)
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
    item: DeclaredManifest, manifest: Manifest, live: LiveObject, *, reduced: bool
) -> tuple[FieldChange, ...]:
    compared = {key: value for key, value in manifest.items() if key not in {"apiVersion", "kind"}}
    hash_path = path_text(("metadata", "annotations", HASH_ANNOTATION))
    found = differences(compared, _with_annotations(live.body), drops_empty=not item.ref.group)
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


def prepared(item: DeclaredManifest, owner: Owner) -> dict[str, Any]:
    body = dict(item.manifest)
    metadata = dict(body.get("metadata") or {})
    written = dict(metadata.get("annotations") or {})
    annotations = {key: value for key, value in written.items() if key not in {PARTIAL_ANNOTATION, HASH_ANNOTATION}}
    annotations[SOURCE_ANNOTATION] = item.position.file
    if owner.name:
        annotations[INVENTORY_ANNOTATION] = owner.name
    metadata["name"] = item.ref.name
    if item.ref.namespace:
        metadata["namespace"] = item.ref.namespace
    if item.partial:
        annotations[PARTIAL_ANNOTATION] = partial_mark(owner.id)
    elif owner.id:
        metadata["labels"] = dict(metadata.get("labels") or {}) | {PART_OF_LABEL: owner.id}
    body["metadata"] = metadata | {"annotations": annotations}
    annotations[HASH_ANNOTATION] = _hash(body)
    return body


def _hash(body: Mapping[str, Any]) -> str:
    text = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


_OF_PEOPLE = "kubectl"
"""Managers whose names begin so are somebody at a keyboard: kubectl, kubectl-edit, kubectl-patch, kubectl-client-side-apply."""
_REPLICAS = "spec.replicas"
"""Belongs to whatever scales the object, and is never taken back."""


def drift_of(annotations: Mapping[str, str], default: Drift) -> Drift:
    """The policy for one object; an unknown word is the default (the manifest has an error then)."""
    written = annotations.get(DRIFT_ANNOTATION)
    return Drift(written) if written in set(Drift) else default


def is_taken_back(changes: Sequence[FieldChange], live: LiveObject) -> bool:
    """Whether all of it was changed by people, so that applying it may take the fields over."""
    return all(
        change.path != _REPLICAS and all(owner.startswith(_OF_PEOPLE) for owner in _owners(change.path, live))
        for change in changes
    )


def drift_finding(item: DeclaredManifest, changes: Sequence[FieldChange], live: LiveObject) -> Finding:
    fields = "; ".join(f"{change.path} is {_shown(change.before)}, not {_shown(change.after)}" for change in changes)
    owners = sorted({owner for change in changes for owner in _owners(change.path, live)})
    by = f" by {' and '.join(owners)}" if owners else ""
    return codes.DRIFTED.finding(
        f"was changed in the cluster{by} since it was applied: {fields}",
        item.position,
        item.ref,
        changes[0].path,
        f"change it in Git, or set {DRIFT_ANNOTATION}: correct to have it put back",
    )


def _owners(path: str, live: LiveObject) -> list[str]:
    """Other managers that own the field or one beside it, since ownership is known two levels deep only."""
    field = ".".join(path.partition("[")[0].split(".")[:2])
    return [
        manager
        for manager, owned in live.managers.items()
        if field in owned and manager.partition("-")[0] != OWN_MANAGER
    ]


def _shown(value: object) -> str:
    return "absent" if value is None else str(value)

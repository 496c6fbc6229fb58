"""The embedded cluster's API: objects with versions, generations, owners and finalizers; what it refuses, and what it fills in.

The rules are those of the API server and of Karpenter's CustomResourceDefinitions, as far as headroom can break them.

Bodies are replaced, never modified in place, so that a reference to one stays a snapshot of its time.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from reconciler.cluster.embedded.fields import Manager, Merge, Owners, fields_of, fields_v1, merge, update
from reconciler.cluster.resources import APPS, BY_KIND, Resource, group_of
from reconciler.cluster.writes import conflict_words, with_taints
from reconciler.manifests.documents.load import schema_of, violations, with_defaults
from reconciler.manifests.kinds import kind_of
from reconciler.manifests.repository.validate import refused_changes
from reconciler.model.errors import Invalid, Transient
from reconciler.model.nodes import KARPENTER_GROUP
from reconciler.model.quantity import time_text
from reconciler.model.refs import ObjectRef, path_text
from reconciler.model.requirements import Operator, Taint

Body = Mapping[str, Any]
Listener = Callable[[ObjectRef, Body | None, Body | None], None]
"""(ref, body before, body after): None where there is none."""

_UIDS = uuid.UUID("6f1c2d3e-0000-4000-8000-000000000000")
_UNTRACKED = {("", "Pod"), ("", "Event")}
"""Kinds without managedFields. Nobody needs them for pods and events, and there are many of these."""
_ALWAYS_THERE = {"default", "kube-system"}
_STATUS_KINDS_WITHOUT_GENERATION = {("", "Pod"), ("", "Node"), ("", "Namespace"), ("", "ConfigMap")}


class Missing(Invalid):
    """The object does not exist."""


class Conflicting(Invalid):
    """Another manager owns a field, or it is not the object that was meant."""


@dataclass(frozen=True, slots=True)
class Stored:
    body: Body
    owners: Owners


class ObjectStore:
    """Not thread-safe: the embedded cluster guards it. now: gives the time for timestamps.

    makes_namespaces: whether an applied object's missing namespace is made, where an API server would refuse the object.
    """

    def __init__(self, now: Callable[[], datetime], listener: Listener, *, makes_namespaces: bool = False) -> None:
        self._now = now
        self._makes_namespaces = makes_namespaces
        self._listener = listener
        self._objects: dict[ObjectRef, Stored] = {}
        self._kinds: dict[tuple[str, str], set[ObjectRef]] = {}
        self._version = 0
        self._made = 0
        self.scaled: dict[tuple[str, str], Resource] = {}
        """Kinds of which only the scale is known, by group and kind."""

    # Reading

    def get(self, ref: ObjectRef) -> Body | None:
        stored = self._objects.get(ref)
        return None if stored is None else stored.body

    def all(self, group: str, kind: str) -> list[tuple[ObjectRef, Body]]:
        """All objects of a kind, by namespace and name."""
        return [(ref, self._objects[ref].body) for ref in sorted(self._kinds.get((group, kind), ()))]

    # What clients may do

    def apply(self, ref: ObjectRef, manifest: Body, manager: Manager, *, force: bool, dry_run: bool = False) -> bool:
        """Server-side apply, which creates a missing object; returns whether anything changes. Raises `Invalid`, `Conflicting`."""
        resource = resource_of(ref, self.scaled)
        check_version(resource, ref, manifest)
        self._check_namespace(ref, dry_run=dry_run)
        stored = self._objects.get(ref) or Stored({}, {})
        expected = (manifest.get("metadata") or {}).get("resourceVersion")
        if expected and stored.body and stored.body["metadata"].get("resourceVersion") != expected:
            raise Transient(f"Operation cannot be fulfilled on {ref}: the object has been modified")
        wanted = {key: value for key, value in manifest.items() if key != "status"}
        merged = _without_conflicts(merge(stored.body, stored.owners, wanted, manager, force=force))
        return self._admit(ref, stored, merged, manifest, by=manager, dry_run=dry_run)

    def apply_status(self, ref: ObjectRef, status: Body, manager: Manager, *, dry_run: bool = False) -> bool:
        """Server-side apply of the status subresource. Raises `Missing`, `Conflicting`."""
        stored = self._stored(ref)
        merged = _without_conflicts(merge(stored.body, stored.owners, {"status": status}, manager, force=True))
        return self._admit(ref, stored, merged, stored.body, by=manager, dry_run=dry_run)

    def annotate(
        self,
        ref: ObjectRef,
        annotations: Mapping[str, str | None],
        manager: Manager,
        *,
        taints: Sequence[tuple[Taint, bool]] = (),
        dry_run: bool = False,
    ) -> bool:
        """A merge patch of annotations; None removes one. taints: those that a node shall have or not. Raises `Missing`."""
        stored = self._stored(ref)
        metadata = dict(stored.body["metadata"])
        merged = {**(metadata.get("annotations") or {}), **annotations}
        metadata["annotations"] = {key: value for key, value in merged.items() if value is not None}
        if not metadata["annotations"]:
            del metadata["annotations"]
        body = {**stored.body, "metadata": metadata}
        if taints:
            body["spec"] = {**(stored.body.get("spec") or {}), "taints": with_taints(stored.body, taints)}
        owners = update(stored.body, body, stored.owners, manager)
        return self._admit(ref, stored, Merge(body, owners), stored.body, by=manager, dry_run=dry_run)

    def delete(self, ref: ObjectRef, uid: str = "", *, dry_run: bool = False) -> bool:
        """Marks an object with finalizers as deleted, removes one without. False if it is gone already, or if the object of that
        name has another uid."""
        stored = self._objects.get(ref)
        if stored is None:
            return False
        metadata = stored.body["metadata"]
        if uid and metadata["uid"] != uid:
            return False
        if metadata.get("finalizers"):
            if "deletionTimestamp" in metadata:
                return False
            if not dry_run:
                marked = {**metadata, "deletionTimestamp": time_text(self._now())}
                self._put(ref, stored, Stored({**stored.body, "metadata": marked}, stored.owners))
        elif not dry_run:
            self.remove(ref)
        return True

    # What controllers may do

    def create(self, ref: ObjectRef, manifest: Body, manager: str) -> Body:
        """Creates an object. Raises `Invalid`, and `Conflicting` if there is one of that name."""
        if ref in self._objects:
            raise Conflicting(f"{ref} exists already")
        resource_of(ref, self.scaled)
        manifest = {**manifest, "metadata": {**manifest.get("metadata", {}), "name": ref.name}}
        owner = Manager(manager, "Update")
        owners = {} if (ref.group, ref.kind) in _UNTRACKED else update({}, manifest, {}, owner)
        body = self._stamped(ref, admit(ref, None, manifest), owners, by=owner)
        self._put(ref, None, Stored(body, owners))
        return body

    def change(
        self, ref: ObjectRef, change: Callable[[dict[str, Any]], None], manager: str, *, subresource: str = ""
    ) -> Body:
        """Writes an object as a controller does. change: modifies a copy that is two levels deep. Raises `Missing`."""
        stored = self._stored(ref)
        body = {key: dict(value) if isinstance(value, Mapping) else value for key, value in stored.body.items()}
        change(body)
        if body == stored.body:
            return stored.body
        tracked = (ref.group, ref.kind) not in _UNTRACKED
        writer = Manager(manager, "Update", subresource)
        owners = update(stored.body, body, stored.owners, writer) if tracked else stored.owners
        self._admit(ref, stored, Merge(body, owners), stored.body, by=writer, dry_run=False, trusted=True)
        return self._objects[ref].body

    def remove(self, ref: ObjectRef) -> None:
        """Removes an object, even with finalizers."""
        stored = self._objects.pop(ref, None)
        if stored is not None:
            self._kinds[(ref.group, ref.kind)].discard(ref)
            self._version += 1
            self._listener(ref, stored.body, None)

    def load(self, ref: ObjectRef, body: Body) -> None:
        """Adds an object from a snapshot, with its uid, times and owners."""
        resource_of(ref, self.scaled)
        rows = body.get("metadata", {}).get("managedFields") or ()
        owners: Owners = {_manager(row): frozenset(fields_of(row.get("fieldsV1") or {})) for row in rows}
        self._put(ref, None, Stored(self._stamped(ref, body, owners), owners))

    # Inside

    def _stored(self, ref: ObjectRef) -> Stored:
        stored = self._objects.get(ref)
        if stored is None:
            raise Missing(f"{ref} does not exist")
        return stored

    def _check_namespace(self, ref: ObjectRef, *, dry_run: bool) -> None:
        namespace = ObjectRef("", "Namespace", "", ref.namespace)
        if not ref.namespace or ref.namespace in _ALWAYS_THERE or namespace in self._objects:
            return
        if not self._makes_namespaces:
            raise Invalid(f"namespaces {ref.namespace!r} not found", hint="create the namespace first")
        if not dry_run:
            self.create(namespace, {"apiVersion": "v1", "kind": "Namespace"}, "embedded")

    def _admit(
        self,
        ref: ObjectRef,
        stored: Stored,
        merged: Merge,
        written: Body,
        *,
        by: Manager,
        dry_run: bool,
        trusted: bool = False,
    ) -> bool:
        """Stores a merge if it changes anything. trusted: a controller's, which may write what clients may not."""
        new = ref not in self._objects
        if not new and merged.body == stored.body and merged.owners == stored.owners:
            return False
        body = merged.body
        if not trusted:
            named = {**(body.get("metadata") or {}), "name": ref.name}
            body = {**body, "apiVersion": written.get("apiVersion"), "kind": ref.kind, "metadata": named}
            body = admit(ref, None if new else stored.body, body)
        if not new and _content(body) == _content(stored.body) and merged.owners == stored.owners:
            return False
        if not dry_run:
            stamped = self._stamped(ref, body, merged.owners, None if new else stored.body, by=by)
            self._put(ref, None if new else stored, Stored(stamped, merged.owners))
        return True

    def _stamped(
        self, ref: ObjectRef, body: Body, owners: Owners, before: Body | None = None, *, by: Manager | None = None
    ) -> Body:
        """The body with metadata that the server writes. by: the writer; None for a loaded object."""
        self._version += 1
        metadata = {**(body.get("metadata") or {}), "name": ref.name, "resourceVersion": str(self._version)}
        if ref.namespace:
            metadata["namespace"] = ref.namespace
        if not metadata.get("uid"):
            self._made += 1
            metadata["uid"] = str(uuid.uuid5(_UIDS, f"{self._made} {ref}"))
        metadata.setdefault("creationTimestamp", time_text(self._now()))
        if (ref.group, ref.kind) not in _STATUS_KINDS_WITHOUT_GENERATION:
            changed = before is not None and body.get("spec") != before.get("spec")
            metadata["generation"] = int(metadata.get("generation", 1)) + changed
        if owners:
            times = {_manager(row): row["time"] for row in metadata.get("managedFields") or () if "time" in row}
            if by is not None:
                times[by] = time_text(self._now())
            metadata["managedFields"] = [
                {
                    "manager": owner.name,
                    "operation": owner.operation,
                    **({"subresource": owner.subresource} if owner.subresource else {}),
                    **({"time": times[owner]} if owner in times else {}),
                    "apiVersion": body.get("apiVersion", ""),
                    "fieldsType": "FieldsV1",
                    "fieldsV1": fields_v1(fields),
                }
                for owner, fields in sorted(
                    owners.items(), key=lambda item: (item[0].name, item[0].operation, item[0].subresource)
                )
            ]
        return {**body, "kind": ref.kind, "metadata": metadata}

    def _put(self, ref: ObjectRef, before: Stored | None, after: Stored) -> None:
        metadata = after.body["metadata"]
        if "deletionTimestamp" in metadata and not metadata.get("finalizers"):
            self.remove(ref)
            return
        if ref not in self._objects:
            self._kinds.setdefault((ref.group, ref.kind), set()).add(ref)
        self._objects[ref] = after
        self._listener(ref, None if before is None else before.body, after.body)


def taint_rows(name: str, taints: Iterable[Taint]) -> dict[str, Any]:
    """The field of this name with the taints; none without any."""
    rows = [{"key": taint.key, "value": taint.value, "effect": taint.effect} for taint in taints]
    return {name: rows} if rows else {}


def owner_reference(api_version: str, kind: str, name: str, uid: str, **flags: bool) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "name": name, "uid": uid, **flags}


def _content(body: Body) -> Body:
    """A body without the parts that only the server writes."""
    own = {"resourceVersion", "managedFields", "generation"}
    return {**body, "metadata": {key: value for key, value in body.get("metadata", {}).items() if key not in own}}


def _manager(row: Mapping[str, Any]) -> Manager:
    return Manager(row["manager"], row.get("operation", "Update"), row.get("subresource", ""))


def _without_conflicts(merged: Merge) -> Merge:
    if merged.conflicts:
        raise Conflicting(
            conflict_words((manager, ".".join(step[2:] for step in field)) for manager, field in merged.conflicts)
        )
    return merged


NODE_CLASS = Resource("karpenter.kwok.sh", "KWOKNodeClass", "kwoknodeclasses", ("v1alpha1",), namespaced=False)
SERVED = {**BY_KIND, NODE_CLASS.key: NODE_CLASS}
"""By (group, kind), what the embedded cluster serves."""
_IMMUTABLE_SPEC = {(KARPENTER_GROUP, "NodeClaim")}
_OPERATORS = {operator.value for operator in Operator}


def resource_of(ref: ObjectRef, scaled: Mapping[tuple[str, str], Resource]) -> Resource:
    """The kind of an object. scaled: what is served in addition to `SERVED`. Raises `Invalid` for one that is not served."""
    key = (ref.group, ref.kind)
    resource = SERVED.get(key) or scaled.get(key)
    if resource is None:
        raise Invalid(f"no matches for kind {ref.kind!r} in group {ref.group!r}")
    if bool(ref.namespace) != resource.namespaced:
        raise Invalid(f"{ref} {'needs a' if resource.namespaced else 'has no'} namespace")
    return resource


def check_version(resource: Resource, ref: ObjectRef, manifest: Mapping[str, Any]) -> None:
    """Raises `Invalid` unless the manifest is of the kind it is written to, in a version that is served."""
    group, kind = group_of(str(manifest.get("apiVersion", ""))), manifest.get("kind")
    if (group, kind) != resource.key:
        raise Invalid(f"{manifest.get('apiVersion')} {kind} was written to {ref}")
    version = str(manifest.get("apiVersion", "")).rpartition("/")[2]
    if version != resource.versions[0]:
        raise Invalid(f"{resource} is not served as {version}", hint=f"write {resource.api_version}")
    name = (manifest.get("metadata") or {}).get("name")
    if name != ref.name:
        raise Invalid(f"metadata.name {name!r} was written to {ref}")


def admit(ref: ObjectRef, before: Mapping[str, Any] | None, after: Mapping[str, Any]) -> dict[str, Any]:
    """The object as stored, with defaults. before: None if it is new. Raises `Invalid` where the server would refuse it."""
    resource = (ref.group, ref.kind)
    if before is not None and resource in _IMMUTABLE_SPEC and before.get("spec") != after.get("spec"):
        raise Invalid(f"{ref} is invalid: spec is immutable")
    if before is not None:
        for refused in refused_changes(before, after):
            raise Invalid(f"{ref} is invalid: {refused.path}: {refused.message}", hint=refused.hint)
    kind = kind_of(ref.group, ref.kind)
    filled = dict(after)
    if kind is not None:
        schema = schema_of(kind.schema)
        found = violations(kind.schema, {**filled, "metadata": _named(filled)})
        error = next((error for error, rule in found if rule is None), None)
        if error is not None:
            raise Invalid(f"{ref} is invalid: {path_text(tuple(error.instance_path))}: {error.message}")
        # Only the spec gets defaults. A status is what controllers write, whatever the schema says.
        spec = schema.get("properties", {}).get("spec")
        if spec is not None and "spec" in filled:
            filled["spec"] = with_defaults(spec, filled["spec"])
    if resource == (KARPENTER_GROUP, "NodeClaim"):
        filled["spec"] = _node_claim_spec(ref, filled.get("spec") or {})
    if resource == (APPS, "Deployment"):
        filled["spec"] = {"replicas": 1, **filled.get("spec", {})}
    return filled


def _node_claim_spec(ref: ObjectRef, spec: Mapping[str, Any]) -> dict[str, Any]:
    """Checks what Karpenter's CustomResourceDefinition requires of a NodeClaim, and adds the default expireAfter."""
    node_class = spec.get("nodeClassRef") or {}
    missing = [f"spec.nodeClassRef.{name}" for name in ("group", "kind", "name") if not node_class.get(name)]
    if not isinstance(spec.get("requirements"), list):
        missing.append("spec.requirements")
    if missing:
        raise Invalid(f"{ref} is invalid: {', '.join(missing)}: required")
    for index, row in enumerate(spec["requirements"]):
        if not row.get("key") or row.get("operator") not in _OPERATORS:
            raise Invalid(f"{ref} is invalid: spec.requirements[{index}]: needs a key and an operator")
    return {"expireAfter": "720h", **spec}


def _named(body: Mapping[str, Any]) -> dict[str, Any]:
    """The object with the part of its metadata that people write; the server writes the rest."""
    metadata = body.get("metadata") or {}
    return {key: metadata[key] for key in ("name", "namespace", "labels", "annotations") if key in metadata}

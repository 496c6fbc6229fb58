"""Changes that the API server refuses on an existing object, and the findings about them.

They are the transition rules (`oldSelf`) of the NodePool and ProvisioningRequest CustomResourceDefinitions. A rule on a field
does not run if the field was absent before.

The findings come before a change is merged, from the two versions of the documents alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from reconciler.manifests import codes
from reconciler.manifests.documents.document import mapping_at
from reconciler.manifests.repository.declared import read
from reconciler.manifests.repository.validate import scope_of
from reconciler.model.declared import DeclaredManifest
from reconciler.model.findings import Finding
from reconciler.model.refs import Path, path_text
from reconciler.model.view import Manifest

_REQUEST_FIELDS = ("podSets", "provisioningClassName", "parameters")
_NEW_NAME = "a request runs once: give the changed one a new name"


@dataclass(frozen=True, slots=True)
class RefusedChange:
    """One field that must not change. path: the field. hint: what to do instead."""

    path: str
    message: str
    hint: str


def refused_changes(old: Manifest, new: Manifest) -> tuple[RefusedChange, ...]:
    """The changes that will be refused, from `old` in the cluster to `new` as declared."""
    match new.get("kind"):
        case "ProvisioningRequest":
            return _of_request(mapping_at(old, "spec"), mapping_at(new, "spec"))
        case "NodePool":
            return _of_pool(mapping_at(old, "spec"), mapping_at(new, "spec"))
        case _:
            return ()


def _of_request(old: Manifest, new: Manifest) -> tuple[RefusedChange, ...]:
    return tuple(
        RefusedChange(
            path_text(("spec", field, *_edited(old[field], new[field]))), f"spec.{field} cannot be changed", _NEW_NAME
        )
        for field in _REQUEST_FIELDS
        if field in old and field in new and old[field] != new[field]
    )


def _edited(old: Any, new: Any) -> Path:
    """The path to the only difference; where several parts differ, the path to the closest common parent."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        keys: Sequence[str | int] = [key for key in new if old.get(key) != new[key]]
        alone = len(keys) == 1 and old.keys() <= new.keys()
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        keys = [index for index, (left, right) in enumerate(zip(old, new, strict=True)) if left != right]
        alone = len(keys) == 1
    else:
        return ()
    if not alone:
        return ()
    before = old.get(keys[0]) if isinstance(old, Mapping) else old[keys[0]]
    return (keys[0], *_edited(before, new[keys[0]]))


def _of_pool(old: Manifest, new: Manifest) -> tuple[RefusedChange, ...]:
    refused: list[RefusedChange] = []
    partial = "template" not in new  # a partial document omits what it does not change
    if ("replicas" in new) != ("replicas" in old) and not (partial and "replicas" not in new):
        direction = "static" if "replicas" in new else "dynamic"
        refused.append(
            RefusedChange(
                "spec.replicas",
                f"a NodePool cannot become {direction}: spec.replicas can be neither added nor removed",
                "declare a second NodePool and remove the first one when it is empty",
            ),
        )
    before = mapping_at(old, "template", "spec", "nodeClassRef")
    after = mapping_at(new, "template", "spec", "nodeClassRef")
    refused += [
        RefusedChange(
            f"spec.template.spec.nodeClassRef.{field}",
            f"nodeClassRef.{field} cannot be changed",
            "declare a second NodePool with the other node class",
        )
        for field in ("group", "kind")
        if field in before and field in after and before[field] != after[field]
    ]
    return tuple(refused)


def changed_since(
    base: Mapping[str, bytes], head: Mapping[str, bytes], *, one_cluster: bool = True
) -> tuple[Finding, ...]:
    """base, head: content by path. one_cluster: see `declared.read`. Only files that differ are read."""
    before = {path: content for path, content in base.items() if head.get(path) != content}
    after = {path: content for path, content in head.items() if base.get(path) != content}
    old_manifests = {
        (scope_of(item.position.file, one_cluster=one_cluster), item.ref): item.manifest
        for item in read(before, one_cluster=one_cluster).manifests
    }
    findings: list[Finding] = []
    for item in read(after, one_cluster=one_cluster).manifests:
        old = old_manifests.get((scope_of(item.position.file, one_cluster=one_cluster), item.ref))
        if old is not None:
            findings += refused(item, old, item.manifest)
    return tuple(findings)


def refused(item: DeclaredManifest, old: Manifest, new: Manifest) -> tuple[Finding, ...]:
    """A finding for each change that the API server would refuse. Whether a NodePool is static is reported by the plan."""
    return tuple(
        codes.IMMUTABLE_FIELD.finding(change.message, item.position_of(change.path), item.ref, change.path, change.hint)
        for change in refused_changes(old, new)
        if change.path != "spec.replicas"
    )

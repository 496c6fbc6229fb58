"""How the manifests of two revisions differ, computed from what each would change on the same cluster."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from reconciler.model.changes import Action, FieldChange, ObjectChange

_OWN_MARKS = ("metadata.annotations.headroom.dev/applied-hash", "metadata.annotations.headroom.dev/source")
"""Annotations that headroom itself writes; people do not."""


def object_differences(base: Iterable[ObjectChange], head: Iterable[ObjectChange]) -> tuple[ObjectChange, ...]:
    """By object: what merging creates, changes or deletes, without changes that both sides make."""
    before, after = {change.ref: change for change in base}, {change.ref: change for change in head}
    found = []
    for ref in sorted(before.keys() | after.keys()):
        change = _difference(before.get(ref), after.get(ref))
        if change is not None:
            found.append(change)
    return tuple(found)


def _difference(base: ObjectChange | None, head: ObjectChange | None) -> ObjectChange | None:
    if base is None:
        return head
    if head is None:
        return _undone(base)
    if base.manifest is None or head.manifest is None:
        return None if base.action is head.action else head
    fields = tuple(
        FieldChange(path, old, new)
        for path, old, new in _fields(base.manifest, head.manifest)
        if not path.startswith(_OWN_MARKS)
    )
    if not fields:
        return None
    return ObjectChange(head.ref, Action.UPDATE, fields, head.manifest, head.position, head.reason)


def _undone(base: ObjectChange) -> ObjectChange:
    """Only the base would make this change: merging undoes it."""
    if base.action is Action.CREATE:
        return ObjectChange(base.ref, Action.DELETE, (), None, base.position, "no longer declared")
    if base.action is Action.DELETE:
        return ObjectChange(base.ref, Action.CREATE, (), None, None, "declared again, as the cluster has it")
    fields = tuple(FieldChange(field.path, field.after, field.before) for field in base.changes)
    return ObjectChange(base.ref, Action.UPDATE, fields, None, base.position, "as the cluster has it")


def _fields(before: Any, after: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Every path at which two values differ. Lists of equal length are compared item by item."""
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for key in sorted(before.keys() | after.keys()):
            yield from _fields(before.get(key), after.get(key), f"{path}.{key}" if path else str(key))
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for index, (old, new) in enumerate(zip(before, after, strict=True)):
            yield from _fields(old, new, f"{path}[{index}]")
    elif before != after:
        yield path, before, after

"""How the documents of two revisions differ, and what becomes of objects whose document is removed."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from difflib import SequenceMatcher
from typing import Any

from reconciler.model.changes import Action, FieldChange, ObjectChange
from reconciler.model.declared import DeclaredManifest
from reconciler.model.refs import ObjectRef
from reconciler.model.view import Manifest

_OWN_MARKS = tuple(f"metadata.annotations.headroom.dev/{name}" for name in ("applied-hash", "source", "partial"))
"""Annotations that headroom itself writes; people do not."""


def written_differences(
    before: Iterable[DeclaredManifest],
    after: Iterable[DeclaredManifest],
    base: Iterable[ObjectChange],
    head: Iterable[ObjectChange],
    in_cluster: Collection[ObjectRef],
) -> tuple[ObjectChange, ...]:
    """By object: how the documents differ as written, before budgets are compiled or sizes computed.

    base, head: what each side's plan changes on the cluster, which decides about removed documents. in_cluster: objects that exist at
    present.
    """
    left, right = {item.ref: item for item in before}, {item.ref: item for item in after}
    undone, done = {change.ref: change for change in base}, {change.ref: change for change in head}
    changes = []
    for ref in sorted(left.keys() | right.keys()):
        old, new = left.get(ref), right.get(ref)
        if new is None:
            assert old is not None
            changes.append(_removed(old, undone.get(ref), done.get(ref), is_there=ref in in_cluster))
        elif old is None:
            change = done.get(ref)
            fallback = ObjectChange(ref, Action.CREATE, (), new.manifest, new.position, "declared")
            changes.append(fallback if change is None or change.action is Action.CREATE else change)
        else:
            fields = _written_fields(old.manifest, new.manifest)
            if fields:
                changes.append(ObjectChange(ref, Action.UPDATE, fields, new.manifest, new.position, "edited"))
    return tuple(changes)


def document_changes(pairs: Iterable[tuple[ObjectRef, Manifest, Manifest]], reason: str) -> tuple[ObjectChange, ...]:
    """The documents that differ before and after. reason: why, in words."""
    edits = ((ref, _written_fields(before, after), after) for ref, before, after in pairs)
    return tuple(
        ObjectChange(ref, Action.UPDATE, fields, after, None, reason) for ref, fields, after in edits if fields
    )


def _removed(
    old: DeclaredManifest, base: ObjectChange | None, head: ObjectChange | None, *, is_there: bool
) -> ObjectChange:
    """The change for a removed document. The object is deleted, never created, or stays, as the head's plan says."""
    action, what_becomes = Action.DELETE, ""
    if head is not None and head.action is Action.DELETE:
        pass
    elif base is not None and base.action is Action.CREATE:
        what_becomes = "; not in this cluster yet"
    elif head is not None:
        return head
    elif is_there:
        action, what_becomes = Action.KEEP, "; it stays in the cluster"
    else:
        what_becomes = "; not in this cluster"
    return ObjectChange(old.ref, action, (), None, old.position, f"no longer declared{what_becomes}")


def _written_fields(old: Any, new: Any) -> tuple[FieldChange, ...]:
    return tuple(
        FieldChange(path, before, after) for path, before, after in _fields(old, new) if not path.startswith(_OWN_MARKS)
    )


def _fields(before: Any, after: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Every path at which two values differ. Lists are aligned first, so that an item inserted in front changes no other."""
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for key in sorted(before.keys() | after.keys()):
            yield from _fields(before.get(key), after.get(key), f"{path}.{key}" if path else str(key))
    elif isinstance(before, list) and isinstance(after, list):
        yield from _items(before, after, path)
    elif before != after:
        yield path, before, after


def _items(before: list[Any], after: list[Any], path: str) -> Iterator[tuple[str, Any, Any]]:
    """The same for lists. Indexes are those of the list after; for a removed item, of the list before."""
    left, right = ([json.dumps(item, sort_keys=True, default=str) for item in items] for items in (before, after))
    for tag, old_from, old_to, new_from, new_to in SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        both = min(old_to - old_from, new_to - new_from)
        for step in range(both):
            yield from _fields(before[old_from + step], after[new_from + step], f"{path}[{new_from + step}]")
        for index in range(old_from + both, old_to):
            yield f"{path}[{index}]", before[index], None
        for index in range(new_from + both, new_to):
            yield f"{path}[{index}]", None, after[index]

"""A small server-side apply: merges documents and tracks field owners.

Mappings merge key by key. Lists are atomic, except those that Kubernetes keys (conditions by type, owner references by uid). A field
is a path of steps as structured-merge-diff writes them in managedFields: `f:spec`, `k:{"type":"Ready"}`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from reconciler.model.errors import Invalid

Field = tuple[str, ...]
Fields = frozenset[Field]

_KEYED = {"f:conditions": "type", "f:ownerReferences": "uid"}
_IDENTITY = frozenset(
    {
        ("f:apiVersion",),
        ("f:kind",),
        *((("f:metadata"), f"f:{name}") for name in ("name", "namespace", "uid", "resourceVersion", "generation")),
        ("f:metadata", "f:creationTimestamp"),
        ("f:metadata", "f:managedFields"),
    }
)


def leaves(value: Any, at: Field = ()) -> Iterator[tuple[Field, Any]]:
    """Every field that a document sets, with its value. Nulls set nothing; an empty mapping is a value. Raises `Invalid` for two items of one key."""
    if value is None or at in _IDENTITY:
        return
    key = _KEYED.get(at[-1]) if at else None
    if isinstance(value, Mapping) and (value or not at):
        for name, inner in value.items():
            yield from leaves(inner, (*at, f"f:{name}"))
    elif key is not None and isinstance(value, list) and all(key in item for item in value):
        steps = [f"k:{json.dumps({key: item[key]}, separators=(',', ':'))}" for item in value]
        if len(set(steps)) < len(steps):
            path = ".".join(step.removeprefix("f:") for step in at)
            raise Invalid(f"failed to create typed patch object: .{path}: duplicate entries for {key}")
        for step, item in zip(steps, value, strict=True):
            yield from leaves(item, (*at, step))
    else:
        yield at, value


def value_at(body: Any, field: Field) -> Any:
    """The value of a field; None where there is none."""
    for step in field:
        body = _inside(body, step)
        if body is None:
            return None
    return body


def with_field(body: Any, field: Field, value: Any) -> Any:
    """A copy with the field set. None removes it, with parent mappings that are then empty."""
    if not field:
        return value
    step, rest = field[0], field[1:]
    if step.startswith("k:"):
        return _with_item(list(body or ()), step, rest, value)
    copy = dict(body) if isinstance(body, Mapping) else {}
    inner = with_field(copy.get(step[2:]), rest, value)
    if inner is None or (value is None and inner in ({}, [])):
        copy.pop(step[2:], None)
    else:
        copy[step[2:]] = inner
    return copy


def _with_item(items: list[Any], step: str, rest: Field, value: Any) -> list[Any]:
    index = next((index for index, item in enumerate(items) if _has_key(item, step)), None)
    if index is None:  # a new item has its key from the start, or the next field would not find it
        return items if value is None else [*items, with_field(json.loads(step[2:]), rest, value)]
    inner = with_field(items[index], rest, value)
    return items[:index] + ([inner] if inner else []) + items[index + 1 :]


def _inside(body: Any, step: str) -> Any:
    if step.startswith("f:"):
        return body.get(step[2:]) if isinstance(body, Mapping) else None
    return next((item for item in body if _has_key(item, step)), None) if isinstance(body, list) else None


def _has_key(item: Any, step: str) -> bool:
    return isinstance(item, Mapping) and all(item.get(name) == wanted for name, wanted in json.loads(step[2:]).items())


def overlap(one: Field, other: Field) -> bool:
    """Whether setting one field changes the other: they are the same, or one is inside the other."""
    shorter = min(len(one), len(other))
    return one[:shorter] == other[:shorter]


def fields_v1(fields: Iterable[Field]) -> dict[str, Any]:
    """The fields in the format of managedFields: nested, in order."""
    tree: dict[str, Any] = {}
    for field in sorted(fields):
        node = tree
        for step in field:
            node = node.setdefault(step, {})
    return tree


def fields_of(tree: Mapping[str, Any], at: Field = ()) -> Iterator[Field]:
    """The inverse of `fields_v1`: the innermost fields. A `.` step, the mapping itself, is skipped."""
    inner = {step: below for step, below in tree.items() if step != "."}
    if not inner and at:
        yield at
    for step, below in inner.items():
        yield from fields_of(below, (*at, step))


@dataclass(frozen=True, slots=True)
class Manager:
    """The key of an entry of managedFields. operation: Apply or Update. subresource: "", `status` or `scale`."""

    name: str
    operation: str = "Apply"
    subresource: str = ""


Owners = Mapping[Manager, Fields]


@dataclass(frozen=True, slots=True)
class Merge:
    """The result of an apply. conflicts: (manager, field) of those that own another value; then nothing is merged."""

    body: Mapping[str, Any]
    owners: Owners
    conflicts: tuple[tuple[str, Field], ...] = ()


def merge(
    live: Mapping[str, Any], owners: Owners, wanted: Mapping[str, Any], manager: Manager, *, force: bool
) -> Merge:
    """A server-side apply. Fields that the manager no longer lists and nobody else owns are removed. A field that others own with
    another value is a conflict; with force the manager takes it over. Fields with equal values are shared."""
    applied = dict(leaves(wanted))
    others = {other: fields for other, fields in owners.items() if other != manager}
    taken = {
        (other, field, mine)
        for other, fields in others.items()
        for field in fields
        for mine in _overlapping(field, applied)
        if not _is_set(live, mine, applied[mine])
    }
    if taken and not force:
        return Merge(live, owners, tuple(sorted({(other.name, field) for other, field, _ in taken})))
    lost = {(other, field) for other, field, _ in taken}
    kept = {
        other: frozenset(field for field in fields if (other, field) not in lost) for other, fields in others.items()
    }
    body = dict(live)
    for field in sorted(owners.get(manager, frozenset()) - applied.keys(), key=_removal_order):
        if not any(overlap(field, owned) for fields in kept.values() for owned in fields):
            body = with_field(body, field, None)
    for field, value in applied.items():
        if not _is_set(body, field, value):
            body = with_field(body, field, value)
    merged = {other: fields for other, fields in kept.items() if fields}
    if applied:
        merged[manager] = frozenset(applied)
    return Merge(body, merged)


def _is_set(body: Mapping[str, Any], field: Field, value: Any) -> bool:
    """Whether the field has this value. An empty mapping is merged into the one that is there, so it changes nothing."""
    there = value_at(body, field)
    return bool(there == value or (value == {} and isinstance(there, Mapping)))


def _removal_order(field: Field) -> tuple[bool, Field]:
    """The order of removing fields. The key of a list item goes last, since the item goes with it."""
    is_key = len(field) > 1 and field[-2].startswith("k:") and field[-1][2:] in json.loads(field[-2][2:])
    return (is_key, field)


def _overlapping(field: Field, applied: Mapping[Field, Any]) -> Iterator[Field]:
    if field in applied:
        yield field
        return
    for mine in applied:
        if overlap(field, mine):
            yield mine


def update(before: Mapping[str, Any], after: Mapping[str, Any], owners: Owners, manager: Manager) -> Owners:
    """Owners after a plain write: the writer alone owns what it changed."""
    old, new = dict(leaves(before)), dict(leaves(after))
    changed = {field for field, value in new.items() if old.get(field) != value}
    gone = old.keys() - new.keys()
    if not changed and not gone:
        return owners
    result = {
        other: frozenset(field for field in fields if field not in gone and (other == manager or field not in changed))
        for other, fields in owners.items()
    }
    result[manager] = result.get(manager, frozenset()) | changed
    return {other: fields for other, fields in result.items() if fields}

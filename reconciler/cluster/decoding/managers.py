"""Who owns which field: an object's managedFields as dotted paths."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from reconciler.cluster.decoding import wire
from reconciler.model.marks import is_own

_MANAGED = msgspec.json.Decoder(wire.ManagedWire)
_MANAGER = msgspec.json.Decoder(wire.ManagerWire)
_STATUS, _CONDITIONS = "f:status", "f:conditions"
_MESSAGE = "f:message"
_KEYED_BY_TYPE = 'k:{"type":'


def field_managers(data: bytes | msgspec.Raw) -> dict[str, frozenset[str]]:
    """Field manager → the fields it owns, two levels deep (`spec.replicas`, `status.conditions`), and the types of
    conditions (`status.conditions.Ready`).

    A condition is whose message it has. Of one that somebody else has written over, the manager before keeps what still has the
    same value, such as the time. That tells nothing of it. Headroom itself has to know each part of a condition that it owns.
    An entry that is not in the form of structured-merge-diff's FieldsV1 is passed over.
    """
    owned: dict[str, set[str]] = {}
    for entry in _managers(data):
        fields = owned.setdefault(entry.manager, set())
        for section, inner in (entry.fields or {}).items():
            names = [name for name in inner if name.startswith("f:")]
            fields.update(f"{section[2:]}.{name[2:]}" for name in names)
            if not names:
                fields.add(section[2:])
            if section == _STATUS and _CONDITIONS in inner:
                kinds = _condition_types(inner[_CONDITIONS], with_message=not is_own(entry.manager))
                fields.update(f"status.conditions.{kind}" for kind in kinds)
    return {manager: frozenset(fields) for manager, fields in sorted(owned.items())}


def status_writes(data: bytes | msgspec.Raw) -> dict[str, str]:
    """Field manager → when it last changed the status, as the API server wrote it down."""
    times: dict[str, str] = {}
    for entry in _managers(data):
        if entry.time and _STATUS in (entry.fields or {}):
            times[entry.manager] = max(entry.time, times.get(entry.manager, ""))
    return dict(sorted(times.items()))


def _managers(data: bytes | msgspec.Raw) -> Iterator[wire.ManagerWire]:
    for raw in _entries(data):
        try:
            yield _MANAGER.decode(raw)
        except msgspec.MsgspecError:
            continue


def _condition_types(raw: msgspec.Raw, *, with_message: bool) -> Iterator[str]:
    """Conditions are a list that is keyed by type: `k:{"type":"Ready"}`. with_message: only those of which the message is owned, or all
    that there is."""
    fields = msgspec.json.decode(raw)
    for step, inner in fields.items() if isinstance(fields, dict) else ():
        if step.startswith(_KEYED_BY_TYPE) and not (with_message and inner and _MESSAGE not in inner):
            try:
                yield str(msgspec.json.decode(step[len("k:") :])["type"])
            except msgspec.MsgspecError:
                continue


def other_manager_of(data: bytes | msgspec.Raw, path: str) -> str | None:
    """The manager, not headroom's own, that owns a field; an autoscaler's (through the scale subresource) before others."""
    steps = path.split(".")
    if f'"f:{steps[-1]}"'.encode() not in bytes(data):
        return None
    found = []
    for raw in _entries(data):
        entry: dict[str, Any] = msgspec.json.decode(raw)
        node: Any = entry.get("fieldsV1")
        for step in steps:
            node = node.get(f"f:{step}") if isinstance(node, dict) else None
        manager = str(entry.get("manager", ""))
        if node is not None and not is_own(manager):
            found.append((entry.get("subresource") != "scale", manager))
    return min(found)[1] if found else None


def _entries(data: bytes | msgspec.Raw) -> tuple[msgspec.Raw, ...]:
    try:
        return _MANAGED.decode(data).metadata.managed_fields or ()
    except msgspec.MsgspecError:
        return ()

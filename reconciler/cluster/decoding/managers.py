"""Who owns which field: an object's managedFields as dotted paths."""

from __future__ import annotations

from typing import Any

import msgspec

from reconciler.cluster.decoding import wire
from reconciler.model.marks import is_own

_MANAGED = msgspec.json.Decoder(wire.ManagedWire)
_MANAGER = msgspec.json.Decoder(wire.ManagerWire)


def field_managers(data: bytes | msgspec.Raw) -> dict[str, frozenset[str]]:
    """Field manager → the fields it owns, two levels deep (`spec.replicas`, `status.conditions`).

    An entry that is not in the form of structured-merge-diff's FieldsV1 is passed over.
    """
    owned: dict[str, set[str]] = {}
    for raw in _entries(data):
        try:
            entry = _MANAGER.decode(raw)
        except msgspec.MsgspecError:
            continue
        fields = owned.setdefault(entry.manager, set())
        for section, inner in (entry.fields or {}).items():
            names = [name for name in inner if name.startswith("f:")]
            fields.update(f"{section[2:]}.{name[2:]}" for name in names)
            if not names:
                fields.add(section[2:])
    return {manager: frozenset(fields) for manager, fields in sorted(owned.items())}


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

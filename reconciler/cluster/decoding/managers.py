"""Which manager owns which field: an object's managedFields as dotted paths."""

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
    """By field manager, the fields it owns, two levels deep (`spec.replicas`, `status.conditions`), and conditions by type
    (`status.conditions.Ready`).

    A condition belongs to the manager of its message. After another manager has overwritten it, the former one still owns fields
    with an unchanged value, such as the time, which means nothing. Of headroom's own conditions every owned field counts. An entry
    that is not in structured-merge-diff's format FieldsV1 is skipped.
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
    """By field manager, when it last changed the status, as the API server recorded it."""
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
    """The types of owned conditions, which are a list keyed by type: `k:{"type":"Ready"}`. with_message: only conditions whose message
    is owned."""
    fields = msgspec.json.decode(raw)
    for step, inner in fields.items() if isinstance(fields, dict) else ():
        if step.startswith(_KEYED_BY_TYPE) and not (with_message and inner and _MESSAGE not in inner):
            try:
                yield str(msgspec.json.decode(step[len("k:") :])["type"])
            except msgspec.MsgspecError:
                continue


def other_manager_of(data: bytes | msgspec.Raw, path: str) -> str | None:
    """The manager other than headroom that owns a field. One that wrote through the scale subresource, an autoscaler, comes first."""
    found = _owners(data, path)
    return min(found)[1] if found else None


def scaler_of(data: bytes | msgspec.Raw) -> str:
    """The manager other than headroom that has set `spec.replicas` through the scale subresource; "" for none."""
    return min((manager for is_other, manager in _owners(data, "spec.replicas") if not is_other), default="")


def _owners(data: bytes | msgspec.Raw, path: str) -> list[tuple[bool, str]]:
    """The managers other than headroom that own a field, and for each whether it wrote otherwise than through the scale subresource."""
    steps = path.split(".")
    if f'"f:{steps[-1]}"'.encode() not in bytes(data):
        return []
    found = []
    for raw in _entries(data):
        entry: dict[str, Any] = msgspec.json.decode(raw)
        node: Any = entry.get("fieldsV1")
        for step in steps:
            node = node.get(f"f:{step}") if isinstance(node, dict) else None
        manager = str(entry.get("manager", ""))
        if node is not None and not is_own(manager):
            found.append((entry.get("subresource") != "scale", manager))
    return found


def _entries(data: bytes | msgspec.Raw) -> tuple[msgspec.Raw, ...]:
    try:
        return _MANAGED.decode(data).metadata.managed_fields or ()
    except msgspec.MsgspecError:
        return ()

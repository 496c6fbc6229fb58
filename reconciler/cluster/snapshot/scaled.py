"""Kinds with a scale that headroom does not know by name, in a snapshot's files: a CloneSet, a Rollout.

Objects in a file have a kind, but nothing in a snapshot says whether that kind has a scale subresource. Objects with the fields of
one are assumed to, which is safe since only buffers look at them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from reconciler.cluster.decoding import wire
from reconciler.cluster.decoding.decode import list_items
from reconciler.cluster.resources import BY_KIND, WORKLOADS, Resource, group_of, scaled_kind
from reconciler.model.errors import Invalid

_TYPE = msgspec.json.Decoder(wire.TypeWire)
_SCALE_FIELDS = (("spec", "replicas"), ("status", "replicas"))


class WorkloadKinds:
    """The kinds of workloads found in a snapshot, one value for each, whatever the versions of its objects."""

    def __init__(self) -> None:
        self._met: dict[tuple[str, str], Resource] = {}

    def of(self, item: msgspec.Raw) -> Resource:
        """The kind of an item of `workloads.json`. Raises `Invalid` for one that cannot have a scale."""
        found = self._of(_type_of(item))
        if found is None:
            raise Invalid(
                "has an item of another kind", hint="each needs apiVersion and kind, those of a kind with a scale"
            )
        return found

    def named(self, stem: str, data: bytes) -> list[tuple[Resource, msgspec.Raw]]:
        """The workloads in a file named by the plural of their kind; empty for any other file."""
        try:
            items = list_items(data).items or []
            first = _type_of(items[0]) if items else wire.TypeWire()
            if stem not in plurals_of(first.kind):
                return []
            pairs = [(self._of(_type_of(item)), item) for item in items]
            return [
                (kind, item) for kind, item in pairs if kind is not None and (kind in WORKLOADS or _has_scale(item))
            ]
        except (Invalid, msgspec.MsgspecError):
            return []

    def _of(self, type_: wire.TypeWire) -> Resource | None:
        key = (group_of(type_.api_version), type_.kind)
        known = BY_KIND.get(key)
        if known is not None:
            return known if known in WORKLOADS else None
        if not type_.kind or "." not in key[0]:
            return None
        if key not in self._met:
            version = type_.api_version.rpartition("/")[2]
            self._met[key] = scaled_kind(*key, plurals_of(type_.kind)[0], (version,))
        return self._met[key]


def plurals_of(kind: str) -> tuple[str, ...]:
    """Possible plurals of a kind, the usual form first; () if it is not a kind."""
    word = kind.lower()
    if not word:
        return ()
    if word.endswith(("s", "x", "ch", "sh")):
        return (f"{word}es", f"{word}s", word)
    return (f"{word[:-1]}ies", f"{word}s") if word.endswith("y") else (f"{word}s", word)


def _type_of(item: msgspec.Raw) -> wire.TypeWire:
    return _TYPE.decode(item)


def _has_scale(item: msgspec.Raw) -> bool:
    body: dict[str, Any] = msgspec.json.decode(item)
    return any(isinstance(_section(body, section).get(name), int) for section, name in _SCALE_FIELDS)


def _section(body: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    section = body.get(name)
    return section if isinstance(section, Mapping) else {}

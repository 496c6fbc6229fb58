"""Records that the inventory keeps from pass to pass, as JSON values."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from typing import Annotated, Any, Self, TypeVar

import msgspec

Moment = Annotated[datetime, msgspec.Meta(tz=True)]
Unreadable = msgspec.ValidationError


class Record(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """What is remembered of one thing. Its fields are those of its JSON, in which defaults are left out."""

    def but(self, **changes: Any) -> Self:
        """The record with these fields changed."""
        return msgspec.structs.replace(self, **changes)


R = TypeVar("R")


def restored(value: Any, kind: type[R]) -> R:
    """The value that these JSON values say. Raises `Unreadable`."""
    return msgspec.convert(value, kind)


def remembered(memory: Mapping[str, Any], key: str, kind: type[R]) -> dict[str, R]:
    """The records under the key, by name. One that cannot be read was written by another version, and is dropped."""
    entries = memory.get(key)
    records: dict[str, R] = {}
    for name, value in entries.items() if isinstance(entries, Mapping) else ():
        with suppress(Unreadable):
            records[name] = restored(value, kind)
    return records


def memory_of(key: str, value: Record | Mapping[str, Record] | list[Any]) -> dict[str, Any]:
    """Records as JSON values under the key; empty where there are none."""
    return {key: msgspec.to_builtins(value, order="deterministic")} if value else {}

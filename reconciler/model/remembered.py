"""Records that the inventory keeps from pass to pass, as JSON values."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from typing import Annotated, Any, TypeVar

import msgspec

Moment = Annotated[datetime, msgspec.Meta(tz=True)]


class Record(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """What is remembered of one thing. Its fields are those of its JSON, in which defaults are left out."""


R = TypeVar("R", bound=Record)


def remembered(memory: Mapping[str, Any], key: str, kind: type[R]) -> dict[str, R]:
    """The records under the key, by name. One that cannot be read was written by another version, and is dropped."""
    entries = memory.get(key)
    records: dict[str, R] = {}
    for name, value in entries.items() if isinstance(entries, Mapping) else ():
        with suppress(msgspec.ValidationError):
            records[name] = msgspec.convert(value, kind)
    return records


def memory_of(key: str, records: Mapping[str, Record]) -> dict[str, Any]:
    """The records as JSON values under the key; empty where there are none."""
    return {key: msgspec.to_builtins(records, order="deterministic")} if records else {}

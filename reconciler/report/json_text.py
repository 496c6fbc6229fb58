"""Documents as JSON text: two spaces a level, as `json.dumps(indent=2)` writes it, in about half the time.

Python's C encoder cannot indent. Here it writes lists and objects without further nesting, which are most of a document,
with separators that contain the indentation.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache
from json import JSONEncoder
from typing import Any

from reconciler.report.escaping import json_text

_STEP = "  "
_NESTS = (dict, list, tuple)
_plain = JSONEncoder(ensure_ascii=False).encode


def indented(value: Any, margin: str = "\n") -> str:
    """margin: the line break and spaces before the closing bracket. Keys are strings."""
    if not isinstance(value, _NESTS) or not value:
        return _plain(value)
    inner = margin + _STEP
    items = value.values() if isinstance(value, dict) else value
    if not any(map(_nests, items)):
        text = _flat(inner).encode(value)
        return f"{text[0]}{inner}{text[1:-1]}{margin}{text[-1]}"
    if isinstance(value, dict):
        parts = [f"{_plain(key)}: {indented(item, inner)}" for key, item in value.items()]
        return f"{{{inner}{f',{inner}'.join(parts)}{margin}}}"
    if all(isinstance(item, dict) and item and not any(map(_nests, item.values())) for item in value):
        # A table: all rows at once. JSON strings contain no line breaks, so the separator of two rows is unambiguous.
        deeper = inner + _STEP
        rows = _flat(deeper).encode(value)[2:-2].replace(f"}},{deeper}{{", f"{inner}}},{inner}{{{deeper}")
        return f"[{inner}{{{deeper}{rows}{inner}}}{margin}]"
    return f"[{inner}{f',{inner}'.join([indented(item, inner) for item in value])}{margin}]"


def _nests(value: Any) -> bool:
    return isinstance(value, _NESTS)


@lru_cache(maxsize=64)
def _flat(margin: str) -> JSONEncoder:
    return JSONEncoder(ensure_ascii=False, separators=(f",{margin}", ": "))


def to_json(document: Mapping[str, Any]) -> str:
    """The document as printed: two spaces, keys in the contract's order, a newline at the end."""
    return json_text(indented(document)) + "\n"


def timestamp(moment: datetime) -> str:
    """RFC 3339 in UTC with `Z`; fractions of a second only where there are any."""
    return f"{moment.astimezone(UTC).isoformat()[:-6]}Z"

"""JSON that libyaml cannot read: escaped surrogate pairs. The limits are the same as for YAML."""

from __future__ import annotations

import json
import math
from typing import Any

from reconciler.manifests import codes
from reconciler.manifests.scalars import Scalar, json_number
from reconciler.manifests.tree import DEEPEST, MOST_NODES, Unreadable
from reconciler.model.findings import Code


def read_json(text: str) -> Any:
    """The value of a JSON text; None for text that is not JSON. Raises `Unreadable` for values that no manifest may have."""
    try:
        value = json.loads(
            text,
            parse_int=json_number,
            parse_float=json_number,
            parse_constant=_refused_constant,
            object_pairs_hook=_without_duplicates,
        )
    except RecursionError as error:
        raise _too_deep() from error
    except ValueError:
        return None
    _check(value)
    return value


def _refused_constant(name: str) -> Scalar:
    raise _unreadable(
        codes.NOT_JSON, f"{name} is not a number that JSON can represent", "write a number, or text in quotes"
    )


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for key, value in pairs:
        if key in values:
            raise _unreadable(codes.DUPLICATE_KEY, f"{key!r} is given twice", "keep one of the two")
        values[key] = value
    return values


def _check(value: Any) -> None:
    """Raises for a value that is nested too deep or too large, or has half of a surrogate pair."""
    nodes = 0
    waiting = [(value, 0)]
    while waiting:
        node, depth = waiting.pop()
        nodes += 1
        if depth > DEEPEST:
            raise _too_deep()
        if nodes > MOST_NODES:
            raise _unreadable(codes.TOO_MANY_ALIASES, f"the document has more than {MOST_NODES} values", "split it")
        if isinstance(node, dict):
            waiting += [(inner, depth + 1) for inner in node.values()]
            for key in node:
                _check_text(key)
        elif isinstance(node, list):
            waiting += [(inner, depth + 1) for inner in node]
        elif isinstance(node, str):
            _check_text(node)
        elif isinstance(node, float) and not math.isfinite(node):
            raise _unreadable(codes.NOT_JSON, "a number is too large", "write a smaller one, or text in quotes")


def _check_text(text: str) -> None:
    lone = next((character for character in text if "\ud800" <= character <= "\udfff"), None)
    if lone is not None:
        raise _unreadable(
            codes.NOT_JSON, f"\\u{ord(lone):04x} is half of a surrogate pair, which no text can hold", "remove it"
        )


def _too_deep() -> Unreadable:
    return _unreadable(
        codes.NESTED_TOO_DEEP, f"more than {DEEPEST} levels of nesting", "look for brackets never closed"
    )


def _unreadable(code: Code, message: str, hint: str) -> Unreadable:
    return Unreadable(code, message, 1, 1, hint)

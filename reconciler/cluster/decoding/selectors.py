"""Label selectors in the forms that scales and custom resources use."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from reconciler.manifests.pod_shape import selector_of
from reconciler.manifests.pod_spec_wire import LabelSelectorWire
from reconciler.model.errors import Invalid
from reconciler.model.requirements import LabelSelector

_SET_BASED = re.compile(r"(?P<key>\S+)\s+(?P<operator>in|notin)\s+\((?P<values>[^)]*)\)")
_EQUALITY = re.compile(r"(?P<key>[^=!\s]+)\s*(?P<operator>==|!=|=)\s*(?P<value>\S*)")
_COMMA_OUTSIDE = re.compile(r",(?![^(]*\))")
_PARTS = frozenset({"matchLabels", "matchExpressions"})


def selector_in(raw: msgspec.Raw) -> LabelSelector | None:
    """A selector in any of its forms: a LabelSelector, a bare map of labels, or text; None where there is none.

    An empty one counts as none, since a scale that selects every pod of its namespace says nothing about its own.
    """
    value = msgspec.json.decode(raw)
    if isinstance(value, str):
        value = selector_from(value) if value.strip() else None
    elif isinstance(value, dict) and not value.keys() <= _PARTS:
        value = {"matchLabels": value}
    if not isinstance(value, dict) or not value:
        return None
    try:
        return selector_of(msgspec.convert(value, LabelSelectorWire))
    except (msgspec.ValidationError, Invalid):
        return None


def selector_from(text: str) -> dict[str, Any]:
    """A LabelSelector from its written form (`app=web,tier in (a,b),!legacy`), as apimachinery's labels.Parse reads it."""
    return {"matchExpressions": [_requirement(part.strip()) for part in _COMMA_OUTSIDE.split(text) if part.strip()]}


def _requirement(part: str) -> dict[str, Any]:
    if match := _SET_BASED.fullmatch(part):
        values = sorted(value.strip() for value in match["values"].split(","))
        return {"key": match["key"], "operator": "In" if match["operator"] == "in" else "NotIn", "values": values}
    if match := _EQUALITY.fullmatch(part):
        operator = "NotIn" if match["operator"] == "!=" else "In"
        return {"key": match["key"], "operator": operator, "values": [match["value"]]}
    if part.startswith("!"):
        return {"key": part[1:].strip(), "operator": "DoesNotExist"}
    return {"key": part, "operator": "Exists"}

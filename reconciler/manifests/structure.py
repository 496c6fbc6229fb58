"""Structural validation: one document against the JSON Schema of its kind, every violation a finding.

The validator gives the path and the keyword. Message, hint and position are made here, because a reader wants to know what to
write, not which keyword failed.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any

from reconciler.manifests import codes
from reconciler.manifests.document import Path, path_text
from reconciler.manifests.inspection import Inspection
from reconciler.manifests.schema import Schema, schema_of, validator_of
from reconciler.model.durations import duration_hint
from reconciler.model.errors import Invalid

_TYPE_NAMES = {
    "object": "a mapping",
    "array": "a list",
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "null": "nothing",
}
_VIOLATIONS: dict[tuple[str, int | None], str] = {
    ("minimum", None): "must be at least {limit}, not {found}",
    ("maximum", None): "must be at most {limit}, not {found}",
    ("minLength", 1): "must not be empty",
    ("maxLength", None): "must have at most {limit} characters, not {size}",
    ("minItems", 1): "must not be empty",
    ("maxItems", None): "must have at most {limit} items, not {size}",
    ("maxProperties", None): "must have at most {limit} entries, not {size}",
    ("uniqueItems", None): "must not hold the same value twice",
}
_OPEN = "x-kubernetes-preserve-unknown-fields"
_ALWAYS_KNOWN = ("apiVersion", "kind", "metadata")
_LONGEST_SHOWN = 60
_NO_INT64 = 2**63
MOST_VIOLATIONS = 100
"""The most violations reported for one document. Finding a hint for each of a hundred thousand would take minutes."""
_DURATION = re.compile(r"(?:[0-9]+[smh])+")


def check_structure(inspection: Inspection, schema_name: str, value: Any, at: Path = ()) -> None:
    """Reports where the value violates the schema. at: the value's path in the document."""
    schema = schema_of(schema_name)
    for error in islice(validator_of(schema_name).iter_errors(value), MOST_VIOLATIONS):
        _report(inspection, schema, error, at)
    _unknown_fields(inspection, schema, value, at)


def check_types(schema_name: str, value: Any) -> None:
    """Raises `Invalid` where a value is of another type than the schema says. What else the schema says may be newer elsewhere."""
    for error in islice(validator_of(schema_name).iter_errors(value), MOST_VIOLATIONS):
        if error.kind.name == "type":
            place = path_text(tuple(error.instance_path)) or "the object"
            expected = " or ".join(_TYPE_NAMES[name] for name in error.kind.types)
            raise Invalid(f"{place} must be {expected}, not {_described(error.instance)}")


def nearest(word: str, known: Iterable[str]) -> str:
    """`did you mean "replicas"?`, or "" when no known word is similar."""
    known = list(known)
    folded = {name.lower(): name for name in known}
    match = difflib.get_close_matches(word.lower(), folded, n=1, cutoff=0.7)
    return f'did you mean "{folded[match[0]]}"?' if match else ""


def _report(inspection: Inspection, schema: Schema, error: Any, at: Path) -> None:
    path: Path = (*at, *error.instance_path)
    place = path_text(inspection.written_path(path)) or "the document"
    part = _schema_at(schema, error.schema_path[:-1])
    kind = error.kind
    found = error.instance
    match kind.name:
        case "required":
            missing: Path = (*path, kind.property)
            example = _example(_schema_at(part, ("properties", kind.property)), kind.property)
            inspection.report(
                codes.MISSING_FIELD,
                missing,
                f"{path_text(inspection.written_path(missing))} is missing",
                hint=f"add {example}" if example else "",
            )
        case "type" | "anyOf":
            wanted = kind.types if kind.name == "type" else ["integer", "string"]
            expected = " or ".join(_TYPE_NAMES[name] for name in wanted)
            inspection.report(
                codes.WRONG_TYPE,
                path,
                f"{place} must be {expected}, not {_described(found)}",
                hint=_type_hint(wanted, found, part),
            )
        case "enum":
            options = ", ".join(str(option) or '""' for option in kind.options)
            hint = nearest(str(found), [str(option) for option in kind.options]) or f"write one of {options}"
            inspection.report(
                codes.INVALID_VALUE, path, f"{place} must be one of {options}, not {_shown(found)}", hint=hint
            )
        case "additionalProperties":
            known = part.get("properties", {})
            for name in kind.unexpected:
                where: Path = (*path, name)
                inspection.report(
                    codes.INVALID_VALUE,
                    where,
                    f"{path_text(inspection.written_path(where))} is not a field of this kind",
                    hint=nearest(name, known) or f"known here: {', '.join(known)}",
                )
        case _:
            example = _example_of_memory(path) or _example(part)
            inspection.report(
                codes.INVALID_VALUE,
                path,
                f"{place} {_violation(kind, found)}",
                hint=_limit_hint(kind, part)
                or _duration_hint(part, found)
                or (f"write it like {example}" if example else ""),
            )


def _limit_hint(kind: Any, part: Mapping[str, Any]) -> str:
    """The schema's own hint for a list that is too long, or the limit of a number that is too large."""
    if kind.name == "maximum":
        return f"write {kind.limit} or less"
    return str(part.get("whenTooLong", "")) if kind.name == "maxItems" else ""


def _duration_hint(part: Mapping[str, Any], found: Any) -> str:
    """The hours of a duration that is written in days, where the schema expects a duration."""
    is_duration = isinstance(part.get("example"), str) and _DURATION.fullmatch(part["example"])
    return duration_hint(found) if is_duration and isinstance(found, str) else ""


def _violation(kind: Any, found: Any) -> str:
    words = _VIOLATIONS.get((kind.name, getattr(kind, "limit", None))) or _VIOLATIONS.get((kind.name, None))
    if words is None:
        return f"has a value that is not allowed: {_shown(found)}"
    limit = getattr(kind, "limit", "")
    return words.format(limit=limit, found=_shown(found), size=len(found) if hasattr(found, "__len__") else "")


def _schema_at(schema: Any, path: Iterable[str | int]) -> Mapping[str, Any]:
    for step in path:
        try:
            schema = schema[step]
        except (KeyError, IndexError, TypeError):
            return {}
    return schema if isinstance(schema, Mapping) else {}


def _example_of_memory(path: Path) -> str:
    """The schema of a resource list has one example for all resources, and that is of CPU."""
    is_bytes = bool(path) and str(path[-1]).startswith(("memory", "ephemeral-storage", "hugepages-"))
    return '"1Gi"' if is_bytes else ""


def _example(schema: Mapping[str, Any], key: str = "") -> str:
    if "example" not in schema:
        return f"{key}" if key else ""
    text = json.dumps(schema["example"], ensure_ascii=False)
    return f"{key}: {text}" if key else text


def _described(value: Any) -> str:
    match value:
        case bool():
            return f"the boolean {json.dumps(value)}"
        case int() | float():
            return f"the number {_shown(value)}"
        case str():
            return f"the text {_shown(value)}"
        case list():
            return "a list"
        case None:
            return "null"
        case _:
            return "a mapping"


def _shown(value: Any) -> str:
    if type(value) is int and abs(value) >= _NO_INT64:
        return f"{value:g}"  # read as a float, as in kubectl, so its last digits may differ from those written
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"


def _type_hint(wanted: list[str], found: Any, part: Mapping[str, Any]) -> str:
    """part: the schema of the place."""
    if "string" in wanted and isinstance(found, int | float):
        return _quotes_hint(found, part)
    if "integer" in wanted and isinstance(found, str) and found.lstrip("+-").isdigit():
        # YAML and JSON parsers leave a number of thousands of digits as text.
        too_long = len(found) > _LONGEST_SHOWN
        return "write a smaller number" if too_long else f"write {found} without quotes"
    if wanted == ["array"]:
        return "put a dash before it, or square brackets around it"
    return ""


def _quotes_hint(found: float, part: Mapping[str, Any]) -> str:
    """For a number or a boolean where text is wanted; quotes help only where the text would be allowed."""
    if not re.search(part.get("pattern", ""), _shown(found)):
        return f"write it like {_example(part)}" if "example" in part else ""
    if isinstance(found, bool):
        return "put it in quotes; YAML reads yes, no, on, off, y and n as booleans"
    return "write it in quotes" if abs(found) >= _NO_INT64 else f'write it in quotes: "{_shown(found)}"'


def _unknown_fields(inspection: Inspection, schema: Schema, value: Any, path: Path) -> None:
    """Reports fields that the schema does not have, and marks them to be dropped."""
    if isinstance(value, dict):
        known: Mapping[str, Schema] | None = schema.get("properties")
        further = schema.get("additionalProperties")
        for key, inner in value.items():
            where: Path = (*path, key)
            if known is not None and key in known:
                _unknown_fields(inspection, known[key], inner, where)
            elif isinstance(further, dict):
                _unknown_fields(inspection, further, inner, where)
            elif further is None and known is not None and _OPEN not in schema and (path or key not in _ALWAYS_KNOWN):
                _unknown_field(inspection, known, where)
    elif isinstance(value, list):
        items = schema.get("items")
        if items is not None:
            for index, inner in enumerate(value):
                _unknown_fields(inspection, items, inner, (*path, index))


def _unknown_field(inspection: Inspection, known: Mapping[str, Schema], where: Path) -> None:
    if len(where) == 1 and where[0] in _ALWAYS_KNOWN:
        return
    inspection.unknown(where)
    if len(inspection.findings) < MOST_VIOLATIONS:
        inspection.report(
            codes.UNKNOWN_FIELD,
            where,
            f"{path_text(inspection.written_path(where))} is not a field of this kind and is dropped",
            hint=nearest(str(where[-1]), known) or f"known here: {', '.join(known) or 'none'}",
        )

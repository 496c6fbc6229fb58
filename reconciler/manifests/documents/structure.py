"""Structural validation: one document against the JSON Schema of its kind, every violation a finding.

The validator gives the path and the keyword. Message, hint and position are made here, because a reader wants to know what to
write, not which keyword failed.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from itertools import islice
from string import Template
from typing import Any

from reconciler.manifests.documents.document import Inspection
from reconciler.manifests.documents.load import Schema, SchemaRule, schema_of, violations
from reconciler.model import codes
from reconciler.model.errors import Invalid
from reconciler.model.findings import Severity
from reconciler.model.quantity import CPU, MEMORY, amount_of, duration_hint
from reconciler.model.refs import Path, counted, path_text

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
_TOP = ("apiVersion", "kind", "metadata")
_RESOURCE_MAPS = frozenset({"requests", "limits", "perChunkResources", "overhead"})
_RESOURCES = ("cpu", "memory", "ephemeral-storage", "pods", "nodes")
"""The names of resources without a domain. Whatever else a node has is named with one, such as nvidia.com/gpu."""
_MOST_CPU, _LEAST_MEMORY = 10_000, 2**20
_DEFAULTED = "nodes"
"""The field of a budget that the API server gives a safe value, 10%, where it is null."""
_LONGEST_SHOWN = 60
_SHORT = 4
"""In words of at most this many letters one letter may be wrong for a near miss, in longer ones two."""
_NO_INT64 = 2**63
MOST_VIOLATIONS = 100
"""The most violations reported for one document. Finding a hint for each of a hundred thousand would take minutes."""
_DURATION = re.compile(r"(?:[0-9]+[smh])+")


def check_structure(
    inspection: Inspection, schema_name: str, value: Any, at: Path = (), around: Collection[str] = ()
) -> bool:
    """Reports where the value violates the schema and its rules; returns whether its structure is right. at: the value's path in the
    document. around: the fields that belong beside it."""
    schema = schema_of(schema_name)
    is_sound = True
    told = set()
    for error, rule in islice(violations(schema_name, value), MOST_VIOLATIONS):
        if rule is None:
            is_sound = False
            _report(inspection, schema, error, at)
        elif rule not in told:
            told.add(rule)
            _report_rule(inspection, rule, error.instance, at)
    before = len(inspection.findings)
    _check_fields(inspection, schema, value, at, around)
    return is_sound and not any(finding.severity is Severity.ERROR for finding in inspection.findings[before:])


def _report_rule(inspection: Inspection, rule: SchemaRule, value: Any, at: Path) -> None:
    path: Path = (*at, *rule.place)
    words = {"value": value if isinstance(value, str) else _shown(value), "key": path[-1] if path else ""}
    message = Template(rule.message).safe_substitute(words)
    inspection.report(codes.NAMED[rule.code], path, message, hint=rule.hint)


def _check_fields(inspection: Inspection, schema: Schema, value: Any, at: Path, around: Collection[str]) -> None:
    """Reports fields that the schema does not have, and doubts those that a newer definition of the kind may have.

    In schedules and budgets a field without a value is an error too: without weekdays a window is open every day.
    """
    if isinstance(value, dict):
        nulls = inspection.nulls.get(inspection.written_path(at), ()) if inspection.nulls else ()
        known: Mapping[str, Schema] | None = schema.get("properties")
        further = schema.get("additionalProperties")
        is_closed = further is False
        for key in (*value, *nulls) if nulls else value:
            where: Path = (*at, key)
            if is_closed and known is not None and key in known and key not in value and key != _DEFAULTED:
                _null(inspection, where, "a value")
            elif known is not None and key in known:
                missing = [name for name in known if name not in value]
                _check_fields(inspection, known[key], value.get(key), where, missing if _is_map(known[key]) else known)
            elif isinstance(further, dict):
                _check_entry(inspection, further, value, where, around)
            elif (known is not None or is_closed) and (at or key not in _TOP):
                _unknown_field(inspection, schema, where, around)
    elif isinstance(value, list) and "items" in schema:
        for index, inner in enumerate(value):
            _check_fields(inspection, schema["items"], inner, (*at, index), around)


def _is_map(schema: Schema) -> bool:
    """Whether the keys are names that people choose, such as those of labels."""
    return isinstance(schema.get("additionalProperties"), dict)


def _check_entry(
    inspection: Inspection, schema: Schema, value: Mapping[str, Any], where: Path, missing: Collection[str]
) -> None:
    """An entry of a map. missing: fields that belong beside the map and are not there."""
    if len(inspection.findings) >= MOST_VIOLATIONS and inspection.failed:
        return
    key, place = str(where[-1]), path_text(inspection.written_path(where))
    resource = near_one(key, _RESOURCES) if where[-2] in _RESOURCE_MAPS and key not in _RESOURCES else None
    # A label may be called os or hostname, as fields of a pod are; none is called like topologySpreadConstraints.
    is_label = where[-2] not in {*_RESOURCE_MAPS, "capacity"}
    is_field = key != key.lower() or not is_label or (key == "namespace" and inspection.ref.namespace)
    is_misplaced = key in missing and is_field
    if key not in value:
        _null(inspection, where, "text" if schema.get("type") == "string" else "a value")
    elif is_misplaced:
        inspection.report(
            codes.MISSPELT_FIELD,
            where,
            f"{place} is an entry of {where[-2]}, and the field {key} beside {where[-2]} is missing",
            hint=f"move {key} one level up; an entry of that name is possible where the field is given too",
        )
    elif resource is not None:
        hint = f'did you mean "{resource}"?'
        inspection.report(codes.MISSPELT_FIELD, where, f"{place} is not a resource that nodes have", hint=hint)
    else:
        if where[-2] == "requests":
            _check_amount(inspection, where, value[key])
        _check_fields(inspection, schema, value[key], where, ())


def _check_amount(inspection: Inspection, where: Path, quantity: object) -> None:
    """Slips in the suffix: `750M` of CPU is 750 million of them, and `1m` of memory a thousandth of a byte."""
    name = str(where[-1])
    try:
        amount = amount_of(name, quantity)
    except Invalid:
        return  # told by the rules of its kind
    words = ""
    if name == CPU and amount > _MOST_CPU * 1000:
        words, hint = (
            f"{amount // 1000:,} CPU, more than any machine has",
            "write 750m for three quarters of a CPU, 2 for two",
        )
    elif name == MEMORY and 0 < amount < _LEAST_MEMORY:
        words, hint = f"{counted(amount, 'byte')}, too little for a process", "write 512Mi or 1Gi"
    if words:
        message = f"{path_text(inspection.written_path(where))}: {quantity} is {words}"
        inspection.report(codes.UNLIKELY_QUANTITY, where, message, hint=hint)


def _null(inspection: Inspection, where: Path, expected: str) -> None:
    place = path_text(inspection.written_path(where))
    message, hint = f"{place} must be {expected}, not null", "write a value, or remove the key"
    inspection.report(codes.WRONG_TYPE, where, message, hint=hint)


def check_types(schema_name: str, value: Any) -> None:
    """Raises `Invalid` where a value is of another type than the schema says. What else the schema says may be newer elsewhere."""
    for error, rule in islice(violations(schema_name, value), MOST_VIOLATIONS):
        if rule is None and error.kind.name == "type":
            place = path_text(tuple(error.instance_path)) or "the object"
            expected = " or ".join(_TYPE_NAMES[name] for name in error.kind.types)
            raise Invalid(f"{place} must be {expected}, not {_described(error.instance)}")


def nearest(word: str, known: Iterable[str]) -> str:
    """`did you mean "replicas"?`, or "" when no known word is similar."""
    known = list(known)
    folded = {name.lower(): name for name in known}
    match = difflib.get_close_matches(word.lower(), folded, n=1, cutoff=0.7)
    return f'did you mean "{folded[match[0]]}"?' if match else ""


def is_near(word: str, known: str) -> bool:
    """Whether the words differ only in case, or in one or two letters that are dropped, added, replaced or swapped."""
    most = 1 if len(known) <= _SHORT else 2
    return bool(word) and bool(known) and abs(len(word) - len(known)) <= most and _is_near(word, known, most)


@lru_cache(maxsize=16_384)
def _is_near(word: str, known: str, most: int) -> bool:
    word, known = word.lower(), known.lower()
    if word == known:
        return True
    above: list[int] = []
    row = list(range(len(known) + 1))
    for line, letter in enumerate(word, 1):
        before, above, row = above, row, [line]
        for column, other in enumerate(known, 1):
            cost = min(above[column] + 1, row[-1] + 1, above[column - 1] + (letter != other))
            is_swap = line > 1 and column > 1 and letter == known[column - 2] and word[line - 2] == other
            row.append(min(cost, before[column - 2] + 1) if is_swap else cost)
        if min(row) > most:
            return False
    return row[-1] <= most


def near_one(word: str, known: Iterable[str]) -> str | None:
    """The first known word that this one may be a slip of."""
    return next((name for name in known if name != word and is_near(word, name)), None)


def near_to(known: str, words: Iterable[str]) -> str | None:
    """The first word that may be a slip of the known one."""
    return next((word for word in words if word != known and is_near(word, known)), None)


def _report(inspection: Inspection, schema: Schema, error: Any, at: Path) -> None:
    path: Path = (*at, *error.instance_path)
    place = path_text(inspection.written_path(path)) or "the document"
    part = _schema_at(schema, error.schema_path[:-1])
    kind = error.kind
    value = error.instance
    match kind.name:
        case "required":
            missing: Path = (*path, kind.property)
            part = _schema_at(part, ("properties", kind.property))
            example = _example(part, kind.property)
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
                f"{place} must be {expected}, not {_described(value)}",
                hint=_type_hint(wanted, value, part),
            )
        case "enum":
            options = ", ".join(str(option) or '""' for option in kind.options)
            hint = nearest(str(value), [str(option) for option in kind.options]) or f"write one of {options}"
            inspection.report(
                codes.INVALID_VALUE, path, f"{place} must be one of {options}, not {_shown(value)}", hint=hint
            )
        case "additionalProperties":
            pass  # `_check_fields` says it of nulls too
        case _:
            example = _example_of_memory(path) or _example(part)
            inspection.report(
                codes.INVALID_VALUE,
                path,
                f"{place} {_violation(kind, value)}",
                hint=_limit_hint(kind, part)
                or _duration_hint(part, value)
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


_NOUNS = {bool: "the boolean", int: "the number", float: "the number", str: "the text"}


def _described(value: Any) -> str:
    noun = _NOUNS.get(type(value))
    return f"{noun} {_shown(value)}" if noun else {list: "a list", type(None): "null"}.get(type(value), "a mapping")


def _shown(value: Any) -> str:
    if type(value) is int and abs(value) >= _NO_INT64:
        return f"{value:g}"  # read as a float, as in kubectl, so its last digits may differ from those written
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"


def _type_hint(wanted: list[str], found: Any, part: Mapping[str, Any]) -> str:
    """part: the schema of the place. Quotes help only where the text would be allowed."""
    if "string" in wanted and isinstance(found, int | float):
        if not re.search(part.get("pattern", ""), _shown(found)):
            return f"write it like {_example(part)}" if "example" in part else ""
        if isinstance(found, bool):
            return "put it in quotes; YAML reads yes, no, on, off, y and n as booleans"
        return "write it in quotes" if abs(found) >= _NO_INT64 else f'write it in quotes: "{_shown(found)}"'
    number = found.removesuffix("%") if isinstance(found, str) and len(found) <= _LONGEST_SHOWN else ""
    if "integer" in wanted and number.lstrip("+-").isdigit():
        return f"write {number}{'' if number != found else ' without quotes'}"
    return "put a dash before it, or square brackets around it" if wanted == ["array"] else ""


def _unknown_field(inspection: Inspection, schema: Schema, where: Path, around: Collection[str]) -> None:
    """Doubts one field: as an error where a known one is near, or where nothing else may be."""
    key, known = str(where[-1]), schema.get("properties", {})
    here = (*known, *_TOP) if len(where) == 1 else known
    place = path_text(inspection.written_path(where))
    if len(inspection.doubts) >= MOST_VIOLATIONS:
        if not inspection.failed:
            inspection.report(
                codes.INVALID_VALUE, where, f"more than {MOST_VIOLATIONS} fields are not fields of this kind"
            )
        return
    below = next((name for name, part in known.items() if key in _fields_of(name, part)), None)
    below = "metadata" if len(where) == 1 and key in _fields_of("metadata", schema_of("metadata")) else below
    near = near_one(key, here)
    is_closed = schema.get("additionalProperties") is False
    code = codes.INVALID_VALUE if is_closed else codes.MISSPELT_FIELD
    if near is not None:
        hint = f'did you mean "{near}"?'
    elif key in around:
        hint = f"{key} belongs one level up, beside {_last_name(where[:-1])}"
    elif below is not None:
        hint = f"{key} belongs one level down, in {below}"
    elif "/" in key or key[:1].isupper():
        hint = "it looks like an entry of a map, such as metadata.annotations: write it there"
    elif _OPEN in schema:
        return
    else:
        code = code if is_closed else codes.UNKNOWN_FIELD
        hint = nearest(key, here) or f"known here: {', '.join(known) or 'none'}"
    dropped = " and is dropped" if code is codes.UNKNOWN_FIELD else ""
    inspection.doubt(code, where, f"{place} is not a field of this kind{dropped}", hint=hint)


def _fields_of(name: str, schema: Schema) -> Collection[str]:
    """The fields of a mapping, or of the mappings in a list. name: the field that holds it."""
    if name in _RESOURCE_MAPS:
        return _RESOURCES
    if name == "podSpec":
        schema = schema_of("pod_template")["properties"]["spec"]
    return schema.get("properties") or schema.get("items", {}).get("properties") or ()


def _last_name(path: Path) -> str:
    return str(next((step for step in reversed(path) if isinstance(step, str)), "metadata"))

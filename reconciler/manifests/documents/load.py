"""From files to documents: splitting, decoding, limits, Lists. And the JSON Schemas of the kinds, package data in `schemas/`.

A file is split at its `---` lines before it is parsed, as in kubectl, so that a broken document does not affect its neighbours.
Nothing here raises: what cannot be read becomes a finding, and its file is listed as broken.

The schemas are compiled on first use. They are written in the dialect of a CustomResourceDefinition's `openAPIV3Schema`, so that
`headroom crd` can print those of headroom's own kinds. `example` values become hints in findings.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from reconciler.manifests.documents.document import Document, Marks, unreadable
from reconciler.manifests.documents.tree import Root, Unreadable, documents_of
from reconciler.model import codes
from reconciler.model.findings import Finding
from reconciler.model.refs import SourcePosition

LARGEST_FILE = 2**20
"""The largest file, in bytes. Sources leave out larger ones too."""
MOST_DOCUMENTS_IN_A_FILE = 10_000
MOST_DOCUMENTS = 50_000
MOST_SURPLUS = 64 * 2**20
"""The most characters that the aliases of all files together may add to what is written. What is copied is held in memory."""
MANIFEST_SUFFIXES = (".yaml", ".yml", ".json")
_SEPARATOR = re.compile(r"^---(?=[ \t]*(?:#[^\n]*)?\r?$)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Loaded:
    """documents: mappings only, with Lists unpacked, by file and line."""

    documents: tuple[Document, ...]
    findings: tuple[Finding, ...]


def load(
    files: Mapping[str, bytes], items_of: Callable[[str, bytes], Iterable[Document | Finding]] | None = None
) -> Loaded:
    """Reads every manifest among the files (`.yaml`, `.yml`, `.json`); templates and other files are ignored.

    items_of: reads one file as `load_file` does, which is the default.
    """
    read = items_of or load_file
    documents: list[Document] = []
    findings: list[Finding] = []
    surplus = 0
    for path in sorted(files):
        if not path.endswith(MANIFEST_SUFFIXES):
            continue
        for item in read(path, files[path]):
            if isinstance(item, Finding):
                findings.append(item)
                continue
            surplus += item.surplus
            if item.surplus and surplus > MOST_SURPLUS:
                message = f"the aliases of all files together add more than {MOST_SURPLUS // 2**20} MiB, so this document is not read"
                hint = "write the values out, or use fewer aliases"
                findings.append(codes.TOO_MANY_ALIASES.finding(message, item.position, hint=hint))
            elif len(documents) < MOST_DOCUMENTS:
                documents.append(item)
            else:
                findings.append(_too_many(item.position, MOST_DOCUMENTS, "all files together have"))
                break
    return Loaded(tuple(documents), tuple(findings))


def load_file(path: str, content: bytes) -> Iterator[Document | Finding]:
    """The documents of one file, and findings for those that cannot be read, in order."""
    if len(content) > LARGEST_FILE:
        message = f"the file has {len(content)} bytes, more than {LARGEST_FILE}"
        hint = "split it, or leave it out by .sourceignore"
        yield codes.FILE_TOO_LARGE.finding(message, SourcePosition(path, 1), hint=hint)
        return
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        place = SourcePosition(path, content.count(b"\n", 0, error.start) + 1)
        yield codes.NOT_UTF8.finding(
            f"byte {error.start} is not UTF-8", place, hint="save the file with UTF-8 encoding"
        )
        return
    marks = Marks()
    count = 0
    for first_line, part in _split(text):
        for item in _parsed(path, part, first_line, marks):
            count += 1
            if count > MOST_DOCUMENTS_IN_A_FILE:
                yield _too_many(item.position, MOST_DOCUMENTS_IN_A_FILE, "the file has")
                return
            yield item


def plain(text: str) -> Any:
    """The only document of a trusted YAML text, such as the package's own schemas, without positions."""
    return next(documents_of(text, Marks(), 0)).value


def _split(text: str) -> Iterator[tuple[int, str]]:
    """The parts between `---` lines, each with the line (from 0) on which it begins."""
    start = 0
    line = 0
    for match in _SEPARATOR.finditer(text):
        if match.start() == 0:
            continue
        part = text[start : match.start()]
        yield line, part
        line += part.count("\n")
        start = match.start()
    yield line, text[start:]


def _parsed(path: str, text: str, first_line: int, marks: Marks) -> Iterator[Document | Finding]:
    try:
        for root in documents_of(text, marks, first_line):
            if root.value is not None:
                yield from _unpacked(path, root, marks)
    except Unreadable as error:
        yield error.code.finding(error.message, SourcePosition(path, error.line, error.column), hint=error.hint)
    except Exception as error:  # noqa: BLE001 - whatever a document raises, it must not stop the others
        yield unreadable(error, SourcePosition(path, first_line + 1), None)


def _unpacked(path: str, root: Root, marks: Marks) -> Iterator[Document | Finding]:
    """The document itself, or the items of a `kind: List` (one level: lists of lists do not exist)."""
    value, position, surplus = root.value, SourcePosition(path, root.line, root.column), root.surplus
    if not isinstance(value, dict):
        parts = value if isinstance(value, list) else [value]
        if any("apiVersion" in part for part in parts if isinstance(part, dict | str)):
            shape = "a list" if isinstance(value, list) else "text"
            hint = "write its fields at the beginning of the line, without a dash and with a colon after each key"
            yield codes.WRONG_TYPE.finding(f"an object must be a mapping, not {shape}", position, hint=hint)
        else:
            yield codes.NOT_AN_OBJECT.finding("not a Kubernetes object: skipped", position)
        return
    items = value.get("items")
    kind = value.get("kind")
    if not (isinstance(kind, str) and kind.endswith("List") and isinstance(items, list)):
        yield Document(path, value, position, marks, surplus)
        return
    places = marks.of(items)
    for index, item in enumerate(items):
        place = SourcePosition(path, *places[index]) if index in places else position
        if isinstance(item, dict):
            yield Document(path, item, place, marks, surplus)
            surplus = 0  # it is counted once
        else:
            yield codes.WRONG_TYPE.finding(f"items[{index}] is not an object", place, hint="remove it")


def _too_many(position: SourcePosition | None, limit: int, whose: str) -> Finding:
    hint = "split the repository by path, one cluster each"
    return codes.TOO_MANY_DOCUMENTS.finding(f"{whose} more than {limit} documents", position, hint=hint)


Schema = Mapping[str, Any]


def schema_of(name: str) -> dict[str, Any]:
    """The schema in `schemas/NAME.yaml`; of FILE/KIND the one for that kind. The value is shared and must not be modified."""
    file, _, kind = name.partition("/")
    schema: dict[str, Any] = _schemas(file)[kind] if kind else _schemas(file)
    return schema


@cache
def _schemas(file: str) -> dict[str, Any]:
    folder = files("reconciler.manifests") / "schemas"
    schemas: dict[str, Any] = plain("".join((folder / f"{name}.yaml").read_text("utf-8") for name in ("shared", file)))
    del schemas["shared"]
    return schemas


@cache
def validator_of(name: str) -> Any:
    """A compiled validator whose `iter_errors` yields every violation."""
    import jsonschema_rs

    # An engine without backtracking: manifests are not trusted, and some of Karpenter's patterns could take exponential time.
    return jsonschema_rs.Draft7Validator(schema_of(name), pattern_options=jsonschema_rs.RegexOptions())


@dataclass(frozen=True, slots=True)
class SchemaRule:
    """What a schema says beyond structure, in an `allOf`: the code, message and hint of its finding, and the place of that: where
    the value is wrong, or what the rule names as `at`, below its own place."""

    code: str
    message: str
    hint: str
    place: tuple[str | int, ...]


def violations(name: str, value: Any) -> Iterator[tuple[Any, SchemaRule | None]]:
    """Where the value violates the schema: the validator's error, and the rule that is broken; None if the structure is wrong."""
    schema = schema_of(name)
    for error in validator_of(name).iter_errors(value):
        yield error, _rule(schema, error)


def _rule(schema: Any, error: Any) -> SchemaRule | None:
    """The innermost rule on the error's path through the schema."""
    rule, depth, names = None, 0, False
    for step in error.schema_path:
        schema = schema[step]
        depth += names or step in {"items", "additionalProperties"}
        names = not names and step in {"properties", "patternProperties"}
        if isinstance(schema, Mapping) and isinstance(schema.get("code"), str):
            where = error.instance_path
            place = (*where[:depth], *schema["at"]) if "at" in schema else tuple(where)
            rule = SchemaRule(schema["code"], schema["message"], schema["hint"], place)
    return rule


def with_defaults(schema: Schema, value: Any) -> Any:
    """A copy with absent fields set to their `default`. As in the API server, a default object gets defaults itself."""
    if isinstance(value, Mapping):
        properties: Mapping[str, Schema] = schema.get("properties", {})
        further: Schema = schema.get("additionalProperties", {})
        filled = {key: with_defaults(properties.get(key, further), inner) for key, inner in value.items()}
        for key, part in properties.items():
            if key not in filled and "default" in part:
                filled[key] = with_defaults(part, part["default"])
        return filled
    if isinstance(value, list):
        items: Schema = schema.get("items", {})
        return [with_defaults(items, inner) for inner in value]
    return value


def null_keys(value: Any, at: tuple[str | int, ...] = ()) -> dict[tuple[str | int, ...], list[str]]:
    """The keys that `without_nulls` drops, by the path of their mapping."""
    keys: dict[tuple[str | int, ...], list[str]] = {}
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if inner is None:
                keys.setdefault(at, []).append(key)
            else:
                keys |= null_keys(inner, (*at, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            keys |= null_keys(inner, (*at, index))
    return keys


def without_nulls(value: Any) -> Any:
    """A copy without null entries in mappings, which the API server drops before it validates."""
    if isinstance(value, Mapping):
        return {key: without_nulls(inner) for key, inner in value.items() if inner is not None}
    if isinstance(value, list):
        return [without_nulls(inner) for inner in value]
    return value

"""One JSON Schema of all manifests, with which editors complete fields and mark mistakes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from reconciler.manifests.documents.schema import schema_of
from reconciler.manifests.kind import Kind
from reconciler.manifests.kinds import KINDS

_OPEN = "x-kubernetes-preserve-unknown-fields"
SCHEMA_FILE = ".headroom/manifests.schema.json"
"""Where `headroom init` puts the schema. Hidden folders are not read as manifests."""


def editor_line(levels: int) -> str:
    """The comment that tells editors where the schema is. levels: how many folders below the repository's root the file is."""
    return f"# yaml-language-server: $schema={'../' * levels}{SCHEMA_FILE}\n"


def editor_schema_text() -> str:
    """The content of the file that `editor_line` refers to."""
    return json.dumps(editor_schema(), indent=2) + "\n"


def editor_schema() -> dict[str, Any]:
    """A draft-07 schema with the rules of each kind and version. Documents of other kinds may contain anything."""
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Manifests that headroom reads",
        "type": "object",
        "required": ["apiVersion", "kind"],
        "properties": {"apiVersion": {"type": "string"}, "kind": {"type": "string"}},
        "allOf": [_rule(kind) for kind in KINDS if kind.schema is not None],
    }


def _rule(kind: Kind) -> dict[str, Any]:
    versions = [f"{kind.group}/{version}" if kind.group else version for version in kind.versions]
    return {
        "if": {
            "required": ["apiVersion", "kind"],
            "properties": {"apiVersion": {"enum": versions}, "kind": {"const": kind.name}},
        },
        "then": _of(kind),
    }


def _of(kind: Kind) -> dict[str, Any]:
    schema = _closed(schema_of(kind.schema or ""))
    properties: Mapping[str, Any] = schema.get("properties", {})
    every = {
        "apiVersion": {"type": "string"},
        "kind": {"const": kind.name},
        "metadata": schema_of("metadata"),
        "status": {},
    }
    return {**schema, "required": [*schema.get("required", []), "metadata"], "properties": {**every, **properties}}


def _closed(schema: Any) -> Any:
    """The schema, made to mark unknown fields, which the API server drops silently. Hints for findings become examples."""
    if isinstance(schema, list):
        return [_closed(item) for item in schema]
    if not isinstance(schema, Mapping):
        return schema
    properties = schema.get("properties")
    closed = {
        key: {name: _closed(part) for name, part in value.items()} if key == "properties" else _closed(value)
        for key, value in schema.items()
        if key not in {"example", "whenTooLong"}
    }
    if "example" in schema and not isinstance(schema["example"], Mapping | list) and "properties" not in schema:
        closed["examples"] = [schema["example"]]
    if isinstance(properties, Mapping) and "additionalProperties" not in schema and not schema.get(_OPEN):
        closed["additionalProperties"] = False
    return closed

"""The JSON Schemas of the kinds: package data in `schemas/`, compiled on first use.

They are written in the dialect of a CustomResourceDefinition's `openAPIV3Schema`, so that `headroom crd` can print those of
headroom's own kinds. `example` values become hints in findings.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from reconciler.manifests.documents.load import plain

Schema = Mapping[str, Any]


@cache
def schema_of(name: str) -> dict[str, Any]:
    """The schema in `schemas/NAME.yaml`. The value is shared and must not be modified."""
    text = (files("reconciler.manifests") / "schemas" / f"{name}.yaml").read_text(encoding="utf-8")
    schema: dict[str, Any] = plain(text)
    return schema


@cache
def validator_of(name: str) -> Any:
    """A compiled validator whose `iter_errors` yields every violation."""
    import jsonschema_rs

    # An engine without backtracking: manifests are not trusted, and some of Karpenter's patterns could take exponential time.
    return jsonschema_rs.Draft7Validator(schema_of(name), pattern_options=jsonschema_rs.RegexOptions())


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

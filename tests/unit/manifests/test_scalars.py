"""YAML values are read as kubectl reads them, so that a manifest means the same to both."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from reconciler.manifests import codes
from reconciler.manifests.document import Document
from reconciler.manifests.load import load_file
from reconciler.model.findings import Finding

SCALARS: list[dict[str, Any]] = yaml.load(
    (Path(__file__).parents[2] / "cases" / "yaml_scalars.yaml").read_bytes(), Loader=yaml.CSafeLoader
)


def only(text: str) -> Document | Finding:
    (item,) = load_file("file.yaml", text.encode())
    return item


def value_of(text: str) -> Any:
    item = only(text)
    assert isinstance(item, Document), item
    return item.value


@pytest.mark.parametrize("case", SCALARS, ids=lambda case: case["written"])
def test_scalars(case: dict[str, Any]) -> None:
    assert json.dumps(value_of(f"a: {case['written']}\n")) == json.dumps({"a": case["json"]})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("yes: 1\n", {"true": 1}),
        ("010: 1\n", {"8": 1}),
        ("1.5: 1\n", {"1.5": 1}),
    ],
)
def test_keys_become_text(text: str, expected: dict[str, int]) -> None:
    assert value_of(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("c: {<<: *x, d: 2}", {"b": 1, "d": 2}),
        ("c: {b: 2, <<: *x}", {"b": 1}),
        ("c: {<<: *x, b: 2}", {"b": 2}),
        ("c: {<<: [*x, *y]}", {"b": 1, "e": 5}),
    ],
    ids=["adds", "wins over what is above it", "loses to what is below it", "of a list the first wins"],
)
def test_merge_keys(text: str, expected: dict[str, int]) -> None:
    assert value_of(f"x: &x {{b: 1}}\ny: &y {{b: 3, e: 5}}\n{text}\n")["c"] == expected


@pytest.mark.parametrize("text", ["a: .inf\n", "a: -.Inf\n", "a: .nan\n", "? [a]\n: b\n", "~: a\n", "{a: b}: c\n"])
def test_what_json_cannot_carry_is_refused(text: str) -> None:
    item = only(text)
    assert isinstance(item, Finding)
    assert item.code == codes.NOT_JSON.name


@pytest.mark.parametrize("text", ["a: !!int x\n", "a: !!int 5.0\n", "a: !!bool 1\n", "a: !!null x\n", "a: !!float x\n"])
def test_a_tag_that_does_not_fit_is_refused(text: str) -> None:
    item = only(text)
    assert isinstance(item, Finding)
    assert (item.code, item.hint) == (codes.YAML_SYNTAX.name, "remove the tag")

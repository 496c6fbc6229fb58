"""What YAML becomes: scalars as kubectl reads them, and aliases that cannot blow a document up."""

from __future__ import annotations

import json
from typing import Any

import pytest

from reconciler.manifests.documents.document import Document
from reconciler.manifests.documents.load import MOST_SURPLUS, load_file
from reconciler.manifests.documents.tree import MOST_CHARACTERS
from reconciler.manifests.repository.declared import read
from reconciler.model import codes
from reconciler.model.findings import Finding
from tests.case_files import Case, cases_in


def only(text: str) -> Document | Finding:
    (item,) = load_file("file.yaml", text.encode())
    return item


def value_of(text: str) -> Any:
    item = only(text)
    assert isinstance(item, Document), item
    return item.value


@pytest.mark.parametrize("case", cases_in("yaml_scalars.yaml"), ids=lambda case: case["written"])
def test_scalars(case: Case) -> None:
    assert json.dumps(value_of(f"a: {case['written']}\n")) == json.dumps({"a": case["json"]})


@pytest.mark.parametrize(
    ("text", "expected"), [("yes: 1\n", {"true": 1}), ("010: 1\n", {"8": 1}), ("1.5: 1\n", {"1.5": 1})]
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


@pytest.mark.parametrize("tag", ["int", "float", "bool", "null", "binary"])
def test_a_tag_of_something_else_than_text_is_refused(tag: str) -> None:
    item = only(f"a: !!{tag} 5\n")
    assert isinstance(item, Finding)
    assert (item.message, item.hint) == (f"!!{tag} is not read", "remove the tag")


BUFFER = """\
apiVersion: autoscaling.x-k8s.io/v1beta1
kind: CapacityBuffer
metadata: {name: NAME}
spec: {podTemplateRef: {name: x}, replicas: 1}
"""
LONG = "x" * 400_000
NEIGHBOUR = "---\n" + BUFFER.replace("NAME", "good")
BOMBS = {
    "aliases to a long text": f"a: &a {LONG}\n" + "".join(f"k{index}: *a\n" for index in range(40_000)),
    "the same in a list": f"a: &a {LONG}\nb: [{'*a, ' * 40_000}]\n",
    "merge keys": f"a: &a {{k: {LONG}}}\n" + "".join(f"m{index}: {{<<: *a}}\n" for index in range(20_000)),
    "a list of merges": f"a: &a {{k: {LONG}}}\nb: {{<<: [{'*a, ' * 40_000}]}}\n",
    "nested aliases": "a0: &a0 [xxxxxxxxxxxxxxxx]\n"
    + "".join(f"a{n + 1}: &a{n + 1} [{', '.join([f'*a{n}'] * 9)}]\n" for n in range(8)),
    "nested maps": "a0: &a0 {k: xxxxxxxxxxxxxxxx}\n"
    + "".join(f"a{n + 1}: &a{n + 1} {{{', '.join(f'k{i}: *a{n}' for i in range(9))}}}\n" for n in range(8)),
    "a long key": f"a: &a {LONG}\nb: [{'{? *a : 1}, ' * 20_000}]\n",
    "a long prefix of tags": f"%TAG !e! tag:{LONG}\n--- {{a: [{'!e!x y, ' * 20_000}]}}\n",
    "a folded text": "a: &a >\n" + "  word\n" * 60_000 + "b: [" + "*a, " * 20_000 + "]\n",
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_document_that_expands_too_far_is_refused_alone(bomb: str) -> None:
    text = BOMBS[bomb] + NEIGHBOUR
    assert len(text) < 2**20

    declared = read({"a.yaml": text.encode(), "b.yaml": BUFFER.replace("NAME", "other").encode()})

    (finding,) = (found for found in declared.findings if found.code == "too-many-aliases")
    assert "once its aliases are followed" in finding.message
    assert finding.position is not None
    assert finding.position.file == "a.yaml"
    assert [buffer.ref.name for buffer in declared.buffers] == ["good", "other"]
    assert declared.broken_files == {"a.yaml"}


def test_what_stays_below_the_bound_is_read() -> None:
    count = MOST_CHARACTERS // len(LONG) - 1
    aliases = ", ".join(f"k{index}: *a" for index in range(count))
    text = BUFFER.replace("{name: NAME}", f"{{name: n, annotations: {{a: &a {LONG}, {aliases}}}}}")
    assert "too-many-aliases" not in {found.code for found in read({"a.yaml": text.encode()}).findings}


@pytest.mark.parametrize("one_file", [True, False], ids=["in one file", "in many files"])
def test_many_documents_that_each_expand_a_little_are_bounded_together(
    one_file: bool,  # noqa: FBT001 - a case
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each has 90,000 values, and with an eighth of the bound six of them are too much."""
    most = MOST_SURPLUS // 8
    monkeypatch.setattr("reconciler.manifests.documents.load.MOST_SURPLUS", most)
    bomb = "a: &a [x, x, x, x, x, x, x, x, x, x]\nb: &b [" + "*a, " * 90 + "]\nc: [" + "*b, " * 90 + "]\n"
    parts = [BUFFER.replace("NAME", f"b{index:04}") + bomb for index in range(150)]
    files = {"0.yaml": "---\n".join(parts)} if one_file else {f"{n:04}.yaml": part for n, part in enumerate(parts)}
    files["z.yaml"] = BUFFER.replace("NAME", "good")

    declared = read({path: text.encode() for path, text in files.items()})

    names = {buffer.ref.name for buffer in declared.buffers}
    assert "good" in names, "a document without aliases is read, wherever it stands"
    refused = [found for found in declared.findings if found.code == "too-many-aliases"]
    assert len(refused) == len(parts) + 1 - len(names)
    assert len(names) <= most // (90_000 * 16) + 1
    assert all(found.position is not None and found.position.file in declared.broken_files for found in refused)

"""What aliases expand to is bounded, in values and in characters: of a document, and of all files together."""

from __future__ import annotations

import pytest

from reconciler.manifests.declared import read
from reconciler.manifests.load import MOST_SURPLUS
from reconciler.manifests.tree import MOST_CHARACTERS

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
    "a long prefix of tags": f"%TAG !e! tag:{LONG}\n---\na: [{'!e!x y, ' * 20_000}]\n",
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
def test_many_documents_that_each_expand_a_little_are_bounded_together(one_file: bool) -> None:  # noqa: FBT001 - a case
    """Each has 90,000 values; 1,500 of them would be 135 million."""
    bomb = "a: &a [x, x, x, x, x, x, x, x, x, x]\nb: &b [" + "*a, " * 90 + "]\nc: [" + "*b, " * 90 + "]\n"
    parts = [BUFFER.replace("NAME", f"b{index:04}") + bomb for index in range(1_000)]
    files = {"0.yaml": "---\n".join(parts)} if one_file else {f"{n:04}.yaml": part for n, part in enumerate(parts)}
    files["z.yaml"] = BUFFER.replace("NAME", "good")

    declared = read({path: text.encode() for path, text in files.items()})

    names = {buffer.ref.name for buffer in declared.buffers}
    assert "good" in names, "a document without aliases is read, wherever it stands"
    refused = [found for found in declared.findings if found.code == "too-many-aliases"]
    assert len(refused) == len(parts) + 1 - len(names)
    assert len(names) <= MOST_SURPLUS // (90_000 * 16) + 1
    assert all(found.position is not None and found.position.file in declared.broken_files for found in refused)

"""Templates made at random: each renders or is a failure with file and line, and the next one renders.

HEADROOM_SCENARIOS=10000 makes as many of them; each has a seed, which alone makes it again.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from typing import Any

import pytest

from reconciler.files import packaged_texts
from reconciler.render.check import checked_templates, representative_creations
from reconciler.render.templates import DocumentTemplates, RenderProcess, TemplateFailed, TemplateSource
from reconciler.render.writes import node_claim_context

SCENARIOS = int(os.environ.get("HEADROOM_SCENARIOS", "150"))
BATCH = 50
PACKAGED = packaged_texts("templates", suffix=".j2")
CLAIM = PACKAGED["nodeclaim.yaml.j2"]
CONTEXTS = [node_claim_context(*pair) for pair in representative_creations()]
VALUES = (
    "name", "labels", "requirements", "requests", "taints", "pool.uid", "nothing", "1", "'x'", '"\\ud800"', "[]", "{}", "none",
    "0.1", "10 ** 400", "'x' * 10 ** 8", "loop", "loop.index", "self", "caller", "cycler()", "cycler(1).next()", "joiner(', ')",
    "namespace()", "dict(a=1)", "holds[0].demand", "varargs", "''.__class__", "(1, 2)[5]", "-name", "not name", "1 // 0",
)  # fmt: skip
FILTERS = (
    "json", "cell", "list", "length", "join", "upper", "tojson", "int", "float", "first", "sum", "sort", "groupby('key')",
    "map(attribute='key')", "select", "batch(2)", "center(9)", "indent(4)", "xmlattr", "replace('a', 'b')", "wordwrap(0)",
    "slice(0)", "truncate(-1)", "format(1)", "string", "random", "urlize", "dictsort", "unique", "round", "filesizeformat", "nosuch",
)  # fmt: skip
OPENINGS = (
    ("{% if V %}", "{% endif %}"), ("{% for a in V %}", "{% endfor %}"), ("{% for a in V recursive %}", "{{ loop(V) }}{% endfor %}"),
    ("{% macro m(a) %}", "{% endmacro %}{{ m(V) }}"), ("{% call m(V) %}", "{% endcall %}"), ("{% filter json %}", "{% endfilter %}"),
    ("{% block b %}", "{% endblock %}"), ("{% set s %}", "{% endset %}{{ s }}"), ("{% with a = V %}", "{% endwith %}"),
    ("{% autoescape V %}", "{% endautoescape %}"), ("{% raw %}", "{% endraw %}"), ("{# ", " #}"), ("{% raw %}", ""), ("{% if V %}", ""),
)  # fmt: skip
SINGLE = (
    "{{ V }}", "{{ V | F }}", "{{ V | F | F }}", "{% set name = V %}", "{% include 'nodeclaim.yaml.j2' %}", "{% include V %}",
    "{% include 'part.j2' %}", "{% extends 'part.j2' %}", "{% import 'part.j2' as p %}{{ p.m(V) }}", "{% do V %}", "\n", "a: 1\n", "{{", "%}",
    "{{ self.b() }}", "{{ m(V) }}", "{{ V(V) }}", "{{ V[V] }}", "{{ V ~ V }}", "{{ V + V }}", "{{ V if V }}", "{% break %}", "é\u2028\x00",
)  # fmt: skip


def text(draw: random.Random, depth: int = 0) -> str:
    pieces = []
    for _ in range(draw.randint(1, 4)):
        if depth < 5 and draw.random() < 0.4:
            opening, closing = draw.choice(OPENINGS)
            pieces.append(filled(opening, draw) + text(draw, depth + 1) + filled(closing, draw))
        else:
            pieces.append(filled(draw.choice(SINGLE), draw))
    return "".join(pieces)


def filled(piece: str, draw: random.Random) -> str:
    return "".join(
        draw.choice(VALUES) if letter == "V" else draw.choice(FILTERS) if letter == "F" else letter for letter in piece
    )


def mutated(draw: random.Random) -> str:
    """The packaged template with a stroke of bad luck: a piece taken out, put in, or said twice."""
    spoiled = CLAIM
    for _ in range(draw.randint(1, 3)):
        begin = draw.randrange(len(spoiled))
        end = min(len(spoiled), begin + draw.randint(0, 30))
        middle = draw.choice(("", text(draw), spoiled[begin:end] * 2))
        spoiled = spoiled[:begin] + middle + spoiled[end:]
    return spoiled


def failure_of(templates: DocumentTemplates, context: dict[str, Any]) -> TemplateFailed | None:
    """None when it renders to text that can be written."""
    try:
        templates.render("nodeclaim.yaml.j2", context).encode()
    except TemplateFailed as failure:
        return failure
    return None


@pytest.fixture(scope="module")
def process() -> Iterator[RenderProcess]:
    process = RenderProcess()
    yield process
    process.close()


@pytest.mark.parametrize("batch", range(0, SCENARIOS, BATCH))
def test_a_template_renders_or_fails_at_a_line(batch: int, process: RenderProcess) -> None:
    for seed in range(batch, min(SCENARIOS, batch + BATCH)):
        draw = random.Random(seed)
        own = {"nodeclaim.yaml.j2": draw.choice((text, mutated))(draw), "part.j2": text(draw)}
        templates = DocumentTemplates(PACKAGED, own, process=process)
        for context in CONTEXTS:
            failure = failure_of(templates, context)
            if failure is not None:
                name = failure.position.file.removeprefix("templates/")
                assert 1 <= failure.position.line <= own[name].count("\n") + 1, seed
                assert failure.message, seed
        assert DocumentTemplates({"a": "{{ b }}"}, process=process).render("a", {"b": seed}) == str(seed)


@pytest.mark.parametrize("batch", range(0, SCENARIOS, BATCH))
def test_what_is_wrong_with_templates_is_always_a_finding(batch: int, process: RenderProcess) -> None:
    source = TemplateSource(PACKAGED, process=process)
    for seed in range(batch, min(SCENARIOS, batch + BATCH), 5):
        draw = random.Random(seed)
        files = {f"templates/{name}": mutated(draw).encode() for name in ("nodeclaim.yaml.j2", "nodepool.yaml.j2")}
        for finding in checked_templates(source.of(files)).findings:
            assert finding.position is not None, seed
            assert finding.position.file in files, seed

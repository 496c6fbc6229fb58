"""Templates: what they get, what they write, and how their failures read."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import pytest

from reconciler.model.errors import Invalid
from reconciler.render.environment import Templates, TooLongError
from reconciler.render.templates import MOST_OUTPUT, DocumentTemplates, RenderProcess, TemplateFailed
from reconciler.report.escaping import PAGE_FILTERS

LONG = "x" * 30_000


@pytest.fixture(scope="module", autouse=True)
def soon() -> Iterator[None]:
    """A template has less time, so that nobody waits long for one that hangs."""
    with patch("reconciler.render.templates.SECONDS", 0.3):
        yield


@pytest.fixture(scope="module")
def process() -> Iterator[RenderProcess]:
    process = RenderProcess()
    yield process
    process.close()


def templates(text: str, process: RenderProcess, **others: str) -> DocumentTemplates:
    own = {"own.yaml.j2": text} | {f"{name}.yaml.j2": other for name, other in others.items()}
    return DocumentTemplates({"packaged.yaml.j2": "packaged"}, own, process=process)


def render(text: str, process: RenderProcess, **context: object) -> str:
    return templates(text, process).render("own.yaml.j2", context)


def failure(text: str, process: RenderProcess, **context: object) -> TemplateFailed:
    with pytest.raises(TemplateFailed) as caught:
        render(text, process, long=LONG, values=[1], **context)
    return caught.value


def test_values_cannot_change_the_structure_of_a_document(process: RenderProcess) -> None:
    assert render("name: {{ name | json }}", process, name="a\nkind: Secret") == 'name: "a\\nkind: Secret"'


def test_own_templates_stand_in_front_of_packaged_ones(process: RenderProcess) -> None:
    both = DocumentTemplates({"a": "packaged", "b": "packaged"}, {"a": "own"}, process=process)
    assert (both.render("a", {}), both.render("b", {})) == ("own", "packaged")


def test_text_of_every_language_comes_back_whole(process: RenderProcess) -> None:
    assert render("{{ x }} ∀ 🐙", process, x="Größe\u2028\x00") == "Größe\u2028\x00 ∀ 🐙"


@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
        ("a\n{{ nmae }}", 2, "'nmae' is undefined"),
        ("a\n{% if %}", 2, "Expected an expression"),
        ("\n\n{{ ''.__class__.__mro__ }}", 3, "the sandbox refuses"),
        ("\n{{ [].append.__globals__ }}", 2, "the sandbox refuses"),
        ("{% set x = values.append(1) %}", 1, "the sandbox refuses"),
        ("\n{% include '/etc/passwd' %}", 2, "/etc/passwd"),
        ("{% for i in range(10) %}{% endfor %}", 1, "'range' is undefined"),
        ("\n{{ lipsum(n=200000) }}", 2, "'lipsum' is undefined"),
        ("\n{{ values | random }}", 2, "No filter named 'random'"),
        ("{{ self.__init__ }}", 1, "the sandbox refuses"),
        ("\n{{ 1 / 0 }}", 2, "division by zero"),
        ("\n{% set c = cycler() %}{{ c.next() }}", 2, "at least one item"),
        ('{{ "\\ud800" }}', 1, "surrogate"),
    ],
)
def test_a_mistake_is_told_with_its_line(text: str, line: int, why: str, process: RenderProcess) -> None:
    found = failure(text, process)
    assert (found.position.file, found.position.line) == ("templates/own.yaml.j2", line)
    assert why in found.message
    assert "own.yaml.j2 (from the repository)" in found.message


@pytest.mark.parametrize(
    "text",
    [
        "\n{% include 'own.yaml.j2' %}",
        "{% macro m() %}\n{{ m() }}{% endmacro %}{{ m() }}",
        "{% block b %}{{ self.b() }}{% endblock %}",
        "\n\n{{ " + "(" * 3_000 + "1" + ")" * 3_000 + " }}",
        "\n{{ " + "[" * 500 + "]" * 500 + " }}",
        "\n{{ " + "-" * 3_000 + "1 }}",
        "{% if x %}" * 400 + "{% endif %}" * 400,
        "{% for a in long %}\n" * 25 + "{% endfor %}" * 25,
    ],
)
def test_what_is_nested_too_deep_is_told(text: str, process: RenderProcess) -> None:
    assert "nested" in failure(text, process).message


@pytest.mark.parametrize(
    "expression", ["'x' * 4000000000", "[long] * 10 ** 10", "'%099999999999d' % 1", "long | center(10 ** 10)"]
)
def test_memory_is_bounded(expression: str, process: RenderProcess) -> None:
    found = failure(f"\n\n{{{{ {expression} }}}}", process)
    assert found.position.line == 3
    assert "memory" in found.message


def test_output_is_bounded(process: RenderProcess) -> None:
    found = failure("\n{% for a in long %}{{ long }}{% endfor %}", process)
    assert found.position.line == 2
    assert f"more than {MOST_OUTPUT:,} characters" in found.message


LOOPS = "\n\n{% for a in long %}{% for b in long %}{% for c in long %}{% for d in long %}\n{% endfor %}{% endfor %}{% endfor %}{% endfor %}"


@pytest.mark.parametrize("text", [LOOPS, "\n\n{% if 3 ** (10 ** 9) %}{% endif %}", "\n\n{{ 3 ** (10 ** 9) }}"])
def test_time_is_bounded_and_the_next_template_renders(text: str, process: RenderProcess) -> None:
    found = failure(text, process)
    assert "processor time" in found.message
    assert found.position.line == (3 if text is LOOPS else 1), "a constant is computed before the first line"
    assert render("{{ x }}", process, x=1) == "1"


def test_an_included_template_is_the_one_that_is_named(process: RenderProcess) -> None:
    outer = templates("\n{% include 'inner.yaml.j2' %}", process, inner="\n\n{{ 1 / 0 }}")
    with pytest.raises(TemplateFailed) as caught:
        outer.render("own.yaml.j2", {})
    assert str(caught.value.position) == "templates/inner.yaml.j2:3:1"


def test_a_template_that_used_up_its_time_is_not_tried_again(process: RenderProcess) -> None:
    stuck = templates("{{ 3 ** (10 ** 9) }}", process, other="fine")
    with pytest.raises(TemplateFailed, match="processor time"):
        stuck.render("own.yaml.j2", {})
    with patch.object(process, "ask", None), pytest.raises(TemplateFailed, match="processor time"):
        stuck.render("own.yaml.j2", {})
    assert stuck.render("other.yaml.j2", {}) == "fine"


def test_no_document_depends_on_those_before_it(process: RenderProcess) -> None:
    counting = templates(
        "{% import 'part.yaml.j2' as part %}{% set n = part.n %}{% set n.x = n.x + 1 %}{{ n.x }}{{ part.c.next() }}",
        process,
        part="{% set n = namespace(x=0) %}{% set c = cycler('a', 'b') %}",
    )
    assert [counting.render("own.yaml.j2", {}) for _ in range(3)] == ["1a", "1a", "1a"]


def test_a_worker_that_was_killed_is_replaced(process: RenderProcess) -> None:
    render("a", process)
    pid = process.pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    assert render("b", process) == "b"
    assert process.pid != pid


def test_the_worker_has_no_secrets_of_its_parent(process: RenderProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    process.close()
    monkeypatch.setenv("HEADROOM_GIT_TOKEN", "ghp_secret")
    render("a", process)
    assert b"ghp_secret" not in Path(f"/proc/{process.pid}/environ").read_bytes()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_the_worker_goes_with_its_parent(number: signal.Signals) -> None:
    script = (
        "import time\n"
        "from reconciler.render.templates import RenderProcess\n"
        "process = RenderProcess()\n"
        "process.ask({'a': 'b'}, {'render': 'a', 'context': {}, 'most': 9})\n"
        "print(process.pid, flush=True)\n"
        "time.sleep(600)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(Path.cwd())},
    ) as parent:
        assert parent.stdout is not None
        descriptor = os.pidfd_open(int(parent.stdout.readline()))
        parent.send_signal(number)
    ended, _, _ = select.select([descriptor], [], [], 60)
    os.close(descriptor)
    assert ended


def test_pages_escape_and_use_the_filters_they_are_given() -> None:
    page = Templates({"p.html.j2": "{{ x }}", "p.md.j2": "| {{ x | cell }} |"}, filters=PAGE_FILTERS)
    assert page.render("p.html.j2", {"x": "<b>"}) == "&lt;b&gt;"
    assert page.render("p.md.j2", {"x": "a|b\n<script> [x](y) @all"}) == "| a\\|b &lt;script> \\[x](y) @\u200ball |"


def test_a_page_is_bounded() -> None:
    page = Templates({"p.md.j2": "{% for a in x %}{{ long }}{% endfor %}"})
    with patch("reconciler.render.environment.MOST_PAGE", 9_999), pytest.raises(TooLongError):
        page.render("p.md.j2", {"x": [0] * 100, "long": "x" * 100})


def test_a_page_with_a_mistake_names_it() -> None:
    with pytest.raises(Invalid, match=r"p\.md\.j2: 'x' is undefined"):
        Templates({"p.md.j2": "{{ x }}"}).render("p.md.j2", {})

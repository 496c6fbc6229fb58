"""Whatever users write stays text: checked with a Markdown parser, an XML parser, JSON, and the rules of the runner."""

from __future__ import annotations

import json
import re
import unicodedata
from datetime import UTC
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from reconciler.model.changes import Action, FieldChange, ObjectChange, Plan
from reconciler.model.findings import Finding, Severity
from reconciler.model.refs import SourcePosition
from reconciler.report import escaping
from reconciler.report.difference.difference import Details, difference
from reconciler.report.difference.document import difference_document
from reconciler.report.difference.page import difference_page
from reconciler.report.escaping import masked_changes, to_json
from reconciler.report.findings import findings_text, github_annotations, sarif_document
from reconciler.report.plan.page import plan_page
from reconciler.report.plan.rows import page_text
from reconciler.wiring.posting import rendered_page
from tests.builders import buffer_ref
from tests.plans import NOW

SPECIAL = "`*_~[]()<>!#|\\&:@/.-+=\n\r\t 0123ab\x1b\x00\x9b\u200b\u202e\u2066\u2028\ud800https://www."
HARMLESS = {"inline", "text", "code_inline", "softbreak", "paragraph_open", "paragraph_close"}
MARKDOWN = MarkdownIt("commonmark").enable(["table", "strikethrough"])
ATTACKS = [
    "a`](https://evil.example) `b.yaml",
    "x\n# Approved\n.yaml",
    "![pixel](https://evil.example/p.png).yaml",
    "`` ` ``",
    "<img src=x onerror=alert(1)>",
    "*bold* _it_ ~~gone~~ **",
    "1. first",
    "- item",
    "> quoted",
    "---",
    "\\[a](b)",
    "\\`code`",
]
TEXTS = st.text(alphabet=SPECIAL, max_size=30) | st.text(max_size=30) | st.sampled_from(ATTACKS)


def kinds(markdown: str) -> set[str]:
    def walk(tokens: list[Token]) -> set[str]:
        return {token.type for token in tokens} | {kind for token in tokens for kind in walk(token.children or [])}

    return walk(MARKDOWN.parse(markdown))


def is_harmless_on_a_terminal(text: str) -> bool:
    return all(unicodedata.category(character) not in {"Cc", "Cf", "Cs", "Zl", "Zp"} for character in text)


@given(text=TEXTS)
def test_running_text_has_no_markup_of_its_own(text: str) -> None:
    assert kinds(escaping.markdown_text(text)) <= HARMLESS - {"code_inline"}
    assert kinds(f"- item {escaping.markdown_text(text)} end") <= HARMLESS | {
        "bullet_list_open",
        "bullet_list_close",
        "list_item_open",
        "list_item_close",
    }


@given(text=TEXTS)
def test_a_cell_is_one_cell(text: str) -> None:
    table = f"| a | b |\n|---|---|\n| {escaping.markdown_text(text)} | last |"
    cells = [token for token in MARKDOWN.parse(table) if token.type == "td_open"]
    assert len(cells) == 2
    assert "link_open" not in kinds(table)


@given(text=TEXTS)
def test_a_code_span_is_code_and_nothing_else(text: str) -> None:
    (paragraph,) = (
        token for token in MARKDOWN.parse(f"at {escaping.markdown_code(text)} end") if token.type == "inline"
    )
    assert [token.type for token in paragraph.children or []] == ["text", "code_inline", "text"]


def test_plain_words_stay_as_they_are() -> None:
    for words in ("general-headroom_x on-demand, $0.1086/h", "0 9 * * mon-fri for 8h", "+$12.00 a month", "a_b_c"):
        assert escaping.markdown_text(words) == words


@given(text=TEXTS)
def test_a_fence_stays_open(text: str) -> None:
    block = f"```text\n{escaping.markdown_fenced(text)}\n```"
    assert [token.type for token in MARKDOWN.parse(block)] == ["fence"]


@given(text=TEXTS)
@example("\x1b]0;title\x07")
@example("::error::forged")
@example("##[error]forged")
@example("a\n::error::forged")
def test_a_terminal_line_is_one_printable_line_and_no_runner_command(text: str) -> None:
    shown = escaping.terminal_lines([text])
    assert shown.endswith("\n")
    line = shown[:-1]
    assert is_harmless_on_a_terminal(line)
    assert not line.lstrip().startswith("::")
    assert "##[" not in line


def test_colours_stay_where_there_are_colours() -> None:
    def painted(_style: str, text: str) -> str:
        return f"\x1b[31m{text}\x1b[0m"

    line = painted("red", "error") + " \x1b[8mhidden \x1b]0;title\x07"
    shown = escaping.terminal_lines([line], painted)
    assert shown == "\x1b[31merror\x1b[0m \\x1b[8mhidden \\x1b]0;title\\x07\n"


@given(text=TEXTS)
def test_escaping_twice_changes_nothing(text: str) -> None:
    assert escaping.terminal(escaping.terminal(text)) == escaping.terminal(text)


@given(text=TEXTS)
def test_xml_can_be_parsed_and_says_the_text(text: str) -> None:
    assert ET.fromstring(f"<t>{escaping.xml_text(text)}</t>").text in {escaping.visible(text), None}


@given(text=TEXTS)
@example(text="a tag\U000e0020, a musical sign\U0001d173, an end of ayah\u06dd")
def test_json_is_the_same_document_and_can_be_printed(text: str) -> None:
    printed = to_json({"name": text, "rows": [{"a": text}]})
    assert json.loads(printed) == {"name": text, "rows": [{"a": text}]}
    assert is_harmless_on_a_terminal(printed.replace("\n", ""))
    printed.encode()


@given(name=TEXTS, words=TEXTS)
def test_a_finding_is_one_workflow_command_and_two_lines_of_text(name: str, words: str) -> None:
    finding = Finding("invalid-value", Severity.ERROR, words, SourcePosition(name, 3, 1), hint=words)
    (command,) = github_annotations([finding]).splitlines()
    assert re.fullmatch(r"::error file=[^:,]*,line=3,col=1,title=invalid-value::.*", command)
    assert len(findings_text([finding], documents=1, files=1).split("\n")) <= 4
    (result,) = sarif_document([finding])["runs"][0]["results"]
    assert "](" not in result["message"]["text"]
    uri = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert re.fullmatch(r"(?:[A-Za-z0-9._~/-]|%[0-9A-F]{2})*", uri)


def test_the_title_of_a_page_breaks_at_its_slashes_and_stays_text() -> None:
    """On a telephone `snapshots/production` was broken within a word."""
    page = plan_page(Plan(None, NOW), cluster="snapshot:a/<b>", zone=UTC)
    assert "<h1>Capacity plan for snapshot:a/<wbr>&lt;b&gt;</h1>" in rendered_page("report.html.j2", page)


# What looks like a secret is shown by no report, and still told to change.

CONTAINER = "template.spec.containers[0]"


@pytest.mark.parametrize(
    ("path", "before", "after"),
    [
        (f"{CONTAINER}.env[0].value", "hunter1", "hunter2"),
        (f"{CONTAINER}.env", [{"name": "A", "value": "hunter1"}], [{"name": "A", "value": "hunter2"}]),
        (f"{CONTAINER}.env[0]", {"name": "A", "value": "hunter1"}, {"name": "A", "value": "hunter2"}),
        (CONTAINER, {"env": [{"name": "A", "value": "hunter1"}]}, {"env": [{"name": "A", "value": "hunter2"}]}),
        ("metadata.annotations.example.com/db-password", "hunter1", "hunter2"),
        ("metadata.annotations.note", "https://me:hunter1@host/x", "https://me:hunter2@host/x"),
        ("template", None, {"spec": {"containers": [{"env": [{"name": "A", "value": "hunter2"}]}]}}),
    ],
)
def test_secrets_reach_no_report(path: str, before: Any, after: Any) -> None:
    change = ObjectChange(buffer_ref(), Action.UPDATE, (FieldChange(path, before, after),), {})
    found = difference(Plan(None, NOW), Plan(None, NOW, objects=(change,)), Details(templates=(change,)))
    page = difference_page(found, cluster="production")
    for text in (
        page_text(difference_page(found, cluster="production")),
        to_json(difference_document(found)),
        rendered_page("report.md.j2", page),
        rendered_page("report.html.j2", page),
    ):
        assert "hunter" not in text
        assert "***" in text or "\\*\\*\\*" in text


def test_a_secret_that_changes_is_told_to_change() -> None:
    (change,) = masked_changes([FieldChange("spec.env[0].value", "a", "b")])
    assert (change.before, change.after) == ("*** (before)", "*** (after)")


def test_other_values_stay() -> None:
    change = FieldChange("spec.replicas", 1, 2)
    assert masked_changes([change]) == (change,)

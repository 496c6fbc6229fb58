"""Every finding code has one page, and every page a code that something reports."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from reconciler.manifests.documents.structure import nearest
from reconciler.manifests.local_budgets import in_utc
from reconciler.manifests.repository.declared import KnownFiles, read
from reconciler.manifests.schedule_findings import schedule_findings
from reconciler.model import codes
from reconciler.model.findings import Code, Finding, help_page
from tests.unit.manifests.finding_repositories import DOCUMENTS, REPOSITORIES, Files, misspelt

ROOT = Path(__file__).parents[3]
PAGES = ROOT / "docs" / "findings"
ALL: dict[str, Code] = {code.name: code for code in codes.ALL}


def test_codes_and_pages_are_the_same_set() -> None:
    assert {page.stem for page in PAGES.glob("*.md")} - {"README"} == set(ALL)


@pytest.mark.parametrize("name", sorted(ALL))
def test_a_page_has_the_severity_an_example_and_what_to_write(name: str) -> None:
    text = (PAGES / f"{name}.md").read_text(encoding="utf-8")
    assert text.startswith(f"# {name}\n\n**{ALL[name].severity.value}** · ")
    assert "```yaml" in text
    assert "## What to write" in text


def test_the_index_lists_every_page() -> None:
    index = (PAGES / "README.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| \[([a-z0-9-]+)\]\(\1\.md\) \|", index, flags=re.MULTILINE) == sorted(ALL)


def test_the_index_says_where_the_pages_are_published() -> None:
    assert f"`{help_page('CODE')}`" in (PAGES / "README.md").read_text(encoding="utf-8")


def test_every_code_is_reported_somewhere() -> None:
    sources = [
        path.read_text(encoding="utf-8")
        for path in sorted((ROOT / "reconciler").rglob("*"))
        if path.suffix in {".py", ".yaml"} and path.name != "codes.py"
    ]
    assert {code.name for code in codes.ALL} - reported_in("\n".join(sources)) == set()


def reported_in(text: str) -> set[str]:
    """The codes that code and rules in schemas name."""
    named = {name: code.name for name, code in vars(codes).items() if isinstance(code, Code)}
    return {code for name, code in named.items() if f"codes.{name}" in text or f" code: {code}\n" in text}


# No check compares every document with every other one: what is executed grows with their number, for every finding code.
#
# What is executed for a repository whose documents were read before is counted line by line, so that only checks across documents count.

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
COUNT = 40
MOST_COMPARED = 32
MOST_FOR_A_PAIR = 0.3
"""Lines for each pair of documents. A comparison of each pair takes at least one."""


def lines_of(run: Callable[[], object]) -> int:
    """How many lines of Python it executes."""
    count = 0

    def trace(_frame: FrameType, event: str, _argument: Any) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        run()
    finally:
        sys.settrace(before)
    return count


def for_each_pair(measured: Callable[[int], int]) -> float:
    """What each pair of documents costs: the second difference, which a cost for each document, and a constant one, do not show in."""
    one, two, three = (measured(COUNT * times) for times in (1, 2, 3))
    return (three - 2 * two + one) / COUNT**2


@pytest.mark.parametrize("name", DOCUMENTS)
def test_no_check_compares_each_document_with_each(name: str) -> None:
    def lines(count: int) -> int:
        files, known = REPOSITORIES[name](count), KnownFiles()
        in_utc(read(files, known=known), NOW)
        return lines_of(lambda: in_utc(read(files, known=known), NOW))

    assert for_each_pair(lines) < MOST_FOR_A_PAIR


def test_such_a_comparison_would_be_noticed() -> None:
    def in_a_loop(count: int) -> int:
        def run() -> None:
            for one in range(count):
                for other in range(one):
                    str(other)

        return lines_of(run)

    def in_one_line(count: int) -> int:
        return lines_of(lambda: [one for one in range(count) if any(one == -other for other in range(count))])

    def once_for_each(count: int) -> int:
        return lines_of(lambda: [repr(one) for one in range(count)])

    assert for_each_pair(in_a_loop) > MOST_FOR_A_PAIR
    assert for_each_pair(in_one_line) > MOST_FOR_A_PAIR
    assert for_each_pair(once_for_each) < MOST_FOR_A_PAIR


def test_a_similar_name_is_looked_for_among_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Comparing two names takes long. However many objects there are, the misspelt one is found."""
    asked: list[int] = []

    def counted(word: str, known: Iterable[str]) -> str:
        names = list(known)
        asked.append(len(names))
        return nearest(word, names)

    monkeypatch.setattr("reconciler.manifests.repository.validate.nearest", counted)

    found = read(misspelt(500)).findings

    assert max(asked) <= MOST_COMPARED
    assert 'did you mean "shape-00123"?' in next(item.hint for item in found if "shaep-00123" in item.message)


def of_documents(files: Files) -> tuple[Finding, ...]:
    """What `validate` and the reading stages of a pass find."""
    declared = read(files)
    local = in_utc(declared, NOW)
    return (*declared.findings, *local.findings, *schedule_findings(declared.schedules, NOW))


@pytest.mark.parametrize("name", REPOSITORIES)
def test_each_repository_has_the_finding_that_it_is_made_for(name: str) -> None:
    found = of_documents(REPOSITORIES[name](2))
    assert name.partition(",")[0] in {finding.code for finding in found}


ONCE = "not-utf8 left-out file-too-large too-many-documents other-kinds old-zone-data not-read"
"""Found once in a file or in a repository."""
ELSEWHERE = "immutable-field buffer-too-large not-served too-many-budgets"
"""Needs a cluster; or takes long by itself (`tests.perf.local_budgets`)."""


def test_every_code_about_documents_has_a_repository() -> None:
    paths = (ROOT / "reconciler" / "manifests").rglob("*")
    text = "".join(path.read_text(encoding="utf-8") for path in paths if path.suffix in {".py", ".yaml"})
    assert reported_in(text) - DOCUMENTS.keys() == {*ONCE.split(), *ELSEWHERE.split()}

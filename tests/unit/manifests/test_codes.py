"""Every finding code has one page, and every page a code that something reports."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from reconciler.model import codes
from reconciler.model.findings import Code, help_page

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


def test_every_code_about_documents_is_named_by_a_test() -> None:
    paths = [path for path in sorted((ROOT / "tests").rglob("*")) if path.suffix in {".py", ".yaml"}]
    text = "\n".join(path.read_text(encoding="utf-8") for path in paths)
    sources = [
        path for path in sorted((ROOT / "reconciler" / "manifests").rglob("*")) if path.suffix in {".py", ".yaml"}
    ]
    reported = reported_in("\n".join(path.read_text(encoding="utf-8") for path in sources))
    constants = {code.name: f"codes.{name}" for name, code in vars(codes).items() if isinstance(code, Code)}
    assert {code for code in reported if code not in text and constants[code] not in text} == set()

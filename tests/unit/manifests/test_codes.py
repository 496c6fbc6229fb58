"""Every finding code has one page, and every page a code that something reports."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from reconciler.manifests import codes
from reconciler.model.findings import Code, Severity, help_page

ROOT = Path(__file__).parents[3]
PAGES = ROOT / "docs" / "findings"
WRITTEN = re.compile(r'\bCode\("([a-z0-9-]+)", Severity\.([A-Z]+)\)')


def codes_in_the_source() -> list[Code]:
    """Those of manifests, and those that other packages write out."""
    texts = [path.read_text(encoding="utf-8") for path in sorted((ROOT / "reconciler").rglob("*.py"))]
    written = [Code(name, Severity[severity]) for text in texts for name, severity in WRITTEN.findall(text)]
    return [*codes.ALL, *written]


ALL: dict[str, Code] = {code.name: code for code in codes_in_the_source()}


def test_a_code_has_one_severity_wherever_it_is_reported() -> None:
    for code in codes_in_the_source():
        assert ALL[code.name].severity is code.severity, code


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
        for path in sorted((ROOT / "reconciler").rglob("*.py"))
        if path.name != "codes.py"
    ]
    text = "\n".join(sources)
    names = {name for name, value in vars(codes).items() if isinstance(value, Code)}
    assert {name for name in names if f"codes.{name}" not in text} == set()

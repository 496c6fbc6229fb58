"""The pages about manifests say what the code does: examples that are valid, fields that exist, links that lead somewhere."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from reconciler.manifests.annotations import _KNOWN
from reconciler.manifests.documents.load import schema_of
from reconciler.manifests.kinds import KINDS
from reconciler.manifests.repository.declared import read
from reconciler.model import codes
from reconciler.model.declared import Declared
from reconciler.model.findings import Severity
from reconciler.model.marks import ANNOTATION_PREFIX

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = DOCS / "manifests"
INDEX = DOCS / "README.md"
FINDINGS = DOCS / "findings"
CODES = {code.name for code in codes.ALL}
PAGE_OF = {kind.name: re.sub(r"(?<=[a-z])(?=[A-Z])", "-", kind.name).lower() for kind in KINDS} | dict.fromkeys(
    ("Deployment", "StatefulSet", "ReplicaSet", "ReplicationController", "Job", "CronJob"), "workloads"
)

BLOCK = re.compile(r"^```yaml\n(.*?)^```", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
FIELD_TABLE = re.compile(r"^\| field \| type \| default \| meaning \|\n\|[-|]+\|\n((?:\|.*\n)+)", re.MULTILINE)

Fields = Mapping[str, tuple[Mapping[str, Any], bool]]
"""Dotted path → its schema, and whether its parent requires it."""


def text_of(name: str) -> str:
    return (PAGES / f"{name}.md").read_text(encoding="utf-8")


def examples(text: str) -> list[str]:
    """The YAML blocks that are whole documents."""
    return [block for block in BLOCK.findall(text) if "apiVersion:" in block and "kind:" in block]


def declared(text: str) -> Declared:
    return read({f"example-{number}.yaml": block.encode() for number, block in enumerate(examples(text))})


def complaints(text: str) -> list[str]:
    return [f"{item.code}: {item.message}" for item in declared(text).findings if item.severity is not Severity.INFO]


def rows(text: str) -> dict[str, str]:
    """Field → what the default column says."""
    cells = [line.strip("| ").split(" | ") for table in FIELD_TABLE.findall(text) for line in table.splitlines()]
    return {row[0].strip("`"): row[2] for row in cells if row[0].startswith("`")}


def fields(schema: Mapping[str, Any], path: str = "", *, required: bool = False) -> Iterator[tuple[str, Any, bool]]:
    """Every node of a schema but the status; lists are `name[]`."""
    if path:
        yield path, schema, required
    for name, inner in schema.get("properties", {}).items():
        if path or name != "status":
            below = f"{path}.{name}" if path else name
            yield from fields(inner, below, required=name in schema.get("required", ()))
    if "items" in schema:
        yield from fields(schema["items"], f"{path}[]")


def fields_of(schema_name: str, above: str = "") -> Fields:
    return {path: (schema, required) for path, schema, required in fields(schema_of(schema_name), above)}


def unknown_links(page: Path) -> list[str]:
    """Relative links that lead nowhere. Pages of findings count as there when their code exists."""
    text = page.read_text(encoding="utf-8")
    found = []
    for link in LINK.findall(text):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, heading = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        if target.parent == FINDINGS and target.stem in CODES | {"README"}:
            continue
        if not target.exists() or (heading and heading not in headings(target)):
            found.append(link)
    return found


def headings(page: Path) -> set[str]:
    """As the anchors that Git forges make of them."""
    titles = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


NAMES = sorted(page.stem for page in PAGES.glob("*.md"))
LINKING = sorted((*DOCS.rglob("*.md"), ROOT / "README.md"))
WITH_SCHEMA = sorted((kind.name, kind.schema) for kind in KINDS if "/" not in kind.schema)
"""Kinds with a schema of their own. Those of the shared file workloads.yaml are Kubernetes', and headroom reads few of their fields."""


def test_every_kind_has_a_page_and_no_page_is_of_something_else() -> None:
    assert set(NAMES) == {*PAGE_OF.values(), "annotations"}


@pytest.mark.parametrize("name", NAMES)
def test_the_examples_of_a_page_have_no_errors_or_warnings(name: str) -> None:
    assert complaints(text_of(name)) == []


def test_an_example_with_a_mistake_is_noticed() -> None:
    spoilt = text_of("capacity-buffer").replace("percentage: 20", "percent: 20")
    assert [line.partition(":")[0] for line in complaints(spoilt)] == ["unknown-field"]


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.applied], ids=lambda kind: kind.name)
def test_a_page_has_an_example_of_its_kind(kind: Any) -> None:
    assert kind.name in {item.ref.kind for item in declared(text_of(PAGE_OF[kind.name])).manifests}


@pytest.mark.parametrize("name", ["workloads", "priority-class"])
def test_what_is_read_as_context_is_not_applied(name: str) -> None:
    read_documents = declared(text_of(name))
    assert read_documents.workloads or read_documents.priority_classes
    assert read_documents.manifests == ()


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_page_names_the_versions_that_are_accepted(kind: Any) -> None:
    text = text_of(PAGE_OF[kind.name])
    assert [version for version in kind.versions if f"`{kind.api_version(version)}`" not in text] == []


@pytest.mark.parametrize(("kind", "schema"), WITH_SCHEMA)
def test_the_fields_of_a_page_are_those_of_the_schema(kind: str, schema: str) -> None:
    known = fields_of(schema)
    listed = rows(text_of(PAGE_OF[kind]))
    assert sorted(listed.keys() - known.keys()) == []
    # A row for a part as a whole stands for what is below it, unless rows for that are there too.
    wholes = {path for path in listed if not any(other.startswith((f"{path}.", f"{path}[")) for other in listed)}
    leaves = {path for path in known if not any(other.startswith((f"{path}.", f"{path}[")) for other in known)}
    missing = {
        path for path in leaves if not any(path == row or path.startswith((f"{row}.", f"{row}[")) for row in wholes)
    }
    assert sorted(missing) == []


@pytest.mark.parametrize(("kind", "schema"), WITH_SCHEMA)
def test_the_defaults_of_a_page_are_those_of_the_schema(kind: str, schema: str) -> None:
    known = fields_of(schema)
    for path, told in rows(text_of(PAGE_OF[kind])).items():
        node, required = known[path]
        assert (told == "required") == required, path
        if "default" in node and not required:
            assert told == f"`{node['default']}`", path


def test_the_fields_of_a_pod_template_are_those_of_the_schema() -> None:
    listed = rows(text_of("pod-template"))
    assert len(listed) > 10
    assert sorted(listed.keys() - fields_of("pod_template", "template").keys()) == []


def test_every_annotation_that_the_code_names_is_on_its_page() -> None:
    text = text_of("annotations")
    sources = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "reconciler").rglob("*.py"))
    named = set(re.findall(r"\"(headroom\.dev/[A-Za-z-]+)\"", sources))
    named |= {ANNOTATION_PREFIX + name for name in _KNOWN}
    assert len(named) > 10
    assert sorted(name for name in named if f"`{name}" not in text) == []


def test_annotations_on_the_page_are_known_to_the_code() -> None:
    """Those for people, that is: the first table."""
    table = text_of("annotations").partition("## Written by people")[2].partition("## Written by headroom")[0]
    told = set(re.findall(r"^\| `headroom\.dev/([A-Za-z-]+)`", table, re.MULTILINE))
    assert told == _KNOWN.keys() - {"also-declared-by", "applied-hash", "inventory", "source"}


@pytest.mark.parametrize("page", LINKING, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    assert unknown_links(page) == []


def test_a_link_that_leads_nowhere_is_noticed(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        f"# A page\n[a](#a-page) [b](#b-page) [c](gone.md) [d](https://example.com) [e]({FINDINGS}/no-such.md)"
    )
    assert unknown_links(page) == ["#b-page", "gone.md", f"{FINDINGS}/no-such.md"]


def test_the_index_lists_every_page() -> None:
    """The findings have an index of their own."""
    listed = {(DOCS / link.partition("#")[0]).resolve() for link in LINK.findall(INDEX.read_text(encoding="utf-8"))}
    pages = {page for page in DOCS.rglob("*.md") if page != INDEX and page.parent != FINDINGS}
    assert sorted(str(page.relative_to(DOCS)) for page in pages - listed) == []

"""The house rules hold, and the checks that hold them can fail: each is shown a planted violation."""

from __future__ import annotations

import ast
import re
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from re import _constants as kinds  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

import pytest

from reconciler.source.signatures import _ARMORED_KEYS
from tests.architecture.source_tree import ROOT, copy_of_the_product, modules, run

MOST_LINES = 400
NAMELESS = {"util", "utils", "helper", "helpers", "common", "misc", "manager"}


def too_long(folder: Path) -> list[str]:
    files = [path for part in ("reconciler", "tests") for path in (folder / part).rglob("*.py")]
    return [str(path.relative_to(folder)) for path in files if len(path.read_text().splitlines()) > MOST_LINES]


def without_a_purpose(folder: Path) -> list[str]:
    """Modules of the product that do not open with what they do."""
    return [
        str(path.relative_to(folder))
        for path in (folder / "reconciler").rglob("*.py")
        if not re.match(r'"""\S', path.read_text())
    ]


def nameless(folder: Path) -> list[str]:
    return [str(path.relative_to(folder)) for path in (folder / "reconciler").rglob("*.py") if path.stem in NAMELESS]


def unpacked_on_the_spot(tree: ast.Module) -> list[int]:
    """Lines of calls with `*(a, b)` among their arguments, which only keeps the formatter from one argument a line. Lists of names may."""
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    tuples = (item.value for call in calls for item in call.args if isinstance(item, ast.Starred))
    return [
        item.lineno
        for item in tuples
        if isinstance(item, ast.Tuple) and not all(isinstance(part, ast.Constant) for part in item.elts)
    ]


@pytest.fixture
def planted(tmp_path: Path) -> Path:
    return copy_of_the_product(tmp_path)


def test_no_file_is_longer_than_400_lines() -> None:
    assert too_long(ROOT) == []


def test_a_file_of_401_lines_is_noticed(planted: Path) -> None:
    (planted / "reconciler" / "endless.py").write_text("x = 1\n" * 401)
    assert "reconciler/endless.py" in too_long(planted)


def test_every_module_says_what_it_does() -> None:
    assert without_a_purpose(ROOT) == []


def test_no_module_has_a_name_that_says_nothing() -> None:
    assert nameless(ROOT) == []


def test_no_call_unpacks_a_tuple_that_stands_in_it() -> None:
    assert {name: found for name, tree in modules() if (found := unpacked_on_the_spot(tree))} == {}
    assert unpacked_on_the_spot(ast.parse("f(*(a, b), c=1)\nf(*('a', 'b'))\nf(*rest)\n")) == [1]


def test_mypy_is_strict(planted: Path) -> None:
    (planted / "reconciler" / "model" / "loose.py").write_text("def loose(value):\n    return value\n")
    done = run("mypy", "--config-file", "pyproject.toml", "reconciler/model/loose.py", folder=planted)
    assert "no-untyped-def" in done.stdout


def test_ruff_selects_nearly_everything(planted: Path) -> None:
    (planted / "reconciler" / "model" / "loose.py").write_text('"""Loose."""\n\nprint(eval("1"))\n')
    done = run("ruff", "check", "reconciler/model/loose.py", folder=planted)
    assert "S307" in done.stdout
    assert "T201" in done.stdout


@pytest.mark.parametrize(
    ("module", "wanted"),
    [
        ("model/loose.py", {"D101", "D102", "D103"}),
        ("plan/plan.py", {"D101", "D103"}),
        ("plan/bins.py", set()),
    ],
)
def test_glossary_and_entries_say_what_everything_public_is(planted: Path, module: str, wanted: set[str]) -> None:
    (planted / "reconciler" / module).write_text(
        '"""Loose."""\n\n\nclass Loose:\n    def method(self) -> None: ...\n\n\ndef loose() -> None: ...\n'
    )
    done = run("ruff", "check", "--output-format", "concise", f"reconciler/{module}", folder=planted)
    assert set(re.findall(r"\bD\d+", done.stdout)) == wanted


def test_each_entry_that_ruff_is_told_of_is_there() -> None:
    patterns = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["ruff"]["lint"]["per-file-ignores"]
    named = [re.fullmatch(r"!reconciler/\{(.*)\}\.py", pattern) for pattern in patterns if pattern.startswith("!")]
    entries = {entry for pattern in named if pattern for entry in pattern[1].split(",")}
    assert len(entries) > 10
    assert {entry for entry in entries if not list((ROOT / "reconciler").glob(f"{entry}.py"))} == set()


# A public class has a name of its own: whoever reads it needs no import to know which one is meant. And no module gives a name twice.

A_PORT_AND_WHAT_FILLS_IT = {"PassResult"}


def shared(folder: Path) -> dict[str, list[str]]:
    """The names that classes of several modules have, each with these modules."""
    found: dict[str, list[str]] = defaultdict(list)
    for path, tree in modules(folder):
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(path)
    return {name: paths for name, paths in found.items() if len(paths) > 1}


def test_no_two_modules_have_a_class_of_the_same_name() -> None:
    assert set(shared(ROOT)) == A_PORT_AND_WHAT_FILLS_IT


def test_a_name_that_is_taken_is_noticed(tmp_path: Path) -> None:
    for module, name in (("plan", "Outcome"), ("forge", "Outcome"), ("model", "_Outcome"), ("render", "Other")):
        path = tmp_path / "reconciler" / f"{module}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"class {name}:\n    pass\n")
    assert {name: sorted(paths) for name, paths in shared(tmp_path).items()} == {"Outcome": ["forge.py", "plan.py"]}


def given_twice(folder: Path) -> set[tuple[str, str]]:
    """Modules with the names that they give at their top more than once: the later one would count everywhere."""
    found = set()
    for path, tree in modules(folder):
        targets = [each for node in tree.body if isinstance(node, ast.Assign) for each in node.targets]
        targets += [node.target for node in tree.body if isinstance(node, ast.AnnAssign)]
        counts = Counter(node.id for each in targets for node in ast.walk(each) if isinstance(node, ast.Name))
        counts.update(node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef))
        found |= {(path, name) for name, count in counts.items() if count > 1}
    return found


def test_no_module_gives_a_name_twice() -> None:
    assert given_twice(ROOT) == set()


def test_a_name_that_is_given_twice_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "reconciler").mkdir()
    (tmp_path / "reconciler" / "render.py").write_text("SECONDS = 20.0\nMOST: int = 1\nSECONDS = 2.0\n")
    assert given_twice(tmp_path) == {("render.py", "SECONDS")}


# Unit tests stand in the same tree as what they test.


def without_a_counterpart(folder: Path) -> set[str]:
    """Folders under tests/unit that are no package or module of the product, and files beside them that no module goes by."""
    unit, product = folder / "tests" / "unit", folder / "reconciler"
    folders = {path.parent.relative_to(unit) for path in unit.rglob("*.py")} - {Path()}
    strange = {
        str(each) for each in folders if not (product / each).is_dir() and not (product / f"{each}.py").is_file()
    }
    modules = [path.stem for path in product.glob("*.py")]
    files = {path.name for path in unit.glob("*.py")}
    return strange | {file for file in files if not file.startswith(tuple(f"test_{module}" for module in modules))}


def test_unit_tests_stand_where_their_subject_stands() -> None:
    assert without_a_counterpart(ROOT) == set()


def test_a_folder_or_file_of_nothing_is_noticed(tmp_path: Path) -> None:
    for path in ("reconciler/plan/hold.py", "reconciler/daemon.py", "tests/unit/plan/hold/test_marks.py"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).touch()
    for path in ("plan/test_hold.py", "test_daemon_stops.py", "plan/lost/test_x.py", "test_passes.py", "worlds.py"):
        (tmp_path / "tests/unit" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "tests/unit" / path).touch()
    assert without_a_counterpart(tmp_path) == {"plan/lost", "test_passes.py", "worlds.py"}


# The core reads no clock, opens no file and draws no lots: what no import shows.

CORE = re.findall(
    r"`(\w+)`", re.findall(r"The core \(([^)]*)\) is pure", (ROOT / "docs/architecture.md").read_text())[0]
)
IMPURE = frozenset({"open", "input", "print", "exec", "eval", "compile", "__import__"})
CLOCKS = frozenset({"datetime.now", "datetime.today", "datetime.utcnow", "date.today", "np.random", "numpy.random"})


def impure(folder: Path) -> list[str]:
    """Where in the core, and what."""
    return [
        f"{path}:{node.lineno}: {name}"
        for path, tree in modules(folder)
        if path.partition("/")[0] in CORE
        for node in ast.walk(tree)
        if isinstance(node, ast.Name | ast.Attribute)
        and ((name := ast.unparse(node)) in IMPURE or any(name.endswith(clock) for clock in CLOCKS))
    ]


def test_the_core_is_pure() -> None:
    assert impure(ROOT) == []


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("datetime.now(UTC)", "datetime.now"),
        ("datetime.datetime.now()", "datetime.datetime.now"),
        ("date.today()", "date.today"),
        ("open('x').read()", "open"),
        ("np.random.default_rng()", "np.random"),
        ("list(map(eval, texts))", "eval"),
    ],
)
def test_what_is_impure_is_noticed_in_the_core_alone(tmp_path: Path, line: str, what: str) -> None:
    for package in (*CORE, "cli"):
        (tmp_path / "reconciler" / package).mkdir(parents=True)
        (tmp_path / "reconciler" / package / "planted.py").write_text(f"def late():\n    return {line}\n")
    assert sorted(impure(tmp_path)) == [f"{package}/planted.py:2: {what}" for package in sorted(CORE)]
    assert {"model", "plan", "spending"} <= set(CORE)


# The table of a pass's stages in docs/architecture.md.


def test_the_table_of_stages_has_every_stage_in_its_file() -> None:
    page = (ROOT / "docs/architecture.md").read_text().partition("## One pass")[2]
    rows = re.findall(r"^\| ([a-z ,]+) \| `(\w+\.py)` \|", page.partition("\n## ")[0], re.MULTILINE)
    stages = {
        (re.sub(r"(?<!^)(?=[A-Z])", " ", node.name).lower(), path.removeprefix("stages/"))
        for path, tree in modules(ROOT)
        for node in tree.body
        if path.startswith("stages/") and isinstance(node, ast.ClassDef) and "phase: ClassVar" in ast.unparse(node)
    }
    assert {(name, file) for names, file in rows for name in names.split(", or ")} == stages


# No regular expression takes time that grows with a power of its text: none has a repeat within a repeat.
#
# Such a pattern tries every way to share a text between the two. A few letters that a user wrote can then stop the daemon for hours.

MANY = 20
"""A repeat of at most so many is none."""
ONE_WAY_ONLY: dict[str | bytes, str] = {
    "(?:[0-9]+[smh])+": "each turn ends with a letter, which no other part of a turn takes",
    _ARMORED_KEYS.pattern: "a turn is a line; its first part ends at the first colon, the second at the end of the line",
}


def repeats(parsed: Any, *, within: bool = False) -> Iterator[bool]:
    """For each long repeat, whether it stands within another one that can give back what it took."""
    for kind, value in parsed:
        match kind:
            case kinds.MAX_REPEAT | kinds.MIN_REPEAT:
                is_long = value[1] > MANY
                if is_long:
                    yield within
                yield from repeats(value[2], within=within or is_long)
            case kinds.SUBPATTERN:
                yield from repeats(value[3], within=within)
            case kinds.BRANCH:
                for branch in value[1]:
                    yield from repeats(branch, within=within)
            case kinds.ASSERT | kinds.ASSERT_NOT:
                yield from repeats(value[1], within=within)


def is_nested(pattern: str | bytes) -> bool:
    return any(repeats(parser.parse(pattern)))


def written() -> Iterator[str | bytes]:
    """What is handed to a function of `re` as it stands, and what modules keep compiled, however it was put together."""
    for path, tree in modules():
        for node in ast.walk(tree):
            match node:
                case ast.Call(
                    func=ast.Attribute(value=ast.Name(id="re")), args=[ast.Constant(value=str() | bytes() as text), *_]
                ):
                    yield text
        module = import_module(f"reconciler.{path.removesuffix('.py').removesuffix('/__init__').replace('/', '.')}")
        yield from (kept.pattern for kept in vars(module).values() if isinstance(kept, re.Pattern))


def test_no_pattern_repeats_what_repeats() -> None:
    found = set(written())
    assert len(found) > 50
    assert {text for text in found if is_nested(text)} == set(ONE_WAY_ONLY)


@pytest.mark.parametrize(
    "pattern", ["(a+)+", "(?:a*b?)*c", "(x|(?:y{1,90}z?)*)", "(?=(a+)+)", b"(?:[^\\n]*:[^\\n]*\\n)*"]
)
def test_one_that_does_is_noticed(pattern: str | bytes) -> None:
    assert is_nested(pattern)


@pytest.mark.parametrize("pattern", ["a+b+", "(?:ab?)+", "(?:a{1,3})*", "(?>a+)+"])
def test_one_that_does_not_is_left_alone(pattern: str) -> None:
    assert not is_nested(pattern)

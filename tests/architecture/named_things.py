"""Names in backticks, in comments and docstrings of the product, that name nothing which exists.

A name resolves when it is an identifier, a whole string (a field, an annotation, a key) or a file of the project, a word of
its YAML, JSON and templates, a module or builtin of Python, or one of the names of other projects that are listed here.
`python -m tests.architecture.named_things` lists them.
"""

from __future__ import annotations

import ast
import builtins
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.architecture.source_tree import ROOT

# What a comment refers to and no code of ours spells.
ELSEWHERE = frozenset(
    {
        # Kubernetes and its scheduler
        "AlwaysAllow",
        "Evaluator",
        "MilliValue",
        "Preempt",
        "Quantity",
        "RunFilterPluginsWithNominatedPods",
        "unhealthyPodEvictionPolicy",
        # Karpenter
        "BuildDisruptionBudgetMapping",
        "GetAllowedDisruptionsByReason",
        "IsActive",
        "IsCurrentlyReschedulable",
        "IsDoNotDisruptActive",
        "IsPreempting",
        # a transport of git, families of EC2, letters of tzdata releases, what Prometheus puts behind a counter's name,
        # a file made from a kind's plural
        "ext",
        "c6gn",
        "za",
        "x2gd",
        "_total",
        "pods.json",
    }
)

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ONE_NAME = re.compile(r"[A-Za-z_][\w.]*(\(\))?")
# Words that only a program would spell so: snake_case, CamelCase, camelCase.
_OF_A_PROGRAM = re.compile(r"\w*[a-z0-9]_[a-z0-9]\w*|[A-Z][a-z0-9]+[A-Z]\w*|[a-z]+[A-Z]\w*")
_PLACEHOLDER = re.compile(r"\b[A-Z]+\b")  # `docs/findings/CODE.md`, `N/STEP`
_FILE = re.compile(r"[\w./-]+\.(py|md|json|toml|ya?ml|j2|cjs)")
_WHOLE_NAME = re.compile(r"[A-Za-z_][\w./-]*")
_DATA = {".json", ".yaml", ".yml", ".toml", ".j2", ".typed"}


def unresolved() -> list[str]:
    """Where in `reconciler/`, and what names nothing."""
    return [
        f"{path.relative_to(ROOT)}:{line}: `{quoted}`"
        for path in sorted((ROOT / "reconciler").rglob("*.py"))
        for line, quoted in unresolved_in(path.read_text())
    ]


def unresolved_in(source: str) -> list[tuple[int, str]]:
    """The lines of a module, and what names nothing in them."""
    return [(line, quoted) for line, quoted in in_backticks(source) if not _resolves(quoted)]


def _resolves(quoted: str) -> bool:
    known = names()
    if quoted in known or _PLACEHOLDER.search(quoted):
        return True
    if _FILE.fullmatch(quoted):
        return any(f"/{file}".endswith(f"/{quoted}") for file in files())
    wanted = _WORD if _ONE_NAME.fullmatch(quoted) else _OF_A_PROGRAM
    return all(word in known for word in wanted.findall(quoted))


def in_backticks(source: str) -> Iterator[tuple[int, str]]:
    """What comments and docstrings put in backticks, each with its line."""
    for line, text in prose(source):
        for found in re.finditer(r"`([^`]+)`", text):
            yield line + text[: found.start()].count("\n"), " ".join(found[1].split())


@cache
def prose(source: str) -> tuple[tuple[int, str], ...]:
    """The comments, each block as one text, and the docstrings of a module; each with its first line."""
    return tuple(_prose(source))


def _prose(source: str) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.lineno, node.value.value
    block: list[str] = []
    start = last = 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT:
            continue
        if block and token.start[0] != last + 1:
            yield start, "\n".join(block)
            block = []
        start = start if block else token.start[0]
        last = token.start[0]
        block.append(token.string.lstrip("# "))
    if block:
        yield start, "\n".join(block)


@cache
def names() -> frozenset[str]:
    """Every name that the project, Python or a listed other project has."""
    return ELSEWHERE | names_of_ours()


@cache
def names_of_ours() -> frozenset[str]:
    known = set(dir(builtins)) | set(sys.stdlib_module_names) | set(dir(str)) | set(dir(dict))
    for path in (each for part in ("reconciler", "tests") for each in (ROOT / part).rglob("*.py")):
        if path.parent != Path(__file__).parent:
            known.update(path.relative_to(ROOT).with_suffix("").parts)
            known.update(_names_of_code(ast.parse(path.read_text())))
    for part in ("reconciler", "config", "templates", "examples-repo"):
        for path in (ROOT / part).rglob("*"):
            if path.suffix in _DATA:
                known.update(_WORD.findall(path.read_text()))
    return frozenset(known)


@cache
def files() -> frozenset[str]:
    parts = ("reconciler", "tests", "docs", "config", "templates", "examples-repo")
    return frozenset(path.relative_to(ROOT).as_posix() for part in parts for path in (ROOT / part).rglob("*"))


def _names_of_code(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name) | ast.keyword(arg=str(name)):
                yield name
            case ast.alias(name=name):
                yield from name.split(".")
            case ast.Constant(value=str(text)) if _WHOLE_NAME.fullmatch(text):
                yield from _WORD.findall(text)
            case _:
                pass


if __name__ == "__main__":
    print("\n".join(unresolved()))

"""Takes each sentence of the placement checker out once and runs the checker's tests: each time one of them must fail.

`python -m tests.checker_mutations` prints every statement that nobody would miss, and fails if there is one. It takes some minutes.
"""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
CHECKER = Path("reconciler/placement/checker")
TESTS = (
    "tests/unit/placement/checker",
    "tests/unit/placement/nodes/test_young_machines.py",
    "tests/unit/placement/constraints/test_min_values.py",
    "tests/properties/test_pod_orders.py",
)


def statements(source: str) -> Iterator[ast.Expr]:
    """Each that yields, or appends to what is found."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr):
            appends = isinstance(node.value, ast.Call) and ast.unparse(node.value.func).endswith("broken.append")
            if appends or isinstance(node.value, ast.Yield | ast.YieldFrom):
                yield node


def without(source: str, statement: ast.Expr) -> str:
    """A generator stays one."""
    lines = source.splitlines(keepends=True)
    assert statement.end_lineno is not None
    nothing = "pass" if isinstance(statement.value, ast.Call) else "yield from ()"
    lines[statement.lineno - 1 : statement.end_lineno] = [f"{' ' * statement.col_offset}{nothing}\n"]
    return "".join(lines)


def is_missed(tree: Path) -> bool:
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *TESTS]
    return subprocess.run(command, cwd=tree, capture_output=True, check=False).returncode != 0


def main() -> int:
    survivors = 0
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder)
        for name in ("reconciler", "tests", "pyproject.toml"):
            (shutil.copytree if (ROOT / name).is_dir() else shutil.copy)(ROOT / name, tree / name)
        if is_missed(tree):
            print("the tests fail as it is")
            return 1
        for path in sorted((tree / CHECKER).glob("*.py")):
            source = path.read_text()
            for statement in statements(source):
                path.write_text(without(source, statement))
                if not is_missed(tree):
                    survivors += 1
                    print(f"{path.name}:{statement.lineno}: {ast.unparse(statement)}", flush=True)
            path.write_text(source)
    print(f"{survivors} statements that no test would miss")
    return survivors > 0


if __name__ == "__main__":
    sys.exit(main())

"""What is worth knowing before a commit, in well under a minute: `make quick`.

Lint and format of the files that changed, types and contracts, the rules of tests/architecture, and the unit tests of the
folders touched. Changed is what differs from the merge base with `main` (or with the branch given), and what is new. Tests of whoever
imports what changed are left to `make test`; types are checked everywhere.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parents[1]
_BIN = Path(sys.executable).parent
_PYTEST = ("pytest", "-q", "-n", "2", "--dist", "loadgroup", "-m", "not e2e and not soak and not perf")
_NO_TESTS = 5
_READERS = {
    "templates": ("tests/unit/render", "tests/unit/report"),
    "config": ("tests/config", "tests/unit/manifests"),
    "docs": ("tests/docs",),
    "examples-repo": ("tests/examples",),
    "pyproject.toml": ("tests/architecture"),
}
"""Which tests read what is not code."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("branch", nargs="?", default="main", help="what the change is to be merged into (%(default)s)")
    changed = changed_files(parser.parse_args().branch)
    if not changed:
        print("Nothing has changed.")
    every = list(commands(changed))
    codes = [_run(command) for command in every if command[0] not in {"mypy", "pytest"}]
    # mypy uses one core alone, and no test waits for it.
    types = [(command, _started(command)) for command in every if command[0] == "mypy"]
    codes += [_run(command) for command in every if command[0] == "pytest"]
    for command, process in types:
        said = process.communicate()[0]
        print("+", *command)
        print(said, end="", flush=True)
        codes.append(process.returncode)
    return max(codes, default=0)


def changed_files(branch: str) -> list[str]:
    """Paths in the checkout that differ from where it left the branch, or are new; those that are gone are left out."""
    base = _git("merge-base", "HEAD", branch) or _git("merge-base", "HEAD", f"origin/{branch}") or ["HEAD"]
    differing = _git("diff", "--name-only", "--diff-filter=d", base[0])
    return sorted({*differing, *_git("ls-files", "--others", "--exclude-standard")})


def commands(changed: Iterable[str], root: Path = ROOT) -> Iterator[list[str]]:
    """What to run for these files, the quickest first."""
    files = list(changed)
    code = [path for path in files if path.endswith(".py")]
    if code:
        yield ["ruff", "check", *code]
        yield ["ruff", "format", "--check", "--quiet", *code]
        yield ["lint-imports"]
        yield ["mypy"]  # all of it: its cache knows what depends on the files that changed
    tests = selection(files, root)
    if tests:
        yield [*_PYTEST, *tests]


def selection(changed: Iterable[str], root: Path) -> list[str]:
    """Folders and files of tests that these files are tested by, none inside another."""
    found = {
        test for path in changed for test in _selected_for(PurePosixPath(path), root) if test and (root / test).exists()
    }
    return sorted(test for test in found if not any(str(above) in found for above in PurePosixPath(test).parents))


def _selected_for(path: PurePosixPath, root: Path) -> Iterator[str]:
    match path.parts:
        case ("reconciler", _):
            yield "tests/architecture"
            yield from (
                each.relative_to(root).as_posix() for each in (root / "tests/unit").glob(f"test_{path.stem}*.py")
            )
        case ("reconciler", package, *rest):
            yield "tests/architecture"
            folders = [PurePosixPath("tests/unit", package, *rest[:depth]) for depth in range(len(rest))]
            yield next((str(folder) for folder in reversed(folders) if (root / folder).is_dir()), "")
        case ("tests", _, *_) if path.suffix == ".py" and path.name.startswith("test_"):
            yield str(path)
        case ("tests", "unit" | "architecture" | "development" as kind, *folders):
            yield "/".join(("tests", kind, *folders[:-1]))
        case ("tests", ("quick.py" | "side_by_side.py")):
            yield "tests/development"
        case (top, *_):
            yield from _READERS.get(top, ())


def _git(*arguments: str) -> list[str]:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.splitlines() if done.returncode == 0 else []


def _started(command: list[str]) -> subprocess.Popen[str]:
    program, *arguments = command
    return subprocess.Popen(
        [_BIN / program, *arguments], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def _run(command: list[str]) -> int:
    program, *arguments = command
    print("+", program, *arguments, flush=True)
    code = subprocess.run([_BIN / program, *arguments], cwd=ROOT, check=False).returncode
    return 0 if program == "pytest" and code == _NO_TESTS else code


if __name__ == "__main__":
    sys.exit(main())

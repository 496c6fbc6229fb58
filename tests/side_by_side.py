"""Which tests stay in one process when several share them (`-n 3 --dist loadgroup`); a pytest plugin.

A fixture that is made once for a file or a session is made in every process that gets one test of it, and so is what a function
with a cache answers. So a file with such a fixture or function stays together, and so do all files that use the bare API server,
the browser, or the control plane with Kueue, or that read all our files. Tests on the whole control plane find it empty wherever
they run: each process starts one of its own, and they go wherever there is time, as all other tests do.

pytest-xdist's mark for groups is of no use: version 3.8 puts them where pytest 9.2 no longer looks. Where tests are handed
out, only their ids are known, so groups are told from the files' text.
"""

from __future__ import annotations

import re
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

_ONCE = re.compile(r'scope="(module|session)"|^@(lru_)?cache\b', re.MULTILINE)
_SHARED = {
    "api-server": re.compile(r"\b(empty_)?api_server\b"),
    "browser": re.compile(r"\bfrom tests\.browser\b"),
    "kueue": re.compile(r"\bcontrol_plane_with_kueue\b"),
    "architecture": re.compile(r"\bfrom tests\.architecture\b"),
}


def pytest_collection(session: pytest.Session) -> None:
    """In a fresh clone all processes would rewrite the asserts of the same file at the same time. So each begins with files of its
    own, and finds the others' done."""
    process: dict[str, Any] | None = getattr(session.config, "workerinput", None)
    if process is None:
        return
    root, number = session.config.rootpath, int(process["workerid"].removeprefix("gw"))
    asked = [root / each.partition("::")[0] for each in session.config.args]
    files = {file for path in asked for file in (path.rglob("test_*.py") if path.is_dir() else [path])}
    for path in sorted(files)[number :: process["workercount"]]:
        with suppress(Exception, pytest.skip.Exception):  # told where the file is collected
            import_module(".".join(path.relative_to(root).with_suffix("").parts))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    if config.getoption("dist") != "loadgroup":
        return None
    from xdist.scheduler import LoadScopeScheduling

    class Scheduling(LoadScopeScheduling):  # type: ignore[misc] # xdist ships no types
        def _split_scope(self, nodeid: str) -> str:
            return group_of(config.rootpath, nodeid)

        def mark_test_complete(self, node: Any, item_index: int, duration: float = 0) -> None:
            """Groups that are done are forgotten: all that a process has ever had are counted after each test."""
            super().mark_test_complete(node, item_index, duration)
            group = self._split_scope(self.registered_collections[node][item_index])
            if all(self.assigned_work[node][group].values()):
                del self.assigned_work[node][group]

    return Scheduling(config, log)


def group_of(root: Path, nodeid: str) -> str:
    """What a test's process must run all of: a name shared by several files, the test's file, or the test alone."""
    file = nodeid.partition("::")[0]
    return _group_of_file(root / file) or nodeid


@cache
def _group_of_file(path: Path) -> str:
    text = path.read_text()
    for group, fixture in _SHARED.items():
        if fixture.search(text):
            return group
    return str(path) if _ONCE.search(text) else ""

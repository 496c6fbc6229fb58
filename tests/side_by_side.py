"""Which tests stay in one process when several share them (`-n 2 --dist loadgroup`); a pytest plugin.

A fixture that is made once for a file or a session is made in every process that gets one test of it. So a file with such a
fixture stays together, and so do all files that use the bare API server, or the control plane with Kueue, or that read all our files. Tests on the
whole control plane find it empty wherever they run: each process starts one of its own, and they go wherever there is time, as all other tests do.

pytest-xdist's mark for groups is of no use: version 3.8 puts them where pytest 9.2 no longer looks. Where tests are handed
out, only their ids are known, so groups are told from the files' text.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

_ONCE = re.compile(r'scope="(module|session)"')
_SHARED = {
    "api-server": re.compile(r"\b(empty_)?api_server\b"),
    "kueue": re.compile(r"\bcontrol_plane_with_kueue\b"),
    "architecture": re.compile(r"\bfrom tests\.architecture\b"),
}


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    if config.getoption("dist") != "loadgroup":
        return None
    from xdist.scheduler import LoadScopeScheduling  # noqa: PLC0415 - tests run without it too

    scheduler = LoadScopeScheduling(config, log)
    scheduler._split_scope = lambda nodeid: group_of(config.rootpath, nodeid)
    return scheduler


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

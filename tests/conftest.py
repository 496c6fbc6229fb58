"""Fixtures that every test folder may use."""

import gc
import os

from reconciler.__main__ import collect_rarely

pytest_plugins = ["pytester", "tests.controlplane.fixtures", "tests.side_by_side"]

# The processes that run tests side by side are given a width for their own output; what headroom prints must not wrap at it.
os.environ.pop("COLUMNS", None)

# As in the command itself; and what the tests consist of is never garbage.
collect_rarely()


def pytest_collection_finish() -> None:
    gc.freeze()

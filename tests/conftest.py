"""Fixtures that every test folder may use."""

import gc
import os

from hypothesis import settings

from reconciler.__main__ import collect_rarely

pytest_plugins = ["pytester", "tests.controlplane.fixtures", "tests.side_by_side"]

# The processes that run tests side by side are given a width for their own output; what headroom prints must not wrap at it.
os.environ.pop("COLUMNS", None)

# No test fails for how long it takes: machines that run tests are busy.
settings.register_profile(
    "headroom", parent=settings.default, deadline=None
)  # in CI the parent is Hypothesis' own for it
settings.load_profile("headroom")

# As in the command itself; and what the tests consist of is never garbage.
collect_rarely()


def pytest_collection_finish() -> None:
    gc.freeze()

"""Fixtures that every test folder may use."""

import os

pytest_plugins = ["pytester", "tests.controlplane.fixtures", "tests.side_by_side"]

# The processes that run tests side by side are given a width for their own output; what headroom prints must not wrap at it.
os.environ.pop("COLUMNS", None)

"""Fixtures that every test folder may use."""

import os

pytest_plugins = ["tests.controlplane.fixtures"]

# The processes that run tests side by side are given a width for their own output; what headroom prints must not wrap at it.
os.environ.pop("COLUMNS", None)

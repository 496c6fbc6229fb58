"""Exit codes, in one place.

plan and diff follow kubectl diff: 0 no change, 1 changes, 2 any error; diff 3 for a bound that is not kept. With `--detailed-exitcode` they
follow Terraform: 0 no change, 2 changes, 1 any error, a bound among them. All others: 0 done, 1 a failure, 2 wrong usage. For validate,
budgets and schedule an error in the manifests is a failure. `headroom --help` says so too.
"""

from __future__ import annotations

from collections.abc import Sequence

CHANGES, ERROR, GATE = 1, 2, 3
DETAILED_CHANGES, DETAILED_ERROR = 2, 1
FAILURE, USAGE = 1, 2
DIFFERENCE_COMMANDS = frozenset({"plan", "diff"})
DETAILED_FLAG = "--detailed-exitcode"


def exit_code_of_changes(*, changes: bool, detailed: bool) -> int:
    """The exit code of plan and diff when they succeed."""
    if not changes:
        return 0
    return DETAILED_CHANGES if detailed else CHANGES


def exit_code_of_gates(*, detailed: bool) -> int:
    """The exit code of diff when a bound is not kept."""
    return DETAILED_ERROR if detailed else GATE


def exit_code_of(words: Sequence[str], *, usage: bool) -> int:
    """The exit code of a failed command line."""
    command = next((word for word in words if not word.startswith("-")), "")
    if command in DIFFERENCE_COMMANDS:
        return DETAILED_ERROR if DETAILED_FLAG in words else ERROR
    return USAGE if usage else FAILURE

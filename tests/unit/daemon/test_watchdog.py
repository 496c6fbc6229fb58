"""A pass that makes no progress is told by health within two minutes, and a process that nothing else can end is ended."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from reconciler.daemon.watchdog import PATIENCE, Watchdog

PATIENT = 60.0
"""Seconds until a test that hangs fails."""


class Seconds:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def seconds() -> Seconds:
    return Seconds()


def test_a_pass_that_is_silent_is_told_within_two_minutes(seconds: Seconds) -> None:
    watchdog = Watchdog(seconds=seconds)
    watchdog.progress("placement")
    seconds.now += 60
    assert watchdog.complaint == ""
    seconds.now += 60
    assert watchdog.complaint == "a pass has made no progress for 120 s (phase: placement)"


def test_a_pass_that_goes_on_may_take_long(seconds: Seconds) -> None:
    watchdog = Watchdog(seconds=seconds)
    for _ in range(100):
        watchdog.progress("apply")
        seconds.now += PATIENCE
        assert watchdog.complaint == ""


def test_a_phase_that_was_given_time_has_it(seconds: Seconds) -> None:
    watchdog = Watchdog(more={"placement": 600}, seconds=seconds)
    watchdog.progress("placement")
    seconds.now += PATIENCE + 600
    assert watchdog.complaint == ""
    seconds.now += 1
    assert watchdog.complaint


def test_a_poll_that_does_not_end_is_told(seconds: Seconds) -> None:
    watchdog = Watchdog(more={"poll": 600}, seconds=seconds)
    watchdog.poll_begins()
    for _ in range(8):
        watchdog.progress("apply")
        seconds.now += PATIENCE - 1
    assert watchdog.complaint == "a poll of the repository has not ended for 712 s"
    watchdog.poll_ended()
    assert watchdog.complaint == ""


def test_between_passes_nothing_is_expected(seconds: Seconds) -> None:
    watchdog = Watchdog(seconds=seconds)
    watchdog.progress("apply")
    watchdog.rest()
    seconds.now += 3600
    assert watchdog.complaint == ""


FROZEN = """
    import sys, threading
    from reconciler.clocks import SystemClock
    from reconciler.daemon.daemon import Daemon
    from reconciler.daemon.watchdog import Watchdog

    def run_pass(trigger):
        print("pass", flush=True)
        if sys.argv[1] == "holds the interpreter":
            3 ** (10 ** 9)
        threading.Event().wait()

    watchdog = Watchdog(patience=0.5, ends_process=True, frozen=2)
    daemon = Daemon(run_pass=run_pass, poll_source=lambda: False, clock=SystemClock(), watchdog=watchdog)
    sys.exit(daemon.run())
"""


@pytest.mark.parametrize("how", ["holds the interpreter", "waits for ever"])
def test_a_pass_that_never_ends_ends_the_process_and_shows_where_it_was(how: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(FROZEN), how],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENT,
        env={**os.environ, "PYTHONPATH": str(Path.cwd())},
    )
    assert done.returncode == 1
    assert done.stdout == "pass\n"
    assert "in run_pass" in done.stderr

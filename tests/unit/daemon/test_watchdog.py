"""A pass or a poll that makes no progress is told by health within two minutes, and a process that nothing else can end is ended."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest

from reconciler.daemon.ending import GIT, PATIENCE, Watchdog
from reconciler.settings.settings import GitSettings, Settings
from reconciler.source.child import SILENCE
from reconciler.wiring.served_cluster import Watchdogs

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


def test_a_poll_that_is_silent_is_told_within_two_minutes_beside_passes_that_go_on(seconds: Seconds) -> None:
    watchdog = Watchdog(more={GIT: 20}, seconds=seconds)
    watchdog.poll_begins()
    for _ in range(4):
        watchdog.progress("apply")
        assert watchdog.complaint == ""
        seconds.now += 28
    assert watchdog.complaint == "a poll of the repository has made no progress for 112 s"
    watchdog.poll_ended()
    assert watchdog.complaint == ""


def test_a_poll_of_which_git_tells_may_take_long(seconds: Seconds) -> None:
    """As a large transfer does that git.timeout allows."""
    watchdog = Watchdog(seconds=seconds)
    watchdog.poll_begins()
    for _ in range(100):
        watchdog.git_progress()
        seconds.now += PATIENCE
        assert watchdog.complaint == ""
    seconds.now += 1
    assert watchdog.complaint == "a poll of the repository has made no progress for 91 s"


def test_a_pass_that_waits_for_git_goes_on_with_it_and_no_other_does(seconds: Seconds) -> None:
    watchdog = Watchdog(seconds=seconds)
    watchdog.progress(GIT)
    seconds.now += PATIENCE
    watchdog.git_progress()
    seconds.now += PATIENCE
    assert watchdog.complaint == ""
    watchdog.progress("placement")
    seconds.now += PATIENCE + 1
    watchdog.git_progress()
    assert watchdog.complaint == "a pass has made no progress for 91 s (phase: placement)"


@pytest.mark.parametrize("timeout", [timedelta(minutes=1), timedelta(hours=1)])
def test_the_daemon_tells_of_a_stuck_poll_within_two_minutes_whatever_git_may_take(
    timeout: timedelta, monkeypatch: pytest.MonkeyPatch, seconds: Seconds
) -> None:
    monkeypatch.setattr("reconciler.wiring.served_cluster.Watchdog", partial(Watchdog, seconds=seconds))
    watchdog = Watchdogs().another(Settings(git=GitSettings(timeout=timeout)))
    watchdog.poll_begins()
    seconds.now += SILENCE
    assert watchdog.complaint == "", "a silent Git is ended by then, which says more than an end of the process"
    seconds.now += 120 - SILENCE
    assert watchdog.complaint


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
    from reconciler.daemon.ending import Watchdog

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


def test_the_process_ends_for_one_stuck_pass_whatever_the_others_do(
    monkeypatch: pytest.MonkeyPatch, seconds: Seconds
) -> None:
    postponed: list[float] = []
    monkeypatch.setattr("faulthandler.dump_traceback_later", lambda after, **_: postponed.append(after))
    stuck = Watchdog(seconds=seconds)
    busy = Watchdog(seconds=seconds, ends_process=True, elsewhere=lambda: stuck.complaint)
    busy.feed()
    assert len(postponed) == 1
    stuck.progress("placement")
    seconds.now += PATIENCE + 1
    busy.progress("placement")
    busy.feed()
    assert len(postponed) == 1

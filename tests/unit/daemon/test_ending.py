"""How the process ends: by signals, and by the watchdog."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
from datetime import timedelta
from functools import partial
from pathlib import Path
from queue import Queue
from typing import Any

import pytest

from reconciler.daemon.ending import FROZEN as UNTIL_THE_END
from reconciler.daemon.ending import GIT, Watchdog
from reconciler.daemon.ending import PATIENCE as MOST_SILENCE
from reconciler.model.changes import Outcome
from reconciler.model.errors import Invalid, Stalled, Transient
from reconciler.ports import PassResult
from reconciler.settings.settings import Settings
from reconciler.source.child import SILENCE
from reconciler.source.credentials import GitOptions
from reconciler.timetable.agenda import Pacing, Trigger
from reconciler.wiring.daemon import Watchdogs
from tests.fakes.passes import wrote
from tests.programs import ended
from tests.unit.daemon.running import LONG, PATIENCE, Passes, Running


@pytest.mark.parametrize(
    ("results", "run", "code"),
    [
        ([PassResult(settled=True)], {"until_settled": True}, 0),
        ([PassResult(failure=Invalid("broken"))], {"until_settled": True}, 1),
        ([PassResult(failure=Stalled("gone", reason="Gone"))], {"until_settled": True}, 1),
        ([PassResult()], {"until_settled": True, "at_most": timedelta(0)}, 1),
    ],
)
def test_a_bounded_run_ends_by_itself(results: list[PassResult], run: dict[str, Any], code: int) -> None:
    with Running(Passes(*results), run) as running:
        assert running.ended() == code


def test_until_settled_goes_on_over_transient_failures_and_work_under_way() -> None:
    passes = Passes(PassResult(failure=Transient("no answer")), PassResult(change_set=wrote(Outcome.APPLIED)))
    with Running(
        passes, {"until_settled": True}, pacing=Pacing(quiet=timedelta(0), retry_first=timedelta(0))
    ) as running:
        assert [passes.next(), passes.next()] == [Trigger.START, Trigger.RETRY]
        assert passes.next() is Trigger.CHANGE
        passes.results.append(PassResult(settled=True))
        running.daemon.changed()
        assert running.ended() == 0


def test_until_settled_looks_again_after_its_own_writes_even_when_no_change_is_seen() -> None:
    passes = Passes(PassResult(change_set=wrote(Outcome.APPLIED)), PassResult(settled=True))
    with Running(passes, {"until_settled": True}) as running:
        assert running.ended() == 0


def test_a_bounded_run_that_is_stopped_did_not_do_what_was_asked() -> None:
    running = Running(Passes(), {"until_settled": True})
    with running:
        running.passes.next()
    assert running.ended() == 1


@pytest.mark.parametrize("of", ["passes", "polls"])
def test_what_fails_because_all_was_closed_is_not_told_after_the_end(of: str) -> None:
    before = threading.enumerate()
    under_way, closed = threading.Event(), threading.Event()
    told = Queue[str]()

    def break_when_closed() -> bool:
        under_way.set()
        assert closed.wait(PATIENCE)
        raise Transient("the connection was closed")

    def run_pass(_trigger: Trigger) -> PassResult:
        return PassResult(settled=break_when_closed()) if of == "passes" else PassResult()

    with Running(
        Passes(),
        run_pass=run_pass,
        poll_source=break_when_closed,
        poll=LONG if of == "passes" else timedelta(milliseconds=50),
        grace=timedelta(0),
        on_result=lambda _trigger, result: told.put(f"pass: {result.failure}"),
        on_poll=lambda result, _seconds: told.put(f"poll: {result}"),
    ) as running:
        assert under_way.wait(PATIENCE)
        running.daemon.stop()
        assert running.ended() == 0
        (thread,) = (item for item in threading.enumerate() if item.name == of and item not in before)
        closed.set()
        thread.join(PATIENCE)
    assert "poll: transient" not in told.queue
    assert "pass: the connection was closed" not in told.queue


PROGRAM = """
    import sys, threading
    from datetime import UTC, datetime, timedelta
    from reconciler.clocks import SystemClock
    from reconciler.daemon.daemon import Daemon
    from reconciler.ports import PassResult

    def run_pass(trigger):
        print("pass", flush=True)
        if sys.argv[1] == "endless":
            threading.Event().wait()
        while not daemon.stopping:
            threading.Event().wait(0.01)
        print("finished the write", flush=True)
        return PassResult()

    daemon = Daemon(run_pass=run_pass, poll_source=lambda: False, clock=SystemClock())
    sys.exit(daemon.run())
"""


def started(kind: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(PROGRAM), kind],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path.cwd())},
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "pass\n"
    return process


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_lets_the_write_under_way_finish(number: signal.Signals) -> None:
    with started("patient") as process:
        process.send_signal(number)
        output, _ = process.communicate(timeout=PATIENCE)
    assert output == "finished the write\n"
    assert process.returncode == 0


def test_a_second_signal_ends_it_at_once() -> None:
    with started("endless") as process:
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE / 2)
    assert process.returncode == 0


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


OF_A_PASS = "a pass has made no progress for {} s (phase: {})"
OF_A_POLL = "a poll of the repository has made no progress for {} s"


@pytest.mark.parametrize(
    ("steps", "complaint"),
    [
        (["progress placement", 60], ""),
        (["progress placement", 120], OF_A_PASS.format(120, "placement")),
        (["progress apply", MOST_SILENCE] * 100, ""),
        (["progress apply", "rest", 3600], ""),
        (["progress compiling", MOST_SILENCE + 600], ""),
        (["progress compiling", MOST_SILENCE + 601], OF_A_PASS.format(691, "compiling")),
        (["poll_begins", *["progress apply", 28] * 4], OF_A_POLL.format(112)),
        (["poll_begins", 112, "poll_ended"], ""),
        # As a large transfer does that git.timeout allows.
        (["poll_begins", *["git_progress", MOST_SILENCE] * 100], ""),
        (["poll_begins", "git_progress", MOST_SILENCE + 1], OF_A_POLL.format(91)),
        ([f"progress {GIT}", MOST_SILENCE, "git_progress", MOST_SILENCE], ""),
        (["progress placement", MOST_SILENCE + 1, "git_progress"], OF_A_PASS.format(91, "placement")),
    ],
)
def test_who_is_silent_for_too_long_is_told(steps: list[str | float], complaint: str, seconds: Seconds) -> None:
    """steps: what is reported, or how many seconds pass. Compiling has ten minutes more."""
    watchdog = Watchdog(more={"compiling": 600}, seconds=seconds)
    for step in steps:
        if isinstance(step, str):
            report, *phase = step.split()
            getattr(watchdog, report)(*phase)
        else:
            seconds.now += step
    assert watchdog.complaint == complaint


@pytest.mark.parametrize("timeout", [timedelta(minutes=1), timedelta(hours=1)])
def test_the_daemon_tells_of_a_stuck_poll_within_two_minutes_whatever_git_may_take(
    timeout: timedelta, monkeypatch: pytest.MonkeyPatch, seconds: Seconds
) -> None:
    monkeypatch.setattr("reconciler.wiring.daemon.Watchdog", partial(Watchdog, seconds=seconds))
    watchdog = Watchdogs().another(Settings(git=GitOptions(timeout=timeout)))
    watchdog.poll_begins()
    seconds.now += SILENCE
    assert watchdog.complaint == "", "a silent Git is ended by then, which says more than an end of the process"
    seconds.now += 120 - SILENCE
    assert watchdog.complaint


def test_the_daemon_may_compile_its_loops_on_a_busy_machine(monkeypatch: pytest.MonkeyPatch, seconds: Seconds) -> None:
    monkeypatch.setattr("reconciler.wiring.daemon.Watchdog", partial(Watchdog, seconds=seconds))
    watchdog = Watchdogs().another(Settings())
    watchdog.progress("placement")
    seconds.now += 200
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

    watchdog = Watchdog(patience=0.5, ends_process=True, frozen=3)
    daemon = Daemon(run_pass=run_pass, poll_source=lambda: False, clock=SystemClock(), watchdog=watchdog)
    sys.exit(daemon.run())
"""


@pytest.mark.parametrize("how", ["holds the interpreter", "waits for ever"])
def test_a_pass_that_never_ends_ends_the_process_and_shows_where_it_was(how: str) -> None:
    env = {**os.environ, "PYTHONPATH": str(Path.cwd())}
    done = ended(sys.executable, "-c", textwrap.dedent(FROZEN), how, env=env, within=PATIENT)
    assert done.returncode == 1
    assert done.stdout == "pass\n"
    assert "in run_pass" in done.stderr
    # To read the frames of threads that run breaks the process: only a held interpreter is ended from outside.
    assert ("Timeout" in done.stderr) == (how == "holds the interpreter")


def test_the_process_ends_for_one_stuck_pass_whatever_the_others_do(
    monkeypatch: pytest.MonkeyPatch, seconds: Seconds
) -> None:
    codes: list[int] = []
    monkeypatch.setattr("os._exit", codes.append)
    monkeypatch.setattr("faulthandler.dump_traceback", lambda: None)
    stuck = Watchdog(seconds=seconds)
    busy = Watchdog(seconds=seconds, ends_process=True, elsewhere=lambda: stuck.complaint)
    try:
        stuck.progress("placement")
        for silence in (MOST_SILENCE, 1, UNTIL_THE_END - 2):
            seconds.now += silence
            busy.progress("placement")
            busy.feed()
            assert codes == []
        seconds.now += 1
        busy.feed()
    finally:
        busy.close()
    assert codes == [1]


TIMEOUT = 60.0
MOST_OF_A_PIPE = 2**16
"""Bytes that a pipe takes without a reader."""


@pytest.mark.parametrize(
    ("number", "flags", "code"),
    [(signal.SIGTERM, (), 0), (signal.SIGINT, ("--until-settled",), 1)],
    ids=["daemon", "bounded"],
)
def test_it_ends_in_order_while_its_settings_are_still_read(
    tmp_path: Path, number: signal.Signals, flags: tuple[str, ...], code: int
) -> None:
    command = [sys.executable, "-m", "reconciler", "run", "--config", "/dev/stdin", "--cluster", "embedded", *flags]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path, bufsize=0) as process:
        assert process.stdin is not None
        # More than a pipe holds: it is written when its reader, the process in the middle of its start, has begun.
        process.stdin.write(b"#" * (MOST_OF_A_PIPE + 1))
        process.send_signal(number)
        _, said = process.communicate(timeout=TIMEOUT)
    assert (process.returncode, said) == (code, b"")

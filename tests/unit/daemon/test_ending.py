"""How the daemon ends: bounded runs, signals, and what is under way meanwhile."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
from datetime import timedelta
from pathlib import Path
from queue import Queue
from typing import Any

import pytest

from reconciler.model.changes import Outcome
from reconciler.model.errors import Invalid, Stalled, Transient
from reconciler.ports import PassResult
from reconciler.timetable.agenda import Pacing, Trigger
from tests.fakes.passes import FakePass, wrote
from tests.unit.daemon.running import LONG, PATIENCE, Passes, Running


@pytest.mark.parametrize(
    ("results", "run", "code"),
    [
        ([FakePass(settled=True)], {"until_settled": True}, 0),
        ([FakePass(failure=Invalid("broken"))], {"until_settled": True}, 1),
        ([FakePass(failure=Stalled("gone", reason="Gone"))], {"until_settled": True}, 1),
        ([FakePass()], {"until_settled": True, "max_passes": 1}, 1),
        ([FakePass()], {"max_passes": 1}, 0),
        ([FakePass(failure=Transient("no answer"))], {"max_passes": 1}, 1),
        ([FakePass(change_set=wrote(Outcome.FAILED))], {"max_passes": 1}, 1),
        ([FakePass()], {"until_settled": True, "at_most": timedelta(0)}, 1),
    ],
)
def test_a_bounded_run_ends_by_itself(results: list[PassResult], run: dict[str, Any], code: int) -> None:
    with Running(Passes(*results), run) as running:
        assert running.ended() == code


def test_until_settled_goes_on_over_transient_failures_and_work_under_way() -> None:
    passes = Passes(FakePass(failure=Transient("no answer")), FakePass(change_set=wrote(Outcome.APPLIED)))
    with Running(
        passes, {"until_settled": True}, pacing=Pacing(quiet=timedelta(0), retry_first=timedelta(0))
    ) as running:
        assert [passes.next(), passes.next()] == [Trigger.START, Trigger.RETRY]
        assert passes.next() is Trigger.CHANGE
        passes.results.append(FakePass(settled=True))
        running.daemon.changed()
        assert running.ended() == 0


def test_until_settled_looks_again_after_its_own_writes_even_when_no_change_is_seen() -> None:
    passes = Passes(FakePass(change_set=wrote(Outcome.APPLIED)), FakePass(settled=True))
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
        return FakePass(settled=break_when_closed()) if of == "passes" else FakePass()

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
    from tests.fakes.passes import FakePass

    def run_pass(trigger):
        print("pass", flush=True)
        if sys.argv[1] == "endless":
            threading.Event().wait()
        while not daemon.stopping:
            threading.Event().wait(0.01)
        print("finished the write", flush=True)
        return FakePass()

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

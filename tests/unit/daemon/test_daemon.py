"""The daemon with real threads and a clock that the test moves: passes one at a time, retries, endings."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from queue import Queue
from typing import Any, Self

import pytest

from reconciler.daemon.daemon import Daemon, Listeners
from reconciler.daemon.state import Timing
from reconciler.model.changes import Outcome
from reconciler.model.errors import Failure, Invalid, Stalled, Transient
from reconciler.ports import PassResult
from reconciler.timetable.agenda import Pacing, Trigger
from tests.fakes.clock import ManualClock
from tests.fakes.passes import FakePass, wrote
from tests.plans import full_plan

PATIENCE = 20.0
"""Seconds until a test that hangs fails; no test that passes waits for it."""
LONG = timedelta(hours=1)


class Passes:
    """Makes prepared passes (then ones with nothing to do) and says when each has begun."""

    def __init__(self, *results: PassResult | Exception) -> None:
        self.results = list(results)
        self.begun: Queue[Trigger] = Queue()
        self.gate = threading.Event()
        self.gate.set()

    def __call__(self, trigger: Trigger) -> PassResult:
        self.begun.put(trigger)
        assert self.gate.wait(PATIENCE)
        result = self.results.pop(0) if self.results else FakePass()
        if isinstance(result, Exception):
            raise result
        return result

    def next(self) -> Trigger:
        return self.begun.get(timeout=PATIENCE)


class Running:
    """A daemon in a thread of its own, with a clock that only the test moves."""

    def __init__(self, passes: Passes, run: dict[str, Any] | None = None, **arguments: Any) -> None:
        self.clock = ManualClock()
        self.passes = passes
        settings: dict[str, Any] = {"run_pass": passes, "poll_source": lambda: False, "clock": self.clock}
        timing: dict[str, Any] = {"poll": LONG, "tick": LONG, "pacing": Pacing(quiet=timedelta(0))}
        timing |= {name: arguments.pop(name) for name in ("poll", "tick", "pacing", "grace") if name in arguments}
        heard = Listeners(**{name: arguments.pop(name) for name in ("on_result", "on_poll") if name in arguments})
        self.daemon = Daemon(timing=Timing(**timing), listeners=heard, **(settings | arguments))
        self.code: list[int] = []
        self._thread = threading.Thread(target=lambda: self.code.append(self.daemon.run(**(run or {}))))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.passes.gate.set()
        self.daemon.stop()
        self.ended()

    def ended(self) -> int:
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()
        return self.code[0]


def test_it_makes_a_pass_at_the_start_and_one_after_each_change() -> None:
    with Running(Passes()) as running:
        assert running.passes.next() is Trigger.START
        running.daemon.changed()
        assert running.passes.next() is Trigger.CHANGE


def test_it_ends_with_0_when_it_is_stopped() -> None:
    running = Running(Passes())
    with running:
        running.passes.next()
    assert running.ended() == 0


def test_passes_never_overlap_and_changes_during_one_make_one_more() -> None:
    passes = Passes()
    passes.gate.clear()
    with Running(passes) as running:
        passes.next()
        for _ in range(5):
            running.daemon.changed()
        assert passes.begun.empty()
        assert running.daemon.state.under_way is Trigger.START
        passes.gate.set()
        assert passes.next() is Trigger.CHANGE
        running.daemon.request("2026-11-23T09:00:00Z")
        assert passes.next() is Trigger.REQUEST


def test_a_change_waits_for_quiet_on_the_given_clock() -> None:
    with Running(Passes(), pacing=Pacing(quiet=timedelta(seconds=10))) as running:
        running.passes.next()
        running.daemon.changed()
        state = running.daemon.state
        assert state.next_pass is not None
        assert state.next_pass - running.clock.now() == timedelta(seconds=10)
        running.clock.advance(10)
        assert running.passes.next() is Trigger.CHANGE


def test_ticks_come_without_any_change() -> None:
    with Running(Passes(), tick=timedelta(milliseconds=50)) as running:
        assert [running.passes.next() for _ in range(3)] == [Trigger.START, Trigger.TICK, Trigger.TICK]


def test_polls_come_by_themselves_and_a_commit_makes_a_pass() -> None:
    news = Queue[bool]()
    for item in (False, False, True):
        news.put(item)
    polled = Queue[str]()
    with Running(
        Passes(),
        poll_source=lambda: news.get(timeout=PATIENCE) if not news.empty() else False,
        poll=timedelta(milliseconds=50),
        on_poll=lambda result, _seconds: polled.put(result),
    ) as running:
        assert running.passes.next() is Trigger.START
        assert running.passes.next() is Trigger.COMMIT
        assert [polled.get(timeout=PATIENCE) for _ in range(3)] == ["unchanged", "unchanged", "changed"]


@pytest.mark.parametrize("error", [Transient("no answer"), ValueError("a defect")])
def test_a_failing_poll_does_not_end_the_polling(error: Exception) -> None:
    answers: list[Callable[[], bool]] = [lambda: _raise(error), lambda: True]
    polled = Queue[str]()
    with Running(
        Passes(),
        poll_source=lambda: answers.pop(0)() if answers else False,
        poll=timedelta(milliseconds=50),
        on_poll=lambda result, _seconds: polled.put(result),
    ) as running:
        assert running.passes.next() is Trigger.START
        assert running.passes.next() is Trigger.COMMIT
        assert polled.get(timeout=PATIENCE) == "transient"


def _raise(error: Exception) -> bool:
    raise error


@pytest.mark.parametrize(
    "first",
    [FakePass(failure=Transient("no answer")), FakePass(change_set=wrote(Outcome.FAILED)), ValueError("a defect")],
)
def test_what_may_succeed_later_is_tried_again_by_itself(first: PassResult | Exception) -> None:
    with Running(Passes(first), pacing=Pacing(retry_first=timedelta(0))) as running:
        assert [running.passes.next(), running.passes.next()] == [Trigger.START, Trigger.RETRY]


def test_writes_that_were_refused_are_not_tried_again_by_themselves() -> None:
    with Running(Passes(FakePass(change_set=wrote(Outcome.REFUSED)))) as running:
        running.passes.next()
        running.daemon.changed()
        assert running.passes.next() is Trigger.CHANGE


@pytest.mark.parametrize("failure", [Invalid("broken"), Stalled("gone", reason="Gone")])
def test_what_a_person_must_mend_is_looked_at_again_after_a_poll(failure: Failure) -> None:
    told = Queue[Trigger]()
    with Running(Passes(FakePass(failure=failure)), on_result=lambda trigger, _result: told.put(trigger)) as running:
        assert running.passes.next() is told.get(timeout=PATIENCE)
        running.daemon.changed()
        running.daemon.poll_now()
        assert running.passes.next() is Trigger.RETRY


def test_the_same_request_is_handled_once() -> None:
    results = Queue[Trigger]()
    with Running(Passes(), on_result=lambda trigger, _result: results.put(trigger)) as running:
        results.get(timeout=PATIENCE)
        running.daemon.request("one")
        assert results.get(timeout=PATIENCE) is Trigger.REQUEST
        assert running.daemon.state.handled_request == "one"
        running.daemon.request("one")
        running.daemon.changed()
        assert results.get(timeout=PATIENCE) is Trigger.CHANGE


def test_no_pass_is_made_while_another_replica_leads() -> None:
    answers = Queue[bool]()
    leads = threading.Event()

    def is_leader() -> bool:
        answers.put(leads.is_set())
        return leads.is_set()

    with Running(Passes(), is_leader=is_leader) as running:
        running.daemon.changed()
        for _ in range(3):
            answers.get(timeout=PATIENCE)
        assert running.passes.begun.empty()
        assert running.daemon.readiness() == (True, "another replica leads")
        leads.set()
        assert running.passes.next() is Trigger.START
        assert running.daemon.state.leads


def test_a_clock_that_is_set_back_makes_a_pass_and_holds_nothing_up() -> None:
    with Running(Passes()) as running:
        running.passes.next()
        running.clock.advance(-7200)
        assert running.passes.next() is Trigger.CLOCK
        running.daemon.changed()
        assert running.passes.next() is Trigger.CHANGE


def test_after_that_ticks_are_reckoned_from_the_new_time() -> None:
    with Running(Passes()) as running:
        running.passes.next()
        before = tick_of(running).next_run_time
        running.clock.advance(-7200)
        running.passes.next()
        assert eventually(lambda: tick_of(running).next_run_time > before)


def test_a_clock_that_jumps_ahead_is_noticed_within_a_second_by_what_is_overdue() -> None:
    with Running(Passes()) as running:
        running.passes.next()
        tick = tick_of(running)
        # The scheduler itself is not told, as nobody tells it when the machine's clock is set.
        tick._modify(next_run_time=datetime.now(UTC))
        scheduler_of(running)._jobstores["default"].update_job(tick)
        assert running.passes.next() is Trigger.TICK


def scheduler_of(running: Running) -> Any:
    assert running.daemon._jobs._scheduler is not None
    return running.daemon._jobs._scheduler


def tick_of(running: Running) -> Any:
    return scheduler_of(running).get_job("tick")


def eventually(holds: Callable[[], bool]) -> bool:
    """Within PATIENCE."""
    over = threading.Event()
    timer = threading.Timer(PATIENCE, over.set)
    timer.start()
    try:
        while not over.wait(0.01):
            if holds():
                return True
    finally:
        timer.cancel()
    return False


def test_it_is_ready_once_a_pass_has_made_a_plan() -> None:
    told = Queue[Trigger]()
    with Running(
        Passes(FakePass(failure=Transient("no answer")), FakePass(plan=full_plan())),
        on_result=lambda trigger, _result: told.put(trigger),
        pacing=Pacing(retry_first=timedelta(0)),
        is_leader=lambda: True,
    ) as running:
        for _ in range(2):
            told.get(timeout=PATIENCE)
        assert running.daemon.readiness() == (True, "ok")
        assert running.daemon.health() == (True, "ok")


def test_before_that_it_says_what_is_missing() -> None:
    told = Queue[Trigger]()
    with Running(
        Passes(FakePass(failure=Transient("no answer"))), on_result=lambda trigger, _result: told.put(trigger)
    ) as running:
        told.get(timeout=PATIENCE)
        assert running.daemon.readiness() == (False, "no pass has made a plan yet")


def test_what_goes_wrong_in_telling_about_a_pass_does_not_end_the_daemon() -> None:
    with Running(Passes(), on_result=lambda _trigger, _result: _raise(ValueError("a defect"))) as running:
        running.passes.next()
        running.daemon.changed()
        assert running.passes.next() is Trigger.CHANGE


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

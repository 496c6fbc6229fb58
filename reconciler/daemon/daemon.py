"""The daemon: decides when passes are made, one at a time, until it is stopped or settled.

Three threads of its own: one makes passes, one polls the repository, and the caller's waits and looks at the clock each
second. APScheduler's jobs only say that a poll, a tick or an edge is due. `timetable/agenda.py` has the rules of timing.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from queue import Empty, SimpleQueue
from time import monotonic

from reconciler.daemon.ending import Watchdog, stopped_by_signals
from reconciler.daemon.timers import Edges, Jobs, Requests
from reconciler.model.errors import Invalid, Stalled
from reconciler.model.refs import abridged
from reconciler.model.schedules import Edge
from reconciler.ports import Clock, PassResult
from reconciler.telemetry.logs import Log, as_failure, logger, tell
from reconciler.telemetry.metrics import failure_of, wrote
from reconciler.timetable.agenda import Agenda, Pacing, Trigger

HEARTBEAT = 1.0
"""Seconds between looks at the clock: APScheduler sleeps until its next job and would not notice one that is set."""
SET_BACK = timedelta(seconds=1)
"""A clock that jumps back by more than this was set. Smaller jumps are ordinary corrections."""


@dataclass(frozen=True, slots=True)
class Timing:
    """poll: the time between polls of the repository. tick: between passes when nothing happens. pacing: waits after changes and
    failures. grace: how long a pass under way may take to end when the daemon is stopped."""

    poll: timedelta = timedelta(minutes=1)
    tick: timedelta = timedelta(minutes=5)
    pacing: Pacing = field(default_factory=Pacing)
    grace: timedelta = timedelta(seconds=20)


@dataclass(frozen=True, slots=True)
class Listeners:
    """Called after each pass, with its result, and after each poll, with its outcome in one word and its seconds. log: None for the
    process's own."""

    on_result: Callable[[Trigger, PassResult], None] = lambda _trigger, _result: None
    on_poll: Callable[[str, float], None] = lambda _result, _seconds: None
    log: Log | None = None


class Daemon:
    """run_pass: makes one whole pass; only defects raise. poll_source: looks at the repository, and returns whether there is something
    new; raises `Failure`.

    is_leader: passes are made only while it returns True. trouble: returns why nobody is known to lead, "" otherwise. next_edge: returns the first instant after a given one at which a pass must
    be made in any case (a schedule's edge). It is called again after every pass.
    """

    def __init__(
        self,
        *,
        run_pass: Callable[[Trigger], PassResult],
        poll_source: Callable[[], bool],
        clock: Clock,
        timing: Timing | None = None,
        listeners: Listeners | None = None,
        is_leader: Callable[[], bool] = lambda: True,
        trouble: Callable[[], str] = lambda: "",
        next_edge: Callable[[datetime], Edge | None] = lambda _after: None,
        watchdog: Watchdog | None = None,
    ) -> None:
        self._run_pass = run_pass
        self._poll_source = poll_source
        self._clock = clock
        self._listeners = listeners or Listeners()
        self._is_leader = is_leader
        self._trouble = trouble
        timing = timing or Timing()
        self._jobs = Jobs((self.poll_now, timing.poll), (lambda: self._want(Trigger.TICK), timing.tick))
        self._edges = Edges(next_edge, clock, self._at_edge)
        self._grace = timing.grace
        self._log = self._listeners.log or logger()
        self._agenda = Agenda(timing.pacing)
        self._turn = threading.Condition()
        self._poll_due = threading.Event()
        self._stopping = threading.Event()
        self._ended = threading.Event()
        """Set when `run` returns. Failures after that come from closing, and are not reported."""
        # The one queue that may be written to from a signal handler: its put is reentrant.
        self._ending: SimpleQueue[int | None] = SimpleQueue()
        self._leads: bool | None = None  # not asked yet
        self._watchdog = watchdog or Watchdog()
        self._requests = Requests()
        self._heartbeat = monotonic()
        self._readiness = False, "no pass has succeeded yet"

    # From any thread

    def changed(self, trigger: Trigger = Trigger.CHANGE) -> None:
        """Reports a change of the cluster: for `Cluster.start`. trigger: `TAKEN` or `CAME` where it took held room or brought it, which a
        pass follows at once."""
        self._want(trigger)

    def request(self, requested_at: str) -> None:
        """Asks for a poll and then a pass with an annotation's value. The same value asks only once."""
        with self._turn:
            is_new = self._requests.ask(requested_at)
        if is_new:
            self.poll_now()

    def poll_now(self) -> None:
        """Polls the repository without waiting for the interval."""
        self._poll_due.set()

    def stop(self) -> None:
        """Ends cleanly; safe to call from a signal handler."""
        self._ending.put(None)

    @property
    def stopping(self) -> bool:
        """Whether a pass under way should end after its present write."""
        return self._stopping.is_set()

    @property
    def handled_request(self) -> str:
        """The newest value of the annotation that a pass was made for."""
        return self._requests.handled

    @property
    def next_edge(self) -> Edge | None:
        return self._edges.next

    @property
    def held_up(self) -> str:
        """Why the pass under way makes no progress, or why none is made although no other replica is known to lead; "" if all goes on."""
        return self._watchdog.held_up or self._trouble()

    def health(self) -> tuple[bool, str]:
        """Whether the process is healthy, and if not, why."""
        silence = monotonic() - self._heartbeat
        if silence > 30 * HEARTBEAT:
            return False, f"the daemon has not looked at the clock for {silence:.0f} s"
        complaint = self._watchdog.complaint
        return not complaint, complaint or "ok"

    def readiness(self) -> tuple[bool, str]:
        """Whether it is ready: a pass has succeeded and none is held up, or another replica leads."""
        held_up = self.held_up
        if held_up:
            return False, held_up
        if self._leads is False:
            return True, "another replica leads"
        return self._readiness

    # The caller's thread

    def run(self, *, until_settled: bool = False, at_most: timedelta | None = None) -> int:
        """Makes passes until stopped; returns the exit code: 0, or 1 if it ended before its goal.

        until_settled: end with 0 after a pass that left nothing to do. End with 1 once a pass fails in a way that only a person can
        repair. at_most: end with 1 after that long. SIGTERM and SIGINT end it within `grace`, a second one at once.
        """
        give_up = None if at_most is None else monotonic() + at_most.total_seconds()
        passes = threading.Thread(target=self._make_passes, args=(until_settled,), name="passes", daemon=True)
        polls = threading.Thread(target=self._make_polls, name="polls", daemon=True)
        with stopped_by_signals(self.stop), self._scheduled():
            seen = self._clock.now()
            self._watchdog.feed()
            passes.start()
            polls.start()
            code = self._watch_clock(seen, give_up)
            self._stopping.set()
            with self._turn:
                self._turn.notify_all()
            self._poll_due.set()
            self._wait_for(passes)
            self._ended.set()
        return int(until_settled) if code is None else code

    def _watch_clock(self, seen: datetime, give_up: float | None) -> int | None:
        """Watches the clock until an exit code, or None for a stop, is on the queue. seen: the time of the start."""
        while True:
            self._watchdog.feed()
            try:
                return self._ending.get(timeout=HEARTBEAT)
            except Empty:
                self._heartbeat = monotonic()
            now = self._clock.now()
            if now < seen - SET_BACK:
                self._log.warning("the clock was set back", by=str(seen - now))
                with self._turn:
                    self._agenda.set_back(seen - now, now)
                    self._turn.notify_all()
                self._jobs.plan()
                self._edges.look_from(now)
            self._edges.look()
            seen = now
            self._jobs.wake()
            if give_up is not None and monotonic() >= give_up:
                self._log.error("gave up: not settled in time")
                return 1

    def _wait_for(self, passes: threading.Thread) -> None:
        """Waits for the write under way, but not for a pass that takes longer: a kill at any instant loses nothing."""
        deadline = monotonic() + self._grace.total_seconds()
        while passes.is_alive() and monotonic() < deadline:
            passes.join(timeout=0.05)
            if not self._ending.empty() and self._ending.get() is None:
                break
        if passes.is_alive():
            self._log.warning("stopped in the middle of a pass", grace=str(self._grace))

    @contextmanager
    def _scheduled(self) -> Iterator[None]:
        self._edges.start(self._jobs.start())
        try:
            yield
        finally:
            self._edges.stop()
            self._jobs.stop()
            self._watchdog.close()

    # The polling thread

    def _make_polls(self) -> None:
        while True:
            self._poll_due.wait()
            self._poll_due.clear()
            if self._stopping.is_set():
                return
            began = monotonic()
            self._watchdog.poll_begins()
            with self._turn:
                self._requests.poll_begins()
            try:
                news = self._poll_source()
            except Exception as error:  # noqa: BLE001 - the next poll must come in any case
                if self._ended.is_set():
                    return
                failure = as_failure(error, self._log)
                tell(failure, "poll failed", self._log)
                self._listeners.on_poll(type(failure).__name__.lower(), monotonic() - began)
                with self._turn:
                    self._handle_request(self._clock.now())
                continue
            finally:
                self._watchdog.poll_ended()
            self._listeners.on_poll("changed" if news else "unchanged", monotonic() - began)
            with self._turn:
                now = self._clock.now()
                if news:
                    self._agenda.want(Trigger.COMMIT, now)
                self._agenda.polled(now)
                self._handle_request(now)
                self._turn.notify_all()

    def _handle_request(self, now: datetime) -> None:
        """After a poll, whatever it came to. The caller holds the lock."""
        if self._requests.poll_ended():
            self._agenda.want(Trigger.REQUEST, now)
            self._turn.notify_all()

    # The thread that makes passes

    def _make_passes(self, until_settled: bool) -> None:  # noqa: FBT001 - run's own argument
        while (trigger := self._next()) is not None:
            result = self._one_pass(trigger)
            if until_settled and result.settled:
                self._ending.put(self._settled_code(result))
                return
            if until_settled and isinstance(result.failure, Invalid | Stalled):
                self._ending.put(1)
                return
            if until_settled and wrote(result):
                self._want(Trigger.CHANGE)  # a pass that finds nothing left must follow, even without a change

    def _settled_code(self, result: PassResult) -> int:
        """0, or 1 if nothing is left that can be done and capacity is missing all the same."""
        missing = [
            f"{outcome.unplaced:,} of {outcome.demand.desired:,} chunks of {outcome.demand.ref}"
            for outcome in (() if result.plan is None else result.plan.demands)
            if outcome.unplaced and outcome.demand.desired is not None and not outcome.demand.is_pending_pod
        ]
        if missing:
            self._log.error("settled, but not all capacity is there", missing=", ".join(missing))
        return int(bool(missing))

    def _next(self) -> Trigger | None:
        """Waits until a pass is due; None if the daemon stops."""
        while not self._stopping.is_set():
            leads = self._is_leader()
            with self._turn:
                now = self._clock.now()
                if leads and not self._leads:
                    self._agenda.want(Trigger.START, now)
                if self._leads not in {None, leads}:
                    self._tell_leadership(leads)
                self._leads = leads
                due = self._agenda.due() if leads else None
                if due is not None and due[0] <= now:
                    self._agenda.begin(now)
                    self._watchdog.progress("start")
                    return due[1]
                wait = HEARTBEAT if due is None else min(HEARTBEAT, (due[0] - now).total_seconds())
                self._turn.wait(wait)
        return None

    def _tell_leadership(self, leads: bool) -> None:  # noqa: FBT001 - the one thing there is to say
        if leads:
            self._log.info("this replica leads now")
        else:
            why = self._trouble() or "its Lease was taken, or ran out while the process did not run"
            self._log.warning("this replica leads no longer", why=why)

    def _one_pass(self, trigger: Trigger) -> PassResult:
        with self._turn:
            asked = self._requests.pass_begins()
        began = self._clock.now()
        try:
            result = self._run_pass(trigger)
        except Exception as error:  # noqa: BLE001 - a defect in one pass must not end the daemon
            result = PassResult(failure=as_failure(error, self._log))
        if self._ended.is_set():
            return result
        if result.failure is not None:
            tell(result.failure, "pass failed", self._log, trigger=trigger.value)
        with self._turn:
            self._agenda.ended(self._clock.now(), failure_of(result), only_writes=result.failure is None)
            self._watchdog.rest()
            self._requests.pass_ended(asked)
            if result.failure is None and result.plan is not None:
                why_not = abridged(result.plan.blocked, 1)
                self._readiness = True, f"ok, but nothing is deleted or released: {why_not}" if why_not else "ok"
            elif result.failure is not None and not self._readiness[0]:
                self._readiness = False, f"no pass has succeeded yet: {result.failure.message}"
        self._edges.look_from(began)  # not from now, since an edge of a new commit may have come during the pass
        try:
            self._listeners.on_result(trigger, result)
        except Exception as error:  # noqa: BLE001 - reporting a pass must not end the daemon either
            tell(as_failure(error, self._log), "could not report a pass", self._log)
        return result

    def _want(self, trigger: Trigger) -> None:
        with self._turn:
            self._agenda.want(trigger, self._clock.now())
            self._turn.notify_all()

    def _at_edge(self, edge: Edge) -> None:
        tell = self._log.debug if edge.is_routine else self._log.info
        tell("edge", at=edge.at.isoformat(), of=edge.why)
        self._want(Trigger.EDGE)

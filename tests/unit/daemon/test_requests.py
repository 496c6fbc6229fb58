"""A person asks for a pass: the repository is polled first, and a poll that takes too long is not waited for."""

from __future__ import annotations

import threading
from queue import Queue

from reconciler.daemon.timers import PATIENCE, Requests
from reconciler.model.errors import Transient
from reconciler.timetable.agenda import Trigger
from tests.unit.daemon.running import PATIENCE as SOON
from tests.unit.daemon.running import Passes, Running


def test_the_pass_sees_what_was_pushed_before_it_was_asked_for() -> None:
    """The pass was made of the old commit, and told as made for the request; the new one came with the next poll, a minute later."""
    pushed, polls = threading.Event(), Queue[bool]()

    def poll() -> bool:
        polls.put(pushed.is_set())
        return pushed.is_set()

    told = Queue[Trigger]()
    with Running(Passes(), poll_source=poll, on_result=lambda trigger, _result: told.put(trigger)) as running:
        told.get(timeout=SOON)
        pushed.set()
        running.daemon.request("noon")
        assert told.get(timeout=SOON) is Trigger.REQUEST
        assert polls.get(timeout=SOON)
        assert running.daemon.state.handled_request == "noon"


def test_a_pass_is_made_where_the_repository_cannot_be_polled() -> None:
    def poll() -> bool:
        raise Transient("no answer")

    told = Queue[Trigger]()
    with Running(Passes(), poll_source=poll, on_result=lambda trigger, _result: told.put(trigger)) as running:
        told.get(timeout=SOON)
        running.daemon.request("noon")
        assert told.get(timeout=SOON) is Trigger.REQUEST


class Seconds:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_a_poll_that_began_before_does_not_count() -> None:
    requests = Requests()
    requests.poll_begins()
    assert requests.ask("noon")
    assert not requests.poll_ended()
    requests.poll_begins()
    assert requests.poll_ended()
    assert requests.pass_begins() == "noon"


def test_a_pass_for_another_reason_does_not_handle_it() -> None:
    requests = Requests()
    requests.ask("noon")
    requests.pass_ended(requests.pass_begins())
    assert requests.handled == ""


def test_a_poll_that_takes_long_is_not_waited_for() -> None:
    seconds = Seconds()
    requests = Requests(seconds)
    requests.ask("noon")
    requests.poll_begins()
    assert not requests.is_overdue()
    seconds.now += PATIENCE
    assert requests.is_overdue()
    assert not requests.is_overdue(), "said once"
    assert not requests.poll_ended(), "the pass was made already"
    requests.pass_ended(requests.pass_begins())
    assert requests.handled == "noon"
    assert not requests.ask("noon")

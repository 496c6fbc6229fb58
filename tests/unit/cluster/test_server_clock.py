"""The API server's clock as its answers tell it, whatever this machine's clock says."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from reconciler.cluster.server_clock import ServerClock
from reconciler.model.view import ClusterView
from tests.unit.cluster.scripted_server import Reply, Script, serving

NOON = datetime(2026, 11, 23, 12, tzinfo=UTC)
AHEAD = timedelta(minutes=61)


class Machine:
    """now: what its clock says; seconds: that really passed."""

    def __init__(self, now: datetime = NOON) -> None:
        self.now = now
        self.seconds = 0.0
        self.clock = ServerClock(elapsed=lambda: self.seconds, now=lambda: self.now)

    def hear(self, server: datetime) -> timedelta:
        self.clock.hear(format_datetime(server, usegmt=True))
        return self.clock.skew


def test_before_any_answer_and_without_a_date_nothing_is_known() -> None:
    machine = Machine()
    assert machine.clock.skew == timedelta(0)
    machine.clock.hear(None)
    machine.clock.hear("soon")
    assert machine.clock.skew == timedelta(0)


def test_answers_without_a_date_are_noticed_until_one_has_it() -> None:
    machine = Machine()
    found = [machine.clock.is_untold]
    for date in (None, format_datetime(NOON, usegmt=True), None):
        machine.clock.hear(date)
        found.append(machine.clock.is_untold)
    assert found == [False, True, False, False]


@pytest.mark.parametrize("skew", [AHEAD, -AHEAD])
def test_a_clock_that_is_off_is_off_by_so_much(skew: timedelta) -> None:
    assert Machine().hear(NOON - skew) == skew


def test_what_a_date_cannot_tell_counts_for_nothing_and_changes_nothing() -> None:
    assert Machine().hear(NOON - timedelta(seconds=2)) == timedelta(0)
    machine = Machine()
    machine.hear(NOON - AHEAD)
    assert machine.hear(NOON - AHEAD - timedelta(seconds=2)) == AHEAD


def test_a_clock_that_is_set_between_two_answers_is_noticed_at_once() -> None:
    machine = Machine()
    machine.hear(NOON)
    machine.seconds += 10
    machine.now += timedelta(seconds=10) + AHEAD
    assert machine.clock.skew == AHEAD


def test_every_answer_is_heard() -> None:
    date = format_datetime(datetime.now(UTC) + AHEAD, usegmt=True)
    with serving(Script([Reply(body={}, headers={"Date": date})])) as connection:
        connection.request("GET", "/api")
        assert abs(connection.server_clock.skew + AHEAD) < timedelta(minutes=1)


def test_a_server_that_never_tells_is_said_in_the_view() -> None:
    machine = Machine()
    machine.clock.hear(None)
    dated = machine.clock.dated(ClusterView())
    assert (dated.clock_skew, dated.clock_is_known) == (timedelta(0), False)
    assert [finding.code for finding in dated.findings] == ["clock-unknown"]
    machine.hear(NOON)
    assert machine.clock.dated(ClusterView()) == ClusterView()

"""Leader election: who may write, and when another takes over. Time is moved by hand."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import pytest

from reconciler.cluster import lease
from reconciler.cluster.lease import (
    ANSWER_SECONDS,
    LEASE_SECONDS,
    RENEW_SECONDS,
    KubernetesLeases,
    LeaderElection,
    LeaseRecord,
)
from reconciler.model.errors import Stalled, Transient
from reconciler.wiring.session import wait_until_nobody_leads
from tests.unit.cluster.scripted_server import Reply, Script, serving

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


@dataclass
class World:
    """A Lease in memory with optimistic locking, and a clock."""

    seconds: float = 100.0
    record: LeaseRecord = field(default_factory=LeaseRecord)
    broken: bool = False
    faster: str = ""

    def read(self) -> LeaseRecord:
        if self.broken:
            raise Transient("no answer")
        return self.record

    def write(self, record: LeaseRecord) -> LeaseRecord | None:
        if self.faster:
            self.record, self.faster = replace(self.record, holder=self.faster, version="99"), ""
        if record.version != self.record.version:
            return None
        self.record = replace(record, version=str(int(record.version or "0") + 1))
        return self.record

    def candidate(self, name: str) -> LeaderElection:
        return LeaderElection(
            self, name, monotonic=lambda: self.seconds, now=lambda: NOON + timedelta(seconds=self.seconds - 100)
        )


def test_an_api_server_that_does_not_answer_ends_the_lead_after_the_renew_deadline() -> None:
    world = World()
    first, second = world.candidate("a"), world.candidate("b")
    first.step()
    second.step()
    assert second.holder == "a"
    world.broken = True
    world.seconds += 29
    first.step()
    second.step()
    assert (first.is_leader(), first.holder, second.holder) == (True, "a", "")
    world.seconds += 1
    assert (first.is_leader(), first.holder) == (False, "")


def test_one_call_that_hangs_does_not_cost_the_leadership(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "ANSWER_SECONDS", 0.2)
    assert lease.RETRY_SECONDS + ANSWER_SECONDS + lease.RETRY_SECONDS + ANSWER_SECONDS <= RENEW_SECONDS
    with serving(Script([Reply(body={"metadata": {"name": "headroom"}}, cut=True, hang=True)])) as connection:
        leases = KubernetesLeases(connection, "headroom-system", "headroom")
        began = time.monotonic()
        with pytest.raises(Transient):
            leases.read()
        with pytest.raises(Transient):
            leases.write(LeaseRecord())
    assert time.monotonic() - began < connection._timeout


@pytest.mark.parametrize("broken", [False, True])
def test_closing_without_the_lease_leaves_it_alone(broken: bool) -> None:  # noqa: FBT001 - the case
    world = World()
    first, second = world.candidate("a"), world.candidate("b")
    first.step()
    second.step()
    world.broken = broken
    second.close()
    assert world.record.holder == "a"


def test_a_lease_is_kept_until_it_runs_out_while_a_write_is_under_way() -> None:
    world = World()
    first, second = world.candidate("a"), world.candidate("b")
    first.step()
    first.close(release=False)
    assert first.is_leader() is False
    second.step()
    assert (second.is_leader(), world.record.holder) == (False, "a")


def test_a_candidate_that_was_closed_takes_the_lease_no_more() -> None:
    world = World()
    first = world.candidate("a")
    first.step()
    first.close()
    first.step()
    assert (first.is_leader(), world.record.holder) == (False, "")


def test_the_lease_of_a_leader_that_is_gone_runs_out_though_it_was_deleted() -> None:
    world = World()
    first, second = world.candidate("a"), world.candidate("b")
    first.step()
    second.step()
    world.record = LeaseRecord()
    world.seconds += 34
    second.step()
    # The absence is news: who knows whether the lease was renewed before it was deleted.
    world.seconds += 34
    second.step()
    assert second.is_leader() is False
    world.seconds += 2
    second.step()
    assert (first.is_leader(), second.is_leader(), world.record.holder) == (False, True, "b")


@pytest.mark.parametrize(
    ("leads_for", "renews_for", "waits"),
    [(0, 0, 0), (12, 12, 12), (99, 0, LEASE_SECONDS), (99, 4, 4 + LEASE_SECONDS), (99, 99, None)],
    ids=["nobody leads", "gives the Lease up", "died before", "dies meanwhile", "goes on"],
)
def test_release_waits_for_a_daemon_that_stops(leads_for: int, renews_for: int, waits: int | None) -> None:
    """Beside a daemon, `headroom release` said that all was released, and the daemon held it again. waits: seconds; None: it fails."""
    passed: list[float] = []

    def lease() -> LeaseRecord:
        if len(passed) >= leads_for:
            return LeaseRecord()
        return LeaseRecord("a", renewed=f"renewal {min(len(passed), renews_for)}")

    if waits is None:
        with pytest.raises(Stalled, match="the daemon a runs, and would hold every node again"):
            wait_until_nobody_leads(lease, passed.append)
    else:
        wait_until_nobody_leads(lease, passed.append)
        assert len(passed) == waits


def test_who_was_faster_is_known_at_once() -> None:
    world = World()
    first = world.candidate("a")
    first.step()
    world.seconds += 5
    world.faster = "b"
    first.step()
    assert (first.is_leader(), first.holder) == (False, "b")

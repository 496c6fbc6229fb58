"""Leader election in every interleaving that can be drawn: slow calls, lost answers, pauses, clocks of different speed.

The model: each call takes a while to reach the server, is performed there at one instant, and its answer takes a while or is lost. A replica
may be suspended between any two of its steps. Its clock only increases, up to a twentieth faster or slower than others'. Somebody deletes
the lease now and then, at most every 200 s. A replica that starts just then and has never seen the lease is left out of the model.
"""

from __future__ import annotations

import heapq
import os
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import count
from threading import Semaphore, Thread

import pytest

from reconciler.cluster.lease import RENEW_SECONDS, RETRY_SECONDS, LeaderElection, LeaseRecord
from reconciler.model.errors import Transient

WORLDS = int(os.environ.get("HEADROOM_LEASES", "60"))
SPAN = 1200.0
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
SLOWEST = 30.0
"""A call is given up after this long, as the connection does it."""


class Simulation:
    """Threads that run one at a time, each until it sleeps. Equal seeds give equal runs."""

    def __init__(self) -> None:
        self.now = 0.0
        self._queue: list[tuple[float, int, Semaphore]] = []
        self._order = count()
        self._turn = Semaphore(0)
        self.checks: list[Callable[[], None]] = []
        self.failures: list[BaseException] = []

    def spawn(self, work: Callable[[], None]) -> None:
        baton = Semaphore(0)

        def run() -> None:
            baton.acquire()
            try:
                work()
            except BaseException as error:  # noqa: BLE001 - the test fails with it
                self.failures.append(error)
            self._turn.release()

        Thread(target=run, daemon=True).start()
        heapq.heappush(self._queue, (self.now, next(self._order), baton))

    def sleep(self, seconds: float) -> None:
        """Called by a spawned thread. After the span it never returns to the thread's work."""
        baton = Semaphore(0)
        heapq.heappush(self._queue, (self.now + seconds, next(self._order), baton))
        self._turn.release()
        baton.acquire()
        if self.now >= SPAN:
            raise SystemExit

    def run(self) -> None:
        while self._queue:
            time, _, baton = heapq.heappop(self._queue)
            self.now = max(self.now, time)
            baton.release()
            self._turn.acquire()
            for check in self.checks:
                check()


@dataclass
class Server:
    """The Lease, with optimistic locking."""

    record: LeaseRecord = field(default_factory=LeaseRecord)
    versions: Iterator[int] = field(default_factory=lambda: count(1))

    def write(self, record: LeaseRecord) -> LeaseRecord | None:
        if record.version != self.record.version:
            return None
        self.record = replace(record, version=str(next(self.versions)))
        return self.record


class Replica:
    """One process, its way to the server and its clock."""

    def __init__(self, name: str, simulation: Simulation, server: Server, chance: random.Random) -> None:
        self._simulation, self._server, self._chance = simulation, server, chance
        self._speed = chance.uniform(0.95, 1.05)
        self._start = chance.uniform(0, 1000)
        self._trouble = chance.choice([0.0, 0.1, 0.4])
        self.name = name
        self.election = LeaderElection(
            self, name, monotonic=self._clock, now=lambda: NOON + timedelta(seconds=simulation.now)
        )

    def _clock(self) -> float:
        return self._start + self._simulation.now * self._speed

    def live(self) -> None:
        self._simulation.sleep(self._chance.uniform(0, 20))
        while True:
            self.election.step()
            self._pause()
            self._simulation.sleep(RETRY_SECONDS / self._speed)

    def _pause(self) -> None:
        """The machine sleeps, or the process gets no time."""
        if self._chance.random() < self._trouble:
            self._simulation.sleep(self._chance.choice([1, 10, RENEW_SECONDS, 50]))

    def _travel(self) -> float:
        slow = self._chance.random() < self._trouble
        return self._chance.uniform(0, SLOWEST / 2) if slow else self._chance.uniform(0, 0.2)

    def _call(self, perform: Callable[[], LeaseRecord | None]) -> LeaseRecord | None:
        self._pause()
        there, back = self._travel(), self._travel()
        if self._chance.random() < self._trouble / 4:
            self._simulation.sleep(SLOWEST)
            raise Transient("lost on the way there")
        self._simulation.sleep(there)
        answer = perform()
        if self._chance.random() < self._trouble / 4:
            self._simulation.sleep(SLOWEST - there)
            raise Transient("the answer is lost")
        self._simulation.sleep(back)
        self._pause()
        return answer

    def read(self) -> LeaseRecord:
        record = self._call(lambda: self._server.record)
        assert record is not None
        return record

    def write(self, record: LeaseRecord) -> LeaseRecord | None:
        return self._call(lambda: self._server.write(record))


def history(seed: int) -> list[tuple[float, str]]:
    """When who began to lead, in a world of two to four replicas. Fails when two may write at one instant."""
    chance = random.Random(seed)
    simulation, server = Simulation(), Server()
    replicas = [Replica(f"r{number}", simulation, server, chance) for number in range(chance.randint(2, 4))]
    leaders: list[tuple[float, str]] = []

    def check() -> None:
        leading = [replica.name for replica in replicas if replica.election.is_leader()]
        assert len(leading) <= 1, f"{leading} lead at {simulation.now:.1f} s of world {seed}"
        if leading and (not leaders or leaders[-1][1] != leading[0]):
            leaders.append((simulation.now, leading[0]))

    def delete_now_and_then() -> None:
        while True:
            simulation.sleep(chance.uniform(200, 400))
            if all(replica.election.holder for replica in replicas):
                server.record = LeaseRecord()

    simulation.checks.append(check)
    for replica in replicas:
        simulation.spawn(replica.live)
    simulation.spawn(delete_now_and_then)
    simulation.run()
    assert [failure for failure in simulation.failures if not isinstance(failure, SystemExit)] == []
    return leaders


@pytest.mark.parametrize("block", range(4))
def test_never_two_may_write(block: int) -> None:
    changes = [len(history(seed)) for seed in range(block * WORLDS // 4, (block + 1) * WORLDS // 4)]
    assert sum(changes) > len(changes), "somebody leads, and the lead changes hands"

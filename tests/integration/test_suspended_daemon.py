"""The daemon's process on an embedded cluster: after a suspend only the present counts.

SIGSTOP and SIGCONT stand in for a machine that sleeps: no thread runs and no timer fires over the edges of a schedule.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest

from tests.controlplane.waiting import eventually
from tests.manifests import buffer, node_pool, pod_template, schedule
from tests.running_daemon import RunningDaemon

OPENS = datetime(2026, 11, 23, 9, tzinfo=UTC)
LEADS = ("1s", "2s", "3s")
FIRST_EDGE = OPENS - timedelta(seconds=3)
BEFORE = {**dict.fromkeys((f"ahead-by-{lead}" for lead in LEADS), 1), "rush": 1}


class Daemon(RunningDaemon):
    def passes(self, trigger: str) -> int:
        return sum(row["trigger"] == trigger for row in self.logged("pass"))

    def wanted(self) -> dict[str, int]:
        """Replicas of each buffer at present, and of the schedule."""
        status = self.status()
        return {row["name"]: row["desired"] for row in status["demands"]} | {
            row["name"]: row["currentValue"] for row in status["schedules"]
        }


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "capacity"
    folder.mkdir()
    buffers = (buffer(f"ahead-by-{lead}", replicas_from="rush", lead_time=lead) for lead in LEADS)
    rush = schedule("rush", 4, "hours: 9", "hours: 17", default=1)
    (folder / "all.yaml").write_text("".join((node_pool(), pod_template(), rush, *buffers)))
    return folder


Run = Callable[[datetime], Daemon]


@pytest.fixture
def run(repository: Path, tmp_path: Path) -> Iterator[Run]:
    """Begins a daemon at this time by its own clock."""
    words = ("--repo", str(repository), "--cluster", "embedded")
    with ExitStack() as started:

        def run(now: datetime) -> Daemon:
            work = tmp_path / f"{now:%H%M%S}"
            work.mkdir()
            daemon = Daemon(work, *words, "--now", now.isoformat(), passes_interval="1h")
            started.enter_context(daemon)
            started.callback(daemon.send, signal.SIGCONT)
            return daemon

        yield run


def asleep_before_the_first_edge(run: Run) -> tuple[Daemon, Callable[[], datetime]]:
    """A daemon that had a pass and was then stopped, and a time that its clock has come to at least. A slower machine is given
    more time for that."""
    for seconds in (4, 12, 36, 108):
        begins = FIRST_EDGE - timedelta(seconds=seconds)
        launched = time.monotonic()
        daemon = run(begins)
        eventually(lambda: daemon.status()["demands"], within=60, what="the first pass", every=0.1)  # noqa: B023 - called here
        looked = time.monotonic()
        wanted, next_edge = daemon.wanted(), daemon.status()["nextEdge"]["time"]
        daemon.send(signal.SIGSTOP)
        if begins + timedelta(seconds=time.monotonic() - launched) < FIRST_EDGE:
            assert (wanted, next_edge) == (BEFORE, FIRST_EDGE.strftime("%Y-%m-%dT%H:%M:%SZ"))
            return daemon, partial(_since, begins, looked)
        daemon.kill()
    pytest.fail("too slow a machine for this test")


def _since(begins: datetime, looked: float) -> datetime:
    return begins + timedelta(seconds=time.monotonic() - looked)


def test_edges_that_pass_while_the_machine_sleeps_count_once_as_the_present(run: Run) -> None:
    daemon, earliest = asleep_before_the_first_edge(run)
    assert daemon.logged("edge") == []
    eventually(lambda: earliest() > OPENS + timedelta(seconds=1), within=180, what="all four edges are past", every=0.2)
    daemon.send(signal.SIGCONT)

    eventually(lambda: daemon.wanted() == dict.fromkeys(BEFORE, 4), within=60, what="the present counts", every=0.1)
    eventually(lambda: daemon.status()["settled"], within=60, what="it is settled", every=0.2)
    (edge,) = daemon.logged("edge")
    assert datetime.fromisoformat(edge["at"]) == FIRST_EDGE
    assert daemon.passes("edge") == 1, "the three others are not replayed"
    assert datetime.fromisoformat(daemon.status()["nextEdge"]["time"]) > OPENS
    assert {row["desired"] for row in daemon.status()["demands"]} == {4}

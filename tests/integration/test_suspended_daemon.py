"""The daemon's process on an embedded cluster: after a suspend only the present counts.

SIGSTOP and SIGCONT stand in for a machine that sleeps: no thread runs and no timer fires over the edges of a schedule.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.controlplane.waiting import eventually
from tests.manifests import buffer, node_pool, pod_template, schedule

ROOT = Path(__file__).resolve().parents[2]
OPENS = datetime(2026, 11, 23, 9, tzinfo=UTC)
LEADS = ("1s", "2s", "3s")
FIRST_EDGE = OPENS - timedelta(seconds=3)
BEFORE = {**dict.fromkeys((f"ahead-by-{lead}" for lead in LEADS), 1), "rush": 1}


@dataclass(frozen=True)
class Running:
    process: subprocess.Popen[bytes]
    address: str
    log: Path

    def status(self) -> dict[str, Any]:
        with urllib.request.urlopen(f"http://{self.address}/status", timeout=60) as response:
            found: dict[str, Any] = json.loads(response.read())
            return found

    def logged(self, event: str) -> list[dict[str, Any]]:
        rows = [json.loads(line) for line in self.log.read_text().splitlines() if line.startswith("{")]
        return [row for row in rows if row["event"] == event]

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


@pytest.fixture
def run(repository: Path, tmp_path: Path) -> Iterator[Callable[..., Running]]:
    started = []

    def run(*words: str) -> Running:
        with socket.create_server(("127.0.0.1", 0)) as probe:
            address = f"127.0.0.1:{probe.getsockname()[1]}"
        environment = {
            **os.environ,
            "HEADROOM_LISTEN": address,
            "HEADROOM_LOGS_FORM": "json",
            "HEADROOM_PASSES_INTERVAL": "1h",
            "PYTHONPATH": str(ROOT),
        }
        command = [
            sys.executable,
            "-m",
            "reconciler",
            "run",
            "--repo",
            str(repository),
            "--cluster",
            "embedded",
            *words,
        ]
        log = tmp_path / "log"
        with log.open("wb") as file:
            process = subprocess.Popen(command, env=environment, stdout=file, stderr=file)
        started.append(process)
        return Running(process, address, log)

    yield run
    for process in started:
        process.send_signal(signal.SIGCONT)
        process.terminate()
        process.wait(timeout=30)


def asleep_before_the_first_edge(run: Callable[..., Running]) -> tuple[Running, Callable[[], datetime]]:
    """A daemon that had a pass and was then stopped, and a time that its clock has come to at least. A slower machine is given
    more time for that."""
    for seconds in (4, 12, 36, 108):
        begins = FIRST_EDGE - timedelta(seconds=seconds)
        launched = time.monotonic()
        daemon = run("--now", begins.isoformat())
        eventually(lambda: daemon.status()["demands"], within=60, what="the first pass", every=0.1)  # noqa: B023 - called here
        looked = time.monotonic()
        wanted, next_edge = daemon.wanted(), daemon.status()["nextEdge"]["time"]
        daemon.process.send_signal(signal.SIGSTOP)
        if begins + timedelta(seconds=time.monotonic() - launched) < FIRST_EDGE:
            assert (wanted, next_edge) == (BEFORE, FIRST_EDGE.strftime("%Y-%m-%dT%H:%M:%SZ"))
            return daemon, partial(_since, begins, looked)
        daemon.process.kill()
        daemon.process.wait(timeout=30)
    pytest.fail("too slow a machine for this test")


def _since(begins: datetime, looked: float) -> datetime:
    return begins + timedelta(seconds=time.monotonic() - looked)


def test_edges_that_pass_while_the_machine_sleeps_count_once_as_the_present(run: Callable[..., Running]) -> None:
    daemon, earliest = asleep_before_the_first_edge(run)
    assert daemon.logged("edge") == []
    eventually(lambda: earliest() > OPENS + timedelta(seconds=1), within=180, what="all four edges are past", every=0.2)
    daemon.process.send_signal(signal.SIGCONT)

    eventually(lambda: daemon.wanted() == dict.fromkeys(BEFORE, 4), within=60, what="the present counts", every=0.1)
    eventually(lambda: daemon.status()["settled"], within=60, what="it is settled", every=0.2)
    (edge,) = daemon.logged("edge")
    assert datetime.fromisoformat(edge["at"]) == FIRST_EDGE
    assert daemon.passes("edge") == 1, "the three others are not replayed"
    assert datetime.fromisoformat(daemon.status()["nextEdge"]["time"]) > OPENS
    assert {row["desired"] for row in daemon.status()["demands"]} == {4}

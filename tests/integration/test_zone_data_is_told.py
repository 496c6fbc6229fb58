"""Which time zone data is used: `--version`, findings and the status of a running daemon say the same, on one machine."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import pytest

from tests.controlplane.waiting import eventually
from tests.manifests import schedule
from tests.running_daemon import ROOT, RunningDaemon

SCHEDULE = schedule("shop", 2, "hours: 9", "hours: 17", default=1, zone="Europe/Berlni")


@pytest.fixture(params=["1999a", "2999a"])
def environment(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, str]:
    """A machine whose own data is older than the package's, or newer."""
    machine = tmp_path / "zones"
    (machine / "Europe").mkdir(parents=True)
    (machine / "Europe" / "Berlin").write_bytes((files("tzdata.zoneinfo") / "Europe" / "Berlin").read_bytes())
    (machine / "tzdata.zi").write_text(f"# version {request.param}\n")
    return {**os.environ, "PYTHONTZPATH": str(machine), "PYTHONPATH": str(ROOT), "COLUMNS": "300"}


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "capacity"
    folder.mkdir()
    (folder / "schedule.yaml").write_text(SCHEDULE)
    return folder


@pytest.fixture
def daemon(environment: dict[str, str], repository: Path, tmp_path: Path) -> Iterator[RunningDaemon]:
    words = ("--repo", str(repository), "--cluster", "embedded")
    with RunningDaemon(tmp_path, *words, environment=environment) as daemon:
        yield daemon


def headroom(environment: dict[str, str], *words: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "reconciler", *words], env=environment, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout


def test_version_findings_and_status_name_the_same_data(
    environment: dict[str, str], repository: Path, daemon: RunningDaemon
) -> None:
    used = headroom(environment, "--version")[1].splitlines()[1].removeprefix("time zone data ")
    assert used.startswith("2999a") is (environment["PYTHONTZPATH"] in used)
    assert f" time zone data is {used}\n" in headroom(environment, "validate", str(repository))[1]

    eventually(daemon.status, within=60, what="the daemon answers")
    assert f"  time zones  {used}\n" in headroom(environment, "status", "--address", daemon.address)[1]

"""The time zone data of the tzdata package is used everywhere, whatever the machine has."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path

import pytest

import reconciler
from reconciler.manifests.local_budgets import in_utc
from reconciler.manifests.repository.declared import read
from reconciler.manifests.schedule_findings import schedule_findings
from reconciler.model.errors import Invalid
from reconciler.zone_data import ZoneData, time_zone, zone_data, zone_names
from tests.manifests import schedule

SCHEDULE = schedule("shop", 2, "hours: 9", "hours: 17", default=1, zone="Europe/Berlin")
POOL = """\
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: general, annotations: {headroom.dev/timezone: Europe/Berlin}}
spec: {disruption: {budgets: [{nodes: "0", schedule: "0 9 * * *", duration: 8h}]}}
"""
PROGRAM = """
import sys
from datetime import UTC, datetime
from reconciler.manifests.repository.declared import read
from reconciler.manifests.local_budgets import in_utc
from reconciler.timetable.capacity_schedule import state_at
declared = read({"a.yaml": sys.stdin.buffer.read()})
now = datetime(2026, 1, 15, 12, tzinfo=UTC)
print(state_at(declared.schedules[0], now).next_value_time.hour)
print(in_utc(declared, now).pools[0].compiled.budgets[0].schedule)
"""


def machine_of(folder: Path, version: str) -> dict[str, str]:
    """The environment of a machine whose Berlin has the clocks of Tokyo, in data of this version."""
    tokyo = (files("tzdata.zoneinfo") / "Asia" / "Tokyo").read_bytes()
    (folder / "Europe").mkdir()
    (folder / "Europe" / "Berlin").write_bytes(tokyo)
    (folder / "tzdata.zi").write_text(f"# version {version}\n# This zic input file is in the public domain.\n")
    return {**os.environ, "PYTHONTZPATH": str(folder)}


def test_the_machines_data_decides_nothing(tmp_path: Path) -> None:
    environment = machine_of(tmp_path, "2999a")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        input=f"{POOL}{SCHEDULE}".encode(),
        env=environment,
        capture_output=True,
        check=True,
    )
    hour, schedule = done.stdout.decode().splitlines()
    assert hour == "16"
    assert schedule.startswith("0 8 ")
    told = subprocess.run(
        [sys.executable, "-m", "reconciler", "--version"], env=environment, capture_output=True, check=True, text=True
    )
    assert told.stdout.splitlines()[1] == f"time zone data {zone_data()}"


@pytest.mark.parametrize(
    ("version", "now", "is_old"),
    [
        ("2026f", datetime(2027, 6, 30, tzinfo=UTC), False),
        ("2026f", datetime(2027, 7, 1, tzinfo=UTC), True),
        ("2027a", datetime(2027, 7, 1, tzinfo=UTC), False),
        ("2025b", datetime(2027, 1, 1, tzinfo=UTC), True),
        ("", datetime(2026, 1, 1, tzinfo=UTC), True),
    ],
)
def test_data_is_old_once_a_newer_release_must_be_there(version: str, now: datetime, *, is_old: bool) -> None:
    assert ZoneData(version).is_old(now) is is_old


def test_local_times_from_old_data_are_a_finding() -> None:
    later = datetime(zone_data().year + 1, 7, 1, tzinfo=UTC)
    declared = read({"a.yaml": f"{POOL}{SCHEDULE}".encode()})
    (of_schedule,) = (item for item in schedule_findings(declared.schedules, later) if item.code == "old-zone-data")
    (of_pool,) = in_utc(declared, later).findings
    assert zone_data().version in of_schedule.message
    assert (of_schedule.path, of_pool.code) == ("spec.schedule.timezone", "old-zone-data")
    in_universal_time = read({"a.yaml": SCHEDULE.replace("Europe/Berlin", "UTC").encode()})
    assert schedule_findings(in_universal_time.schedules, later) == ()
    assert schedule_findings(declared.schedules, datetime(zone_data().year, 7, 1, tzinfo=UTC)) == ()


def test_every_name_is_a_zone() -> None:
    for name in sorted(zone_names()):
        assert time_zone(name).key == name


@pytest.mark.parametrize(
    "name", ["", ".", "..", "Europe", "Europe/Atlantis", "/etc/passwd", "../zones", "a\0b", "\ud800"]
)
def test_what_is_no_zone(name: str) -> None:
    with pytest.raises(Invalid, match="is not a time zone"):
        time_zone(name)


def test_no_time_zone_comes_from_elsewhere() -> None:
    """`ZoneInfo(name)` prefers the machine's data, however old."""
    package = Path(reconciler.__file__).parent
    sources = [path for path in package.rglob("*.py") if path.name != "zone_data.py"]
    assert sources
    assert [path.name for path in sources if "ZoneInfo(" in path.read_text()] == []

"""The time zone database in use: the machine's or the tzdata package's, whichever is newer.

`zoneinfo` itself prefers the machine's, however old. Governments change their clocks at short notice, and then an old
database opens windows an hour off. Every time zone of the product comes from here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, lru_cache
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from zoneinfo import TZPATH, ZoneInfo, available_timezones

from reconciler.model.errors import Invalid

_VERSION_FILES = ("tzdata.zi", "+VERSION")
"""Files in which a compiled database has its version: in a comment on the first line, or alone."""
_VERSION = re.compile(r"(?:# version )?([0-9]{4})([a-z]{0,2})", re.ASCII)
_LONGEST_LINE = 64
_PACKAGE = "tzdata"
_MONTH_OF_NEWS = 7


@dataclass(frozen=True, slots=True)
class ZoneData:
    """One database. version: such as `2026f`, "" if it is unknown. folder: "" for the tzdata package."""

    version: str
    folder: str = ""

    def __str__(self) -> str:
        """`2026f (tzdata package)` or `2026f (/usr/share/zoneinfo)`."""
        return f"{self.version or 'of an unknown version'} ({self.folder or 'tzdata package'})"

    @property
    def release(self) -> tuple[int, int, str]:
        """The sort key by time: the year, then the letters, where `za` follows `z`."""
        match = _VERSION.fullmatch(self.version)
        return (int(match[1]), len(match[2]), match[2]) if match is not None else (0, 0, "")

    def is_old(self, now: datetime) -> bool:
        """Whether a newer one must have been published: every year has had a release before July."""
        now = now.astimezone(UTC)
        return self.release[0] < (now.year if now.month >= _MONTH_OF_NEWS else now.year - 1)


def newest(found: Iterable[ZoneData]) -> ZoneData:
    """The newest; of two with the same version the first. Without any, the machine's database with an unknown version."""
    return max(found, key=lambda data: data.release, default=ZoneData("", "this machine"))


def databases() -> tuple[ZoneData, ...]:
    """The tzdata package's, and the machine's if it has one with a version."""
    found = (ZoneData(version, folder) for folder in TZPATH if (version := _version_in(Path(folder))))
    machine = next(found, None)
    return _packaged() if machine is None else (*_packaged(), machine)


def _version_in(folder: Path) -> str:
    for name in _VERSION_FILES:
        try:
            with (folder / name).open(encoding="ascii", errors="replace") as file:
                match = _VERSION.match(file.readline(_LONGEST_LINE))
        except OSError:
            continue
        if match is not None:
            return match[1] + match[2]
    return ""


def _packaged() -> tuple[ZoneData, ...]:
    try:
        return (ZoneData(str(import_module(_PACKAGE).IANA_VERSION)),)
    except ImportError:  # some distributions leave the package out and keep the machine's database current
        return ()


@cache
def zone_data() -> ZoneData:
    """The database in use, determined once, since it does not change during the process."""
    return newest(databases())


@lru_cache(maxsize=2048)
def time_zone(name: str) -> ZoneInfo:
    """The zone of an IANA name. Raises `Invalid` for an unknown name."""
    try:
        if not zone_data().folder and name in _packaged_names():
            with files(f"{_PACKAGE}.zoneinfo").joinpath(*name.split("/")).open("rb") as file:
                return ZoneInfo.from_file(file, key=name)
        # The machine's database is the newer one, or the only one with this name.
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        raise Invalid(f"{name!r} is not a time zone", hint="write an IANA name such as Europe/Berlin") from error


@cache
def zone_names() -> frozenset[str]:
    """Every IANA name of the machine's and the package's databases."""
    return frozenset(available_timezones()) | _packaged_names()


@cache
def _packaged_names() -> frozenset[str]:
    try:
        return frozenset((files(_PACKAGE) / "zones").read_text(encoding="ascii").split())
    except (ImportError, OSError):
        return frozenset()

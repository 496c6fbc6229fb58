"""The time zone database in use: that of the `tzdata` package, of which this process knows the version.

`zoneinfo` itself prefers the machine's, however old. Governments change their clocks at short notice, and then an old
database opens windows an hour off. Every time zone of the product comes from here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, lru_cache
from importlib import import_module
from importlib.resources import files
from zoneinfo import ZoneInfo

from reconciler.model.errors import Invalid

_YEAR = re.compile(r"[0-9]{4}", re.ASCII)
_PACKAGE = "tzdata"
_MONTH_OF_NEWS = 7


@dataclass(frozen=True, slots=True)
class ZoneData:
    """version: such as `2026f`."""

    version: str

    def __str__(self) -> str:
        """`2026f (tzdata package)`."""
        return f"{self.version} ({_PACKAGE} package)"

    @property
    def year(self) -> int:
        return int(match[0]) if (match := _YEAR.match(self.version)) else 0

    def is_old(self, now: datetime) -> bool:
        """Whether a newer one must have been published: every year has had a release before July."""
        now = now.astimezone(UTC)
        return self.year < (now.year if now.month >= _MONTH_OF_NEWS else now.year - 1)


@cache
def zone_data() -> ZoneData:
    """The database in use."""
    return ZoneData(str(import_module(_PACKAGE).IANA_VERSION))


@lru_cache(maxsize=2048)
def time_zone(name: str) -> ZoneInfo:
    """The zone of an IANA name. Raises `Invalid` for an unknown name."""
    if name not in zone_names():
        raise Invalid(f"{name!r} is not a time zone", hint="write an IANA name such as Europe/Berlin")
    with files(f"{_PACKAGE}.zoneinfo").joinpath(*name.split("/")).open("rb") as file:
        return ZoneInfo.from_file(file, key=name)


@cache
def zone_names() -> frozenset[str]:
    """Every IANA name of a place; `Factory` is for machines that nobody has set up."""
    return frozenset((files(_PACKAGE) / "zones").read_text(encoding="ascii").split()) - {"Factory"}

"""Quantities, resource lists and times as Kubernetes writes them, and durations as Go does.

Amounts are what kube-scheduler compares: CPU in millicores, everything else in whole units (bytes for memory). Each is
rounded up, as `Quantity.MilliValue` and `Quantity.Value` of Kubernetes' apimachinery do.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from functools import lru_cache

from reconciler.model.errors import Invalid

CPU = "cpu"
MEMORY = "memory"
PODS = "pods"
EPHEMERAL_STORAGE = "ephemeral-storage"

_MULTIPLIERS = {
    "n": Fraction(1, 10**9), "u": Fraction(1, 10**6), "m": Fraction(1, 1000), "": Fraction(1),
    "k": Fraction(10**3), "M": Fraction(10**6), "G": Fraction(10**9), "T": Fraction(10**12),
    "P": Fraction(10**15), "E": Fraction(10**18),
    "Ki": Fraction(2**10), "Mi": Fraction(2**20), "Gi": Fraction(2**30), "Ti": Fraction(2**40),
    "Pi": Fraction(2**50), "Ei": Fraction(2**60),
}  # fmt: skip
_QUANTITY = re.compile(
    r"(?P<sign>[+-]?)(?P<number>[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE](?P<exponent>[+-]?[0-9]{1,3})|(?P<suffix>[numkMGTPE]|[KMGTPE]i)?)"
)
_DECIMAL_STEPS = (("T", 10**12), ("G", 10**9), ("M", 10**6), ("k", 10**3))
_BINARY_STEPS = (("Ti", 2**40), ("Gi", 2**30), ("Mi", 2**20), ("Ki", 2**10))


_WHOLE = re.compile(r"[+-]?0*([0-9]{1,19})", re.ASCII)
_SIXTY_FOUR_BITS = 2**63


def whole_number(text: str) -> int | None:
    """The number that an optional sign and digits say, zeros before them too; None for other text, and for more than 64 bits hold.

    `int` raises for text of some thousand digits, takes long below that, and reads more than digits.
    """
    match = _WHOLE.fullmatch(text)
    if match is None:
        return None
    number = -int(match[1]) if text[0] == "-" else int(match[1])
    return number if -_SIXTY_FOUR_BITS <= number < _SIXTY_FOUR_BITS else None


_LONGEST = 100
"""The longest quantity, in characters. Nobody writes longer ones, and arithmetic with thousands of them is slow."""
_LARGEST = Fraction(2**63 - 1)
"""apimachinery caps quantities at this value: 9.2E."""


@lru_cache(maxsize=8192)
def _parse_text(text: str) -> Fraction:
    match = _QUANTITY.fullmatch(text) if len(text) <= _LONGEST else None
    if match is None:
        shown = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
        message = f"{shown!r} is not a quantity"
        raise Invalid(message, hint='write a number with a suffix, such as "500m", "2" or "1.5Gi"')
    value = Fraction(match["number"])
    value *= Fraction(10) ** int(match["exponent"]) if match["exponent"] else _MULTIPLIERS[match["suffix"] or ""]
    value = min(value, _LARGEST)
    return -value if match["sign"] == "-" else value


def _text_of(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        message = f"{value!r} is not a quantity"
        raise Invalid(message, hint='write a number with a suffix, such as "500m", "2" or "1.5Gi"')
    return value if isinstance(value, str) else repr(value)


def parse_quantity(value: object) -> Fraction:
    """The exact value of a quantity as written in YAML or JSON (`"500m"`, `2`, `1.5`), capped at 2⁶³ - 1. Raises `Invalid`."""
    return _parse_text(_text_of(value))


@lru_cache(maxsize=8192)
def _amount_of_text(resource: str, text: str) -> int:
    value = _parse_text(text)
    if resource == CPU:
        value *= 1000
    return -((-value.numerator) // value.denominator)


def amount_of(resource: str, value: object) -> int:
    """The integer amount of one resource: millicores for `cpu`, whole units otherwise, rounded up. Raises `Invalid`."""
    return _amount_of_text(resource, _text_of(value))


def format_amount(resource: str, amount: int) -> str:
    """An amount as the quantity a person would write: `"1500m"`, `"2"`, `"1536Mi"`; exact, never rounded."""
    if resource == CPU:
        return str(amount // 1000) if amount % 1000 == 0 else f"{amount}m"
    if _is_in_bytes(resource):
        for suffix, step in _BINARY_STEPS:
            if amount and amount % step == 0:
                return f"{amount // step}{suffix}"
    return str(amount)


def _is_in_bytes(resource: str) -> bool:
    return resource in {MEMORY, EPHEMERAL_STORAGE} or resource.startswith("hugepages-")


_MANY = 100_000


def readable_amount(resource: str, amount: int) -> str:
    """An amount for sentences: as `format_amount`, but above 100 CPUs in whole ones and tenths (`4,968.2`), and bytes by the suffix with
    the least number (`4G`, not `3906250Ki`)."""
    if resource == CPU and amount > _MANY:
        return f"{amount / 1000:,.1f}".removesuffix(".0")
    if amount and _is_in_bytes(resource):
        steps = (*_BINARY_STEPS, *_DECIMAL_STEPS, ("", 1))
        number, suffix = min((amount // step, suffix) for suffix, step in steps if amount % step == 0)
        return f"{number}{suffix}"
    return format_amount(resource, amount)


@dataclass(frozen=True, slots=True)
class Resources:
    """An immutable resource list. `amounts` is sorted by name without zeroes, so that equal lists are equal values."""

    amounts: tuple[tuple[str, int], ...] = ()

    @classmethod
    def of(cls, amounts: Mapping[str, int] | Iterable[tuple[str, int]]) -> Resources:
        """Sorted by name; amounts of zero are left out."""
        items = amounts.items() if isinstance(amounts, Mapping) else amounts
        return cls(tuple(sorted((name, amount) for name, amount in items if amount)))

    @classmethod
    def parse(cls, quantities: Mapping[str, object] | None) -> Resources:
        """From a Kubernetes resource list (`{"cpu": "500m"}`). Raises `Invalid` naming the resource."""
        amounts = {}
        for name, value in (quantities or {}).items():
            try:
                amounts[name] = amount_of(name, value)
            except Invalid as error:
                raise Invalid(f"resource {name}: {error.message}", hint=error.hint) from error
        return cls.of(amounts)

    def get(self, name: str) -> int:
        """The amount of one resource, 0 where it is not listed."""
        for key, amount in self.amounts:
            if key == name:
                return amount
        return 0

    def names(self) -> tuple[str, ...]:
        """The resources that are listed, sorted."""
        return tuple(name for name, _ in self.amounts)

    def __iter__(self) -> Iterator[tuple[str, int]]:
        return iter(self.amounts)

    def __bool__(self) -> bool:
        return bool(self.amounts)

    def __add__(self, other: Resources) -> Resources:
        if not other.amounts:
            return self
        total = dict(self.amounts)
        for name, amount in other.amounts:
            total[name] = total.get(name, 0) + amount
        return Resources.of(total)

    def __sub__(self, other: Resources) -> Resources:
        return self + other * -1

    def __mul__(self, count: int) -> Resources:
        return Resources.of([(name, amount * count) for name, amount in self.amounts])

    def at_least(self, other: Resources) -> Resources:
        """The larger of both, resource by resource."""
        return Resources.largest((self, other))

    def fits(self, room: Resources) -> bool:
        """Whether `room` has at least every amount above zero."""
        available = dict(room.amounts)
        return all(amount <= 0 or amount <= available.get(name, 0) for name, amount in self.amounts)

    def quantities(self) -> dict[str, str]:
        """As a Kubernetes resource list, in name order."""
        return {name: format_amount(name, amount) for name, amount in self.amounts}

    @staticmethod
    def least(lists: Iterable[Resources]) -> Resources:
        """The smallest amount of each resource; a list that does not name it has none."""
        every = list(lists)
        return Resources.of(
            (name, min(each.get(name) for each in every)) for name in {name for each in every for name, _ in each}
        )

    @staticmethod
    def largest(lists: Iterable[Resources]) -> Resources:
        """The largest amount of each resource."""
        largest: dict[str, int] = {}
        for resources in lists:
            for name, amount in resources.amounts:
                largest[name] = max(largest.get(name, 0), amount)
        return Resources.of(largest)

    @staticmethod
    def total(lists: Iterable[Resources]) -> Resources:
        """The sum of all lists."""
        total: dict[str, int] = {}
        for resources in lists:
            for name, amount in resources.amounts:
                total[name] = total.get(name, 0) + amount
        return Resources.of(total)


_UNITS = {"ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9}
"""Go's longest duration in nanoseconds, the unit it counts in."""
_LONGEST_DURATION = 2**63 - 1
_MOST_DIGITS = 19
"""A number with more digits exceeds the longest duration in any unit."""
_MOST_CHARACTERS = 200
"""Far longer than any duration that Go itself prints."""
_MOST_SHOWN = 40
ANY_DURATION = 'write hours, minutes and seconds, such as "720h" or "1h30m"'
_PART = re.compile(r"([0-9]+)(?:\.([0-9]+))?(ms|s|m|h)")
_NEGATIVE = re.compile(r"-[0-9]{1,9}(ms|s|m|h)")
_DAYS = re.compile(r"(?:([0-9]{1,3})w)?(?:([0-9]{1,4})d)?(?:([0-9]{1,5})h)?((?:[0-9]{1,5}m)?(?:[0-9]{1,5}s)?)")


def parse_duration(text: str) -> timedelta:
    """`"1h30m"` → 90 minutes; `"0"` is zero. Go has no unit for days: write 24h. Raises `Invalid`.

    More than 292 years is invalid too: Go's time.ParseDuration counts nanoseconds in 64 bits.
    """
    if text == "0":
        return timedelta(0)
    if len(text) > _MOST_CHARACTERS:
        raise _too_long(text)
    total = 0
    position = 0
    while part := _PART.match(text, position):
        total += _nanoseconds(text, part)
        position = part.end()
    if not text or position != len(text):
        raise Invalid(f"{text!r} is not a duration", hint=duration_hint(text) or ANY_DURATION)
    if total > _LONGEST_DURATION:
        raise _too_long(text)
    return timedelta(microseconds=total // 1000)


def duration_hint(text: str) -> str:
    """What to write for a negative duration, or one in days or weeks, which Go does not know: `write "24h"` for `1d`; else ""."""
    if _NEGATIVE.fullmatch(text):
        return f'write a duration of 0 or more, such as "{text[1:]}"'
    parts = _DAYS.fullmatch(text)
    if parts is None or not (parts[1] or parts[2]):
        return ""
    hours = 168 * int(parts[1] or 0) + 24 * int(parts[2] or 0) + int(parts[3] or 0)
    return f'write "{hours}h{parts[4]}"'


def _nanoseconds(text: str, part: re.Match[str]) -> int:
    whole, fraction, unit = part[1].lstrip("0"), (part[2] or "")[:_MOST_DIGITS], _UNITS[part[3]]
    if len(whole) > _MOST_DIGITS:
        raise _too_long(text)
    nanoseconds: int = int(whole or "0") * unit + int(fraction or "0") * unit // 10 ** len(fraction)
    return nanoseconds


def _too_long(text: str) -> Invalid:
    shown = text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"
    return Invalid(f"{shown!r} is too long a duration", hint="write at most 2562047h, which is 292 years")


_MOST_DOUBLINGS = 16
"""Of a second that is 18 hours."""


def doubled(first: timedelta, times: int, at_most: timedelta) -> timedelta:
    """A wait that doubles with each failure: the one after this many doublings."""
    delay: timedelta = min(first * (1 << min(max(0, times), _MOST_DOUBLINGS)), at_most)
    return delay


def time_text(moment: datetime) -> str:
    """RFC 3339 in UTC to the second, as Kubernetes writes times."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def time_of(text: object) -> datetime | None:
    """A time as Kubernetes writes it; None for anything else, such as a time without a zone in a snapshot."""
    try:
        moment = datetime.fromisoformat(text) if isinstance(text, str) and text else None
    except ValueError:
        return None
    return moment if moment is not None and moment.tzinfo is not None else None


def format_duration(duration: timedelta) -> str:
    """The shortest exact form, to the millisecond: `1h30m`, `1m30s` for 90 seconds, `0s` for zero."""
    milliseconds = round(duration / timedelta(milliseconds=1))
    parts = []
    for unit, length in (("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)):
        count, milliseconds = divmod(milliseconds, length)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"

"""Quantities, resource lists and durations, to the last digit."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.catalog.karpenter_metrics import parse_scrape
from reconciler.demand.size import declared_priority
from reconciler.manifests.budgets import allow_windows_of
from reconciler.manifests.documents.tree import resolve_plain
from reconciler.model.errors import Invalid
from reconciler.model.marks import PRIORITY_ANNOTATION
from reconciler.model.provisioning_requests import seconds_of
from reconciler.model.quantity import (
    Resources,
    amount_of,
    duration_hint,
    format_amount,
    format_duration,
    parse_duration,
    parse_quantity,
    readable_amount,
    whole_number,
)
from reconciler.model.requirements import Operator, Requirement
from reconciler.placement.requirements import values_of
from reconciler.plan.node_pools.disruption_budgets import limit_of
from reconciler.timetable.cron import parse_cron
from reconciler.web.server import parse_address


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("0", Fraction(0)),
        ("500m", Fraction(1, 2)),
        ("1.5Gi", Fraction(3, 2) * 2**30),
        (".5", Fraction(1, 2)),
        ("1e3", Fraction(1000)),
        ("1E", Fraction(10**18)),
        ("1E2", Fraction(100)),
        ("-3k", Fraction(-3000)),
        (2, Fraction(2)),
        (0.5, Fraction(1, 2)),
        ("100n", Fraction(1, 10**7)),
    ],
)
def test_quantities_are_exact(written: object, value: Fraction) -> None:
    assert parse_quantity(written) == value


@pytest.mark.parametrize("written", ["", "1 Gi", "Gi", "1GiB", "1e", "0x10", True, None, "١", "1_000", "1e9999"])
def test_what_is_not_a_quantity_is_refused_with_an_example(written: object) -> None:
    with pytest.raises(Invalid) as caught:
        parse_quantity(written)
    assert "500m" in caught.value.hint


def test_amounts_are_rounded_up_as_the_scheduler_does() -> None:
    assert amount_of("cpu", "1100u") == 2
    assert amount_of("memory", "100m") == 1
    assert amount_of("nvidia.com/gpu", 2) == 2


def test_a_bad_resource_list_names_the_resource() -> None:
    with pytest.raises(Invalid, match="resource memory"):
        Resources.parse({"cpu": "1", "memory": "1GB?"})


@given(st.integers(min_value=0, max_value=10**15), st.sampled_from(["cpu", "memory", "pods", "example.com/thing"]))
def test_formatting_loses_nothing(amount: int, resource: str) -> None:
    assert amount_of(resource, format_amount(resource, amount)) == amount


def test_equal_lists_are_equal_whatever_the_order_and_zeroes() -> None:
    assert Resources.of({"memory": 1, "cpu": 2, "pods": 0}) == Resources.of({"cpu": 2, "memory": 1})


def test_fits_ignores_what_is_not_asked_for() -> None:
    room = Resources.parse({"cpu": "1", "memory": "1Gi"})
    assert Resources.parse({"cpu": "1"}).fits(room)
    assert not Resources.parse({"cpu": "1001m"}).fits(room)
    assert not Resources.parse({"example.com/gpu": "1"}).fits(room)


@pytest.mark.parametrize(
    ("resource", "amount", "words"),
    [
        ("cpu", 1500, "1500m"),
        ("cpu", 99_500, "99500m"),
        ("cpu", 4_968_200, "4,968.2"),
        ("cpu", 10_000_000, "10,000"),
        ("memory", 1536 * 2**20, "1536Mi"),
        ("memory", 100 * 10**6, "100M"),
        ("memory", 4 * 10**9, "4G"),
        ("memory", 4 * 2**30, "4Gi"),
        ("memory", 1001, "1001"),
    ],
)
def test_amounts_in_sentences_are_short(resource: str, amount: int, words: str) -> None:
    assert readable_amount(resource, amount) == words


@pytest.mark.parametrize(
    ("written", "duration"),
    [
        ("720h", timedelta(hours=720)),
        ("1h30m", timedelta(minutes=90)),
        ("90s", timedelta(seconds=90)),
        ("1.5h", timedelta(minutes=90)),
        ("250ms", timedelta(milliseconds=250)),
        ("0", timedelta(0)),
    ],
)
def test_durations_as_go_writes_them(written: str, duration: timedelta) -> None:
    assert parse_duration(written) == duration


@pytest.mark.parametrize("written", ["", "1d", "5", "h", "1h 30m", "-1h", "1h!"])
def test_other_spellings_are_refused(written: str) -> None:
    with pytest.raises(Invalid, match="not a duration"):
        parse_duration(written)


@given(st.integers(min_value=0, max_value=10**9))
def test_formatting_a_duration_loses_nothing(milliseconds: int) -> None:
    duration = timedelta(milliseconds=milliseconds)
    assert parse_duration(format_duration(duration)) == duration


def test_the_longest_duration_is_go_s() -> None:
    """Go's time.ParseDuration counts nanoseconds in 64 bits: 2^63 - 1 of them."""
    assert parse_duration("2562047h47m16.854775807s") == timedelta(microseconds=(2**63 - 1) // 1000)
    with pytest.raises(Invalid, match="too long a duration") as caught:
        parse_duration("2562047h47m16.854775808s")
    assert "at most 2562047h" in caught.value.hint


@pytest.mark.parametrize("written", ["2562048h", "153722867281m", "9" * 22 + "h", "9" * 5000 + "s", "2562047h2562047h"])
def test_a_longer_one_is_refused_and_never_a_number_too_large(written: str) -> None:
    with pytest.raises(Invalid, match="too long a duration"):
        parse_duration(written)


def test_leading_zeros_are_no_length() -> None:
    assert parse_duration("0" * 30 + "1h") == timedelta(hours=1)


LONG = 5000
"""More digits than `int` reads."""
TEXTS = [
    template.format(number)
    for number in (
        "0" * LONG + "1", "1" + "0" * LONG, "9" * LONG, "-" + "9" * LONG, "+" + "0" * LONG, "-0", "+", "-", "", " 1", "1_0",
        "NaN", "nan", "inf", "-inf", "Infinity", "1e400", "1e-400", "1e999999999", "1." + "0" * LONG, "." + "9" * LONG,
        "0x" + "f" * LONG, "\N{ARABIC-INDIC DIGIT THREE}", "\N{SUPERSCRIPT TWO}", "1\n", "\x001",
        "9223372036854775808", "-9223372036854775809", "18446744073709551616",
    )
    for template in ("{}", "{}%", "{}h", "{}d", "{}Mi", "{}e5", "*/{}", "{} * * * *", "1-{} * * * *", "@every {}s", "h:{}")
]  # fmt: skip
READERS: dict[str, Callable[[str], object]] = {
    "quantity": parse_quantity,
    "duration": parse_duration,
    "hint of a duration": duration_hint,
    "cron": parse_cron,
    "nodes of a budget": lambda text: limit_of(text, 3),
    "bound of a requirement": lambda text: values_of(Requirement("cores", Operator.GT, (text,))).allows("4"),
    "label for a bound": lambda text: values_of(Requirement("cores", Operator.GT, ("3",))).allows(text),
    "requirement": lambda text: Requirement("cores", Operator.LT, (text,)).holds(text),
    "seconds_of": seconds_of,
    "priority": lambda text: declared_priority(((PRIORITY_ANNOTATION, text),)),
    "allow-windows": allow_windows_of,
    "YAML": resolve_plain,
    "address": parse_address,
    "metric": lambda text: parse_scrape(
        [f'karpenter_cloudprovider_instance_type_cpu_cores{{instance_type="m"}} {text}']
    ),
}


@pytest.mark.parametrize("reader", READERS)
def test_any_number_is_read_or_refused(reader: str) -> None:
    for text in TEXTS:
        with suppress(Invalid) if reader != "metric" else suppress(Invalid, ValueError):
            READERS[reader](text)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", 0),
        ("-0", 0),
        ("+007", 7),
        ("-12", -12),
        ("0" * LONG + "1", 1),
        ("9223372036854775807", 2**63 - 1),
        ("-9223372036854775808", -(2**63)),
        ("9223372036854775808", None),
        ("9" * LONG, None),
        ("1_0", None),
        (" 1", None),
        ("1\n", None),
        ("\N{ARABIC-INDIC DIGIT THREE}", None),
        ("", None),
        ("-", None),
    ],
)
def test_a_whole_number_is_digits_with_a_sign(text: str, number: int | None) -> None:
    assert whole_number(text) == number


def test_a_budget_of_one_node_with_5000_zeros_before_it_is_one_node() -> None:
    assert limit_of("0" * LONG + "1", 10) == 1
    assert limit_of("0" * LONG + "10%", 10) == 1

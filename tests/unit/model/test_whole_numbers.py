"""Numbers as people write them: whatever stands there is read, or refused as invalid, and never raises anything else."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pytest

from reconciler.catalog.karpenter_metrics import parse_scrape
from reconciler.demand.priorities import declared_priority
from reconciler.manifests.budgets import allow_windows_of
from reconciler.manifests.schedule_words import read_window
from reconciler.manifests.tree import resolve_plain
from reconciler.model.errors import Invalid
from reconciler.model.marks import PRIORITY_ANNOTATION
from reconciler.model.provisioning_requests import seconds_of
from reconciler.model.quantity import duration_hint, parse_duration, parse_quantity, whole_number
from reconciler.model.requirements import Operator, Requirement
from reconciler.placement.requirements import values_of
from reconciler.plan.node_pools.disruption_budgets import limit_of
from reconciler.timetable.cron import parse_cron
from reconciler.web.server import parse_address

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
    "words of a schedule": read_window,
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

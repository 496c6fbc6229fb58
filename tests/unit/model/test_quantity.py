from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.model.errors import Invalid
from reconciler.model.quantity import Resources, amount_of, format_amount, parse_quantity, readable_amount


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
        ("cpu", 10_000_000, "10000"),
        ("cpu", 99_999_984_100, "about 99,999,984"),
        ("cpu", 99_999_984_000, "99,999,984"),
        ("memory", 1536 * 2**20, "1536Mi"),
        ("memory", 64 * 2**40, "64Ti"),
        ("memory", 2_199_023_190_026 * 2**20, "about 2.0Ei"),
        ("memory", 20 * 2**40 + 1, "about 20.0Ti"),
        ("example.com/gpu", 2**50, str(2**50)),
    ],
)
def test_an_amount_that_no_node_has_is_rounded_for_a_sentence(resource: str, amount: int, words: str) -> None:
    assert readable_amount(resource, amount) == words

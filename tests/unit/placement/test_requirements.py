"""The label algebra agrees with kube-scheduler, value by value, absence included."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.model.requirements import Operator, Requirement
from reconciler.placement.checker.offerings import holds
from reconciler.placement.requirements import Requirements, Values, values_of

VALUES = ("a", "b", "1", "5", "9", "-3", "x1")
requirements = st.one_of(
    st.builds(
        Requirement,
        st.just("key"),
        st.sampled_from([Operator.IN, Operator.NOT_IN]),
        st.lists(st.sampled_from(VALUES), min_size=1, max_size=3, unique=True).map(tuple),
    ),
    st.builds(Requirement, st.just("key"), st.sampled_from([Operator.EXISTS, Operator.DOES_NOT_EXIST])),
    st.builds(
        Requirement,
        st.just("key"),
        st.sampled_from([Operator.GT, Operator.LT, Operator.GTE, Operator.LTE]),
        st.integers(-4, 10).map(lambda number: (str(number),)),
    ),
)


@given(requirements, st.sampled_from([*VALUES, None]))
def test_one_requirement_allows_what_the_scheduler_allows(requirement: Requirement, value: str | None) -> None:
    assert values_of(requirement).allows(value) == holds(requirement, value)


@given(st.lists(requirements, min_size=1, max_size=3), st.sampled_from([*VALUES, None]))
def test_several_together_allow_what_each_allows(written: list[Requirement], value: str | None) -> None:
    merged = Requirements.of(written).get("key")

    assert merged is not None
    assert merged.allows(value) == all(holds(requirement, value) for requirement in written)


@given(st.lists(requirements, min_size=1, max_size=3))
def test_the_order_of_requirements_does_not_matter(written: list[Requirement]) -> None:
    assert Requirements.of(written) == Requirements.of(written[::-1])


@given(st.lists(requirements, min_size=1, max_size=3))
def test_an_example_is_allowed_and_missing_only_when_no_value_is(written: list[Requirement]) -> None:
    values = Requirements.of(written).get("key")
    assert values is not None
    example = values.example()

    if example is not None:
        assert values.allows(example)
    else:
        assert not any(values.allows(value) for value in VALUES)


@given(st.lists(requirements, min_size=1, max_size=2), st.sampled_from(VALUES))
def test_written_out_again_it_allows_the_same_values(written: list[Requirement], value: str) -> None:
    values = Requirements.of(written).get("key")
    assert values is not None

    again = Requirements.of(values.requirements("key")).get("key")

    if not values.is_empty:
        assert again is not None
        assert again.allows(value) == values.allows(value)


@pytest.mark.parametrize(
    ("older", "stable"),
    [
        ("beta.kubernetes.io/arch", "kubernetes.io/arch"),
        ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"),
        ("beta.kubernetes.io/instance-type", "node.kubernetes.io/instance-type"),
    ],
)
def test_older_label_names_are_the_stable_ones_only_for_nodes_to_be_made(older: str, stable: str) -> None:
    written = [Requirement(older, Operator.IN, ("v",))]

    assert [key for key, _ in Requirements.of(written).entries] == [stable]
    assert [key for key, _ in Requirements.of(written, stable=False).entries] == [older]


def test_the_larger_min_values_counts() -> None:
    few = Values(frozenset("abc"), min_values=1)
    more = Values(frozenset("abc"), min_values=2)

    assert few.intersection(more).min_values == 2

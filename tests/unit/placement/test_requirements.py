"""The label algebra agrees with kube-scheduler, value by value, absence included."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.demand.combine import pending_demands
from reconciler.model.placement import Placement
from reconciler.model.pods import Pod
from reconciler.model.requirements import Operator, Requirement
from reconciler.model.view import ClusterView
from reconciler.placement.place import place
from reconciler.placement.problem import PlacementOptions, Problem
from reconciler.placement.requirements import Requirements, Values, values_of
from tests.builders import instance_type, node, node_pool, one_of, pod, shape

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
    assert values_of(requirement).allows(value) == requirement.holds(value)


@given(st.lists(requirements, min_size=1, max_size=3), st.sampled_from([*VALUES, None]))
def test_several_together_allow_what_each_allows(written: list[Requirement], value: str | None) -> None:
    merged = Requirements.of(written).get("key")

    assert merged is not None
    assert merged.allows(value) == all(requirement.holds(value) for requirement in written)


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
    written = [one_of(older, "v")]

    assert [key for key, _ in Requirements.of(written).entries] == [stable]
    assert [key for key, _ in Requirements.of(written, stable=False).entries] == [older]


def test_the_larger_min_values_counts() -> None:
    few = Values(frozenset("abc"), min_values=1)
    more = Values(frozenset("abc"), min_values=2)

    assert few.intersection(more).min_values == 2


# Pods that name a scheduler of their own: planned like all others, as Karpenter does it, and said.

ELSEWHERE = shape("1", scheduler_name="volcano")
SAID = ("pods of scheduler volcano are placed as kube-scheduler would do it",)


def planned(*pods: Pod, include_pending: bool = True) -> Placement:
    view = ClusterView(nodes=(node("a", cpu="1"),), pods=pods)
    return place(
        Problem(
            view,
            (node_pool(),),
            (instance_type(),),
            pending_demands(view, include_pending=include_pending),
            options=PlacementOptions(include_pending=include_pending),
        )
    )


def test_a_node_is_planned_for_pods_of_another_scheduler() -> None:
    placement = planned(pod("a", pod_shape=ELSEWHERE), pod("b", pod_shape=ELSEWHERE))
    assert sum(holding.count for item in placement.planned for holding in item.holdings) == 1
    assert placement.unplaced == ()
    assert placement.assumptions == SAID


def test_they_take_room_that_is_there_though_no_node_is_planned_for_them() -> None:
    placement = planned(pod("a", pod_shape=ELSEWHERE), include_pending=False)
    assert [item.node for item in placement.occupied] == ["a"]
    assert placement.assumptions == SAID


@pytest.mark.parametrize("include_pending", [False, True])
def test_nothing_is_said_of_pods_of_kube_scheduler(*, include_pending: bool) -> None:
    assert planned(pod("a", pod_shape=shape("1")), include_pending=include_pending).assumptions == ()

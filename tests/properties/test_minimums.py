"""What holds of pools with minValues and limits, whoever else wants their room."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from reconciler.model.nodes import INSTANCE_TYPE_LABEL
from reconciler.model.requirements import Operator, Requirement
from reconciler.model.view import ClusterView
from reconciler.placement.checker.violations import violations
from reconciler.placement.place import place
from reconciler.placement.problem import PlacementOptions, Problem
from tests.builders import demand, instance_type, node_pool, shape
from tests.unit.placement.worlds import apart

OVERHEAD = 0.1
"""CPUs of each type that no chunk gets."""


@given(
    st.sets(st.sampled_from([2, 3, 4, 6, 8, 16]), min_size=1),
    st.integers(1, 3),
    st.integers(1, 60),
    st.tuples(st.integers(1, 12), st.integers(1, 7)),
    st.tuples(st.integers(0, 12), st.integers(1, 4)),
    st.sampled_from([1, 2, 20]),
)
@example({2, 4, 8, 16}, 2, 24, (6, 1), (12, 1), 20)
@example({2, 4, 8, 16}, 2, 40, (6, 1), (12, 1), 20)
def test_as_many_chunks_of_high_priority_are_placed_as_there_is_room_for(
    sizes: set[int], minimum: int, limit: int, high: tuple[int, int], low: tuple[int, int], listed: int
) -> None:
    """Each on a node of its own, which counts as the largest of the smallest types that will do; whatever others want."""
    types = [
        instance_type(f"m{cpus:02}", cpu=str(cpus), memory=f"{4 * cpus}Gi", price=cpus / 20) for cpus in sorted(sizes)
    ]
    asked = Requirement(INSTANCE_TYPE_LABEL, Operator.EXISTS, (), minimum)
    pools = [node_pool(requirements=[asked], limits={"cpu": str(limit)})]
    demands = [
        apart(demand("high", count=high[0], pod_shape=shape(str(high[1]), "1Gi"), priority=1000)),
        apart(demand("low", count=low[0], pod_shape=shape(str(low[1]), "1Gi"))),
    ]
    options = PlacementOptions(instance_types=listed)

    placement = place(Problem(ClusterView(), pools, types, demands, options=options))

    holding = [cpus for cpus in sorted(sizes) if cpus - OVERHEAD >= high[1]]
    most = limit // holding[minimum - 1] if len(holding) >= minimum else 0
    assert sum(item.count for item in placement.unplaced if item.demand.name == "high") == max(0, high[0] - most)
    assert violations(Problem(ClusterView(), pools, types, demands), placement) == ()

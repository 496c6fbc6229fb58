"""A NodeClaim that had to wait for its pool was never made, so that it cannot have vanished."""

from datetime import UTC, datetime

from reconciler.model.declared import Declared
from reconciler.model.view import ClusterView, Inventory
from reconciler.placement.place import place
from reconciler.placement.problem import Problem
from reconciler.plan.facts import Facts
from reconciler.plan.launching.back_offs import LAUNCHES_KEY, launch_record, without_launches
from reconciler.plan.plan import make_plan
from tests.builders import demand, instance_type, node_pool

NOW = datetime(2026, 11, 21, tzinfo=UTC)


def test_what_was_not_asked_for_is_not_remembered() -> None:
    demands, types, pools = (demand(count=3),), (instance_type(),), (node_pool(),)
    placement = place(Problem(ClusterView(), pools, types, demands))
    plan = make_plan(
        Facts(NOW, effective=Declared(node_pools=pools), instance_types=types, demands=demands, placement=placement)
    )
    (creation,) = plan.node_claims.create
    assert creation.name in plan.memory[LAUNCHES_KEY]
    left = without_launches(plan.memory, [creation.name])
    assert LAUNCHES_KEY not in left
    record = launch_record(ClusterView(inventory=Inventory(memory=left)), NOW)
    assert record.vanished == {}
    assert launch_record(ClusterView(inventory=Inventory(memory=plan.memory)), NOW).vanished

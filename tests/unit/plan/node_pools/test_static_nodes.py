"""What static NodePools gain and lose by a plan: nodes, what they cost, which of them go, and which pods keep them. And which nodes count."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from reconciler.model.changes import Action, Plan, StaticPoolChange
from reconciler.model.declared import Declared, DeclaredManifest
from reconciler.model.findings import Finding
from reconciler.model.marks import PART_OF_LABEL
from reconciler.model.nodes import CAPACITY_TYPE_LABEL, DO_NOT_DISRUPT, INSTANCE_TYPE_LABEL, NodePool
from reconciler.model.pods import Pod, PodDisruptionBudget
from reconciler.model.refs import ObjectRef, SourcePosition
from reconciler.model.remembered import Inventory
from reconciler.model.requirements import Operator, Requirement, Taint
from reconciler.model.view import ClusterView, LiveObject
from reconciler.plan.bins import all_bins
from reconciler.plan.facts import Facts, PlanRules
from reconciler.plan.node_pools.disruption_budgets import PoolState, pool_state
from reconciler.plan.node_pools.static_pools import static_pool_findings
from reconciler.plan.plan import make_plan
from tests.builders import instance_type, manifest, node, node_pool, one_of, pod, selects, shape
from tests.unit.plan.worlds import APPLYSET, NOW, OWNER, claim, live, pool_node

# What static NodePools gain and lose by a plan: nodes, what they cost, and which of them go.

REF = ObjectRef("karpenter.sh", "NodePool", "", "reports")
CATALOG = (
    instance_type("c-2x", price=0.1, capacity_types=("on-demand", "spot")),
    instance_type("m-4x", price=0.2),
    instance_type("m-8x", price=0.4),
)
ON_DEMAND = one_of(CAPACITY_TYPE_LABEL, "on-demand")


def pool(replicas: int, **fields: Any) -> NodePool:
    return node_pool("reports", requirements=[ON_DEMAND], replicas=replicas, **fields)


def nodes(count: int, kind: str = "m-4x") -> tuple[Any, ...]:
    return tuple(node(f"reports-{number}", pool="reports", instance_type=kind) for number in range(count))


def document(replicas: int | None) -> dict[str, Any]:
    spec: dict[str, Any] = {"template": {"spec": {}}}
    return manifest(
        "karpenter.sh/v1", "NodePool", "reports", spec=spec if replicas is None else {**spec, "replicas": replicas}
    )


def there(replicas: int | None) -> dict[ObjectRef, LiveObject]:
    return {REF: live(REF, document(replicas), "spec.replicas")}


def plan(declared: int | None, view: ClusterView, typed: NodePool | None = None, **facts: Any) -> Plan:
    """declared: what Git, or the schedule that the pool follows, has for replicas; None: it is not declared."""
    manifests = () if declared is None else (DeclaredManifest(REF, document(declared), SourcePosition("pool.yaml", 1)),)
    return make_plan(
        Facts(
            NOW,
            view=view,
            repository=Declared(manifests=manifests),
            effective=Declared(node_pools=(typed or pool(declared or 0),)),
            instance_types=CATALOG,
            price_source="prices of a test",
            **facts,
        ),
        PlanRules(owner=OWNER),
    )


def per_hour(answer: Plan) -> tuple[float, float]:
    return round(answer.cost.per_hour_before, 6), round(answer.cost.per_hour_after, 6)


def admitting(*requirements: Requirement) -> NodePool:
    return node_pool("reports", requirements=requirements, replicas=1)


def there_with(replicas: int, count: int, *, deleting: bool = False) -> ClusterView:
    return ClusterView(nodes=tuple(replace(item, deleting=deleting) for item in nodes(count)), objects=there(replicas))


OF_ONE_TYPE = replace(pool(1), template=replace(pool(1).template, labels=((INSTANCE_TYPE_LABEL, "m-8x"),)))


@pytest.mark.parametrize(
    ("says", "declared", "view", "typed", "change"),
    [
        ("new nodes count as the cheapest type that the pool admits", 3, there_with(0, 0), None, (0, 3, "c-2x", 0.1)),
        ("a pool that is not there yet comes with its nodes", 2, ClusterView(), None, (0, 2, "c-2x", 0.1)),
        ("without requirements it is spot", 1, there_with(0, 0), admitting(), (0, 1, "c-2x", 0.05)),
        ("a type that is left out is not counted", 1, there_with(0, 0),
         admitting(Requirement(INSTANCE_TYPE_LABEL, Operator.NOT_IN, ("c-2x",))), (0, 1, "m-4x", 0.2)),
        ("no type has an opinion on a label of one's own", 1, there_with(0, 0),
         admitting(Requirement("example.com/team", Operator.EXISTS)), (0, 1, "c-2x", 0.05)),
        ("of what nobody sells the price is not known", 1, there_with(0, 0),
         admitting(one_of(CAPACITY_TYPE_LABEL, "reserved")), (0, 1, "", None)),
        ("template labels are requirements too", 1, there_with(0, 0), OF_ONE_TYPE, (0, 1, "m-8x", 0.4)),
        ("nodes on their way out are replaced", 1, there_with(1, 1, deleting=True), None, (0, 1, "c-2x", 0.1)),
        ("a limit of nodes lets some come", 5, there_with(2, 2), pool(5, limits={"nodes": "3"}), (2, 3, "c-2x", 0.1, 2)),
        ("a limit below takes nothing away", 5, there_with(2, 2), pool(5, limits={"nodes": "1"}), None),
        ("a pool that is not ready does not grow", 5, there_with(2, 2), pool(5, unready="no node class"), None),
        ("nor one that is being deleted", 5, there_with(2, 2), pool(5, deleting=True), None),
        ("what is as it is to be is not told", 2, there_with(2, 2), None, None),
    ],
)  # fmt: skip
def test_what_a_static_pool_gains(
    says: str, declared: int, view: ClusterView, typed: NodePool | None, change: tuple[Any, ...] | None
) -> None:
    found = plan(declared, view, typed).static_pools
    assert found == (() if change is None else (StaticPoolChange("reports", *change),)), says


def test_the_cost_has_new_nodes_and_says_as_what_they_are_counted() -> None:
    answer = plan(3, ClusterView(objects=there(0)))
    assert per_hour(answer) == (0, 0.3)
    assert answer.cost.assumptions[1:] == (
        "3 nodes of static NodePool reports will come, counted as c-2x each: the cheapest type that it admits",
    )
    assert per_hour(plan(2, there_with(2, 2))) == (0.4, 0.4)


def test_nodes_without_a_known_price_are_told_and_not_guessed() -> None:
    typed = node_pool("reports", requirements=[replace(ON_DEMAND, values=("reserved",))], replicas=1)
    answer = plan(1, ClusterView(objects=there(0)), typed)
    assert per_hour(answer) == (0, 0)
    assert answer.cost.assumptions[1].startswith("1 node of static NodePool reports will come, not counted")


def test_what_shrinks_costs_less_and_empty_nodes_go_first() -> None:
    busy, spare = node("a", pool="reports", instance_type="m-8x"), node("b", pool="reports", instance_type="m-4x")
    view = ClusterView(nodes=(busy, spare), pods=(pod("nightly", node="a"),), objects=there(2))
    answer = plan(1, view)
    assert answer.static_pools == (StaticPoolChange("reports", 2, 1),)
    assert per_hour(answer) == (0.6, 0.4)
    assert answer.cost.assumptions[1] == (
        "1 node of static NodePool reports will go, paid for until Karpenter has deleted it: empty ones are counted as"
        " going first"
    )


def test_a_pool_that_leaves_git_takes_its_nodes_with_it() -> None:
    ours = document(2)
    ours["metadata"] |= {"labels": {PART_OF_LABEL: APPLYSET}, "annotations": {"headroom.dev/prune": "true"}}
    inventory = Inventory(members=frozenset({REF}))
    view = ClusterView(nodes=nodes(2), objects={REF: live(REF, ours)}, inventory=inventory)
    answer = plan(None, view, pool(2))
    assert [change.action for change in answer.objects] == [Action.DELETE]
    assert answer.static_pools == (StaticPoolChange("reports", 2, 0),)
    assert per_hour(answer) == (0.4, 0)


def test_a_dynamic_pool_is_not_counted_though_git_would_have_it_static() -> None:
    """Karpenter refuses that change, so that nothing comes of it."""
    answer = plan(5, ClusterView(objects=there(None)), pool(5))
    assert "static-pool-change" in {finding.code for finding in answer.findings}
    assert answer.static_pools == ()
    assert per_hour(answer) == (0, 0)


# Static NodePools that are to shrink: which pods keep their nodes.

NODES = (node("a", pool="reports"), node("b", pool="reports"), node("c", pool="general"))
BUDGETS = (
    PodDisruptionBudget("shop", "queue", selects("queue"), allowed=0),
    PodDisruptionBudget("shop", "cache", selects("cache"), allowed=1),
)


def reports(replicas: int | None) -> NodePool:
    return node_pool("reports", replicas=replicas)


def kept(name: str, on: str, value: str = "true", *, owner_kind: str = "ReplicaSet") -> Pod:
    return pod(name, node=on, owner_kind=owner_kind, annotations=((DO_NOT_DISRUPT, value),))


def found(replicas: int | None, *pods: Pod) -> tuple[Finding, ...]:
    view = ClusterView(nodes=NODES, pods=pods, pod_disruption_budgets=BUDGETS)
    return static_pool_findings([reports(replicas), node_pool("general")], all_bins(view), view, NOW)


def test_the_pods_that_keep_more_nodes_than_it_is_to_have_are_named_with_their_nodes() -> None:
    (finding,) = found(0, kept("nightly", "a"), pod("web", node="b"))
    assert finding.code == "static-pool-blocked"
    assert str(finding.ref) == "NodePool/reports"
    assert "has 2, of which 1 cannot go" in finding.message
    assert "shop/nightly on a (do-not-disrupt)" in finding.message


@pytest.mark.parametrize(
    ("replicas", "pods"),
    [
        (1, (kept("nightly", "a"),)),  # the other node can go
        (2, (kept("one", "a"), kept("two", "b"))),  # none has to go
        (None, (kept("nightly", "a"),)),  # dynamic: Karpenter's own budgets and rules
        (0, (kept("elsewhere", "c"),)),
        (0, (pod("web", node="a"),)),
        (0, (kept("daemon", "a", owner_kind="DaemonSet"),)),
        (0, (kept("nightly", "a", "false"),)),
    ],
)
def test_nothing_is_said_where_nothing_is_in_the_way(replicas: int | None, pods: tuple[Pod, ...]) -> None:
    assert found(replicas, *pods) == ()


def test_a_duration_keeps_the_node_for_so_long() -> None:
    for minutes, findings in ((29, 1), (30, 0)):
        item = replace(kept("nightly", "a", "30m"), created=NOW - timedelta(minutes=minutes))
        assert len(found(0, item)) == findings


def test_a_spent_pod_disruption_budget_keeps_a_node_and_one_with_room_does_not() -> None:
    def of(app: str, namespace: str = "shop") -> Pod:
        return pod(app, namespace=namespace, node="a", pod_shape=shape(namespace=namespace, labels={"app": app}))

    (finding,) = found(0, of("queue"), of("cache"))
    assert finding.message.endswith("there: shop/queue on a (PodDisruptionBudget queue)")
    assert found(0, of("cache"), of("queue", namespace="other")) == ()


# Of any NodePool: which nodes a disruption budget is of.


def test_which_nodes_count() -> None:
    disrupted = Taint("karpenter.sh/disrupted", "", "NoSchedule")
    view = ClusterView(
        nodes=(
            pool_node("a"),
            pool_node("b", ready=False),
            pool_node("c", taints=[disrupted], ready=False),
            pool_node("d"),
            pool_node("e"),
            node("f", labels={"karpenter.sh/initialized": "false"}),
            pool_node("g", pool="other"),
            pool_node("unmanaged"),
        ),
        node_claims=(
            *(claim(f"claim-{name}", node_name=name) for name in "abcf"),
            claim("claim-d", node_name="d", deleting=True),
            claim("claim-e", node_name="e", deleting=True, conditions={"InstanceTerminating": "True"}),
            claim("claim-g", node_name="g", pool="other"),
            claim("on-its-way", node_name=None),
        ),
    )
    assert pool_state("general", all_bins(view)) == PoolState(total=4, disrupting=2, not_ready=1)

"""Demand, placement and plan together: passes settle, capacity appears once, is used, refilled and handed back."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.demand.combine import demands
from reconciler.demand.dialect import Dialect
from reconciler.model.buffers import Buffer
from reconciler.model.changes import Plan
from reconciler.model.declared import Declared
from reconciler.model.nodes import HELD_ANNOTATION, PLACEHOLDER_LABEL, InstanceType, NodeClaim, NodePool
from reconciler.model.pods import Pod, Workload
from reconciler.model.requirements import Operator, Requirement
from reconciler.model.view import ClusterView
from reconciler.placement.place import place
from reconciler.placement.problem import Problem
from reconciler.plan.facts import Facts, PlanRules
from reconciler.plan.launching.back_offs import launch_record
from reconciler.plan.launching.caps import PlanCaps
from reconciler.plan.plan import make_plan
from tests.builders import buffer, deployment, instance_type, node, node_pool, pod, shape
from tests.unit.plan.worlds import NOW, OWNER, carried_out

CATALOG = (
    instance_type("m-2x", cpu="2", memory="8Gi", price=0.1),
    instance_type("m-4x", cpu="4", memory="16Gi", price=0.2),
    instance_type("m-8x", cpu="8", memory="32Gi", price=0.4),
)
POOLS = (node_pool("general", requirements=[Requirement("karpenter.sh/capacity-type", Operator.IN, ("on-demand",))]),)
SIZES = {"small": ("500m", "1Gi"), "large": ("1500m", "2Gi")}


@dataclass(frozen=True)
class Relaxation:
    """What is declared: buffers over two Deployments."""

    buffers: tuple[Buffer, ...]
    workloads: tuple[Workload, ...]


def wish(*sizes: tuple[str, int]) -> Relaxation:
    return Relaxation(
        tuple(buffer(f"b{index}", target=name, replicas=count) for index, (name, count) in enumerate(sizes)),
        tuple(deployment(name, pod_shape=shape(*size, labels={"app": name})) for name, size in SIZES.items()),
    )


def plan_for(view: ClusterView, wanted: Relaxation, pools: tuple[NodePool, ...] = POOLS) -> Plan:
    declared = Declared(buffers=wanted.buffers, workloads=wanted.workloads, node_pools=pools)
    asked, findings = demands(declared, view, dialect=Dialect.KARPENTER)
    return make_plan(
        Facts(
            NOW,
            view=view,
            effective=declared,
            launches=launch_record(view, NOW),
            demands=asked,
            placement=place(Problem(view, pools, CATALOG, asked)),
            instance_types=CATALOG,
            findings=findings,
        ),
        PlanRules(caps=PlanCaps(new_nodes_per_pass=0), owner=OWNER),
    )


def launched(view: ClusterView) -> ClusterView:
    """Every NodeClaim on its way becomes a node of its cheapest type, marked as the NodeClaim is."""
    nodes, claims = list(view.nodes), []
    for item in view.node_claims:
        if item.node_name is not None:
            claims.append(item)
            continue
        kind = _type_of(item)
        there = node(
            f"node-of-{item.name}",
            instance_type=kind.name,
            annotations=dict(item.annotations),
            labels={PLACEHOLDER_LABEL: "true"},
        )
        nodes.append(replace(there, allocatable=kind.allocatable, capacity=kind.capacity))
        conditions = tuple((name, "True") for name in ("Initialized", "Launched", "Registered"))
        claims.append(replace(item, node_name=there.name, provider_id=there.provider_id, conditions=conditions))
    return replace(
        view,
        nodes=tuple(sorted(nodes, key=lambda each: each.name)),
        node_claims=tuple(sorted(claims, key=lambda each: each.name)),
    )


def _type_of(item: NodeClaim) -> InstanceType:
    names = next(need.values for need in item.requirements if need.key == "node.kubernetes.io/instance-type")
    return min((kind for kind in CATALOG if kind.name in names), key=lambda kind: kind.offerings[0].price)


def with_pods(view: ClusterView, *pods: Pod) -> ClusterView:
    return replace(view, pods=tuple(sorted((*view.pods, *pods), key=lambda each: (each.namespace, each.name))))


def bound_where_chunks_are(plan: Plan, wanted: Relaxation) -> list[Pod]:
    """Real pods of the workloads, each where a chunk of it is held."""
    shapes = {item.ref.name: item.shape for item in wanted.workloads}
    targets = {item.ref: item.target.name for item in wanted.buffers if item.target is not None}
    pods = []
    for place_of in plan.occupied:
        for holding in place_of.holdings:
            name = targets[holding.demand]
            pods += [
                pod(f"{name}-{place_of.node}-{holding.demand.name}-{index}", node=place_of.node, pod_shape=shapes[name])
                for index in range(holding.count)
            ]
    return pods


wishes = st.lists(st.tuples(st.sampled_from(sorted(SIZES)), st.integers(0, 12)), min_size=1, max_size=3).map(
    lambda sizes: wish(*sizes)
)
clusters = st.lists(st.integers(0, 7), max_size=4).map(
    lambda loads: ClusterView(
        nodes=tuple(node(f"old-{index}") for index in range(len(loads))),
        pods=tuple(
            pod(f"load-{index}-{number}", node=f"old-{index}", pod_shape=shape("500m", "512Mi"))
            for index, load in enumerate(loads)
            for number in range(load)
        ),
    )
)


MOST_PASSES = 6


def settled(view: ClusterView, wanted: Relaxation) -> ClusterView:
    """After as many passes as it takes; each NodeClaim becomes a node between one and the next."""
    for _ in range(MOST_PASSES):
        answer = plan_for(view, wanted)
        if not answer.has_changes:
            return view
        view = launched(carried_out(view, answer))
    raise AssertionError(f"still changing after {MOST_PASSES} passes")


@settings(max_examples=25, deadline=None)
@given(st.sampled_from(sorted(SIZES)), st.integers(0, 30), clusters)
def test_the_capacity_of_a_buffer_is_made_once_and_then_nothing_changes(
    name: str, count: int, view: ClusterView
) -> None:
    wanted = wish((name, count))
    first = plan_for(view, wanted)
    assert sum(outcome.on_existing + outcome.on_new for outcome in first.demands) == count
    on_its_way = carried_out(view, first)
    assert plan_for(on_its_way, wanted).node_claims.create == ()
    assert plan_for(launched(on_its_way), wanted).node_claims.create == ()


@settings(max_examples=25, deadline=None)
@given(wishes, clusters)
def test_passes_settle_with_every_chunk_on_a_node_that_is_there(wanted: Relaxation, view: ClusterView) -> None:
    answer = plan_for(settled(view, wanted), wanted)
    assert all(outcome.on_existing == outcome.demand.desired for outcome in answer.demands)
    assert answer.cost.per_hour_after == answer.cost.per_hour_before


@settings(max_examples=25, deadline=None)
@given(wishes, clusters)
def test_used_capacity_is_refilled_and_an_undeclared_buffer_handed_back(wanted: Relaxation, view: ClusterView) -> None:
    there = settled(view, wanted)
    used = with_pods(there, *bound_where_chunks_are(plan_for(there, wanted), wanted))
    refilled = settled(used, wanted)
    answer = plan_for(refilled, wanted)
    assert all(outcome.on_existing == outcome.demand.desired for outcome in answer.demands)
    nothing = replace(wanted, buffers=())
    back = carried_out(refilled, plan_for(refilled, nothing))
    assert all(item.annotation(HELD_ANNOTATION) is None for item in back.nodes)
    assert all(item.annotation(HELD_ANNOTATION) is None for item in back.node_claims)
    assert not plan_for(back, nothing).has_changes


@settings(max_examples=25, deadline=None)
@given(wishes, clusters, st.integers(0, 2), st.integers(1, 4))
def test_a_buffer_that_grows_a_little_needs_few_new_nodes(
    wanted: Relaxation, view: ClusterView, which: int, more: int
) -> None:
    there = settled(view, wanted)
    index = which % len(wanted.buffers)
    grown = replace(wanted.buffers[index], replicas=(wanted.buffers[index].replicas or 0) + more)
    buffers = tuple(grown if number == index else item for number, item in enumerate(wanted.buffers))
    assert len(plan_for(there, replace(wanted, buffers=buffers)).node_claims.create) <= more

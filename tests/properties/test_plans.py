"""Plans do not flap, and do not depend on the order in which things are listed."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import TypeVar

from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.model.changes import Plan
from reconciler.model.declared import Declared, DeclaredManifest
from reconciler.model.nodes import DO_NOT_DISRUPT, HELD_ANNOTATION
from reconciler.model.placement import Holding, OccupiedBin, Placement
from reconciler.model.refs import ObjectRef, SourcePosition
from reconciler.model.rules import ALL_REMOVALS, Caps, PlacementRules
from reconciler.model.view import ClusterView, LiveObject
from reconciler.plan.facts import Facts, PlanRules
from reconciler.plan.launching.back_offs import launch_record
from reconciler.plan.plan import make_plan
from tests.builders import buffer_ref, demand, instance_type, node_pool, pod
from tests.unit.plan.worlds import HELD, NOW, OWNER, carried_out, claim, planned, pool_node, settled

T = TypeVar("T")

marks = st.sampled_from([{}, HELD, {DO_NOT_DISRUPT: "true"}, {HELD_ANNOTATION: "true"}])


def _holdings(counts: tuple[int, int]) -> tuple[Holding, ...]:
    return tuple(Holding(buffer_ref(name), 0, count) for name, count in zip("ab", counts, strict=True) if count)


holdings = st.tuples(st.integers(0, 3), st.integers(0, 3)).map(_holdings)
NEVER = node_pool("never", consolidate_after=None, budgets=())
POOLS = (node_pool("general"), NEVER)


@dataclass(frozen=True)
class World:
    view: ClusterView
    placement: Placement
    declared: Declared


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """Nodes and NodeClaims held, half held, protected by a person or free; some occupied, some in use; nodes to be made;
    objects that are missing, the same, changed, or no longer declared."""
    nodes, claims, pods, places = [], [], [], []
    for index in range(draw(st.integers(0, 5))):
        pool, name = draw(st.sampled_from(["general", "never"])), f"node-{index}"
        nodes.append(pool_node(name, pool=pool, annotations=draw(marks), ready=draw(st.booleans())))
        if draw(st.booleans()):
            claims.append(claim(f"claim-{index}", node_name=name, pool=pool, annotations=draw(marks)))
        if draw(st.booleans()):
            pods.append(pod(f"pod-{index}", node=name))
        held = draw(holdings)
        places += [OccupiedBin(name, None, held)] if held else []
    for index in range(draw(st.integers(0, 3))):
        name = f"way-{index}"
        claims.append(claim(name, node_name=None, pool="general", annotations=draw(marks)))
        held = draw(holdings)
        places += [OccupiedBin(None, name, held)] if held else []
    new = [planned(*held) for held in draw(st.lists(holdings.filter(bool), max_size=4))]
    objects, manifests, members = {}, [], []
    for index in range(draw(st.integers(0, 4))):
        ref = buffer_ref(f"object-{index}")
        state = draw(st.sampled_from(["new", "same", "changed", "undeclared"]))
        if state != "new":
            there = _applied(ref, 1 if state == "changed" else 3)
            objects[ref] = there
            members.append(ref)
        if state != "undeclared":
            manifests.append(_document(ref, 3))
    view = ClusterView(nodes=tuple(nodes), node_claims=tuple(claims), pods=tuple(pods), objects=objects)
    view = replace(view, inventory=replace(view.inventory, members=frozenset(members)))
    return World(view, Placement(tuple(places), tuple(new)), Declared(manifests=tuple(manifests)))


def _document(ref: ObjectRef, replicas: int) -> DeclaredManifest:
    body = {"apiVersion": "autoscaling.x-k8s.io/v1beta1", "kind": ref.kind, "spec": {"replicas": replicas}}
    return DeclaredManifest(ref, body, SourcePosition("buffers.yaml", 1))


def _applied(ref: ObjectRef, replicas: int) -> LiveObject:
    first = make_plan(Facts(NOW, repository=Declared(manifests=(_document(ref, replicas),))), PlanRules(owner=OWNER))
    return carried_out(ClusterView(), first).objects[ref]


def plan(world: World, caps: Caps | None = None) -> Plan:
    return make_plan(
        Facts(
            NOW,
            view=world.view,
            launches=launch_record(world.view, NOW, PlacementRules()),
            repository=world.declared,
            effective=Declared(node_pools=POOLS),
            demands=(demand("a"), demand("b")),
            placement=world.placement,
            instance_types=(instance_type(),),
        ),
        PlanRules(caps=caps or Caps(prune_share=ALL_REMOVALS), owner=OWNER),
    )


@settings(max_examples=30, deadline=None)
@given(worlds())
def test_a_plan_that_was_carried_out_leaves_nothing_to_do(world: World) -> None:
    first = plan(world)
    after = replace(world, view=carried_out(world.view, first), placement=settled(world.placement, first))
    second = plan(after)
    assert second.node_claims == type(second.node_claims)()
    assert second.objects == ()
    third = plan(replace(after, view=carried_out(after.view, second)))
    assert third.records == second.records


@settings(max_examples=30, deadline=None)
@given(worlds(), st.randoms(use_true_random=False))
def test_the_order_of_things_does_not_matter(world: World, chance: random.Random) -> None:
    def shuffled(items: tuple[T, ...]) -> tuple[T, ...]:
        return tuple(chance.sample(items, len(items)))

    view = world.view
    other = World(
        replace(
            view,
            nodes=shuffled(view.nodes),
            node_claims=shuffled(view.node_claims),
            pods=shuffled(view.pods),
            objects=dict(shuffled(tuple(view.objects.items()))),
        ),
        replace(world.placement, occupied=shuffled(world.placement.occupied)),
        Declared(manifests=shuffled(world.declared.manifests)),
    )
    one, two = plan(world), plan(other)
    assert replace(one, occupied=()) == replace(two, occupied=())

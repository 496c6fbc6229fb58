"""The checker, which shares nothing with kube-scheduler's model, agrees with it about orders of pods."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings

from reconciler.model.nodes import Node
from reconciler.model.pods import HostPort, Pod, PodAffinityTerm, PodShape, TopologySpread
from reconciler.model.requirements import LabelSelector
from reconciler.placement.place import place
from reconciler.placement.scheduler.model import PodKind, SchedulerModel
from reconciler.placement.surge.rehearsal import Rehearsal
from reconciler.placement.surge.standing import running_pods, standing_nodes
from tests.builders import node, shape
from tests.properties.scheduling_worlds import SchedulingWorld, scheduling_worlds
from tests.properties.surge_worlds import surge_world
from tests.properties.test_surge import names_of, problem_of
from tests.properties.wide_worlds import NAMESPACES

Namespaces = Mapping[str, Mapping[str, str]]
_BLOCKING = frozenset({"NoSchedule", "NoExecute"})
_ANY_ADDRESS = frozenset({"", "0.0.0.0"})


@dataclass(slots=True)
class _Stand:
    """A node with the shapes of the pods on it. going: those that are being deleted."""

    node: Node
    labels: Mapping[str, str]
    shapes: list[PodShape] = field(default_factory=list)
    going: list[PodShape] = field(default_factory=list)

    @property
    def everybody(self) -> Iterator[PodShape]:
        yield from self.shapes
        yield from self.going


def order_violations(
    nodes: Iterable[Node], pods: Iterable[Pod], namespaces: Namespaces, order: Sequence[tuple[PodShape, str]]
) -> tuple[str, ...]:
    """order: the shape of each pod that comes, with the name of its node, "" where it waits. One sentence for each that is wrong.

    A pod that no node takes at its turn is tried again later, as kube-scheduler does. Others that it wants to be beside may have come then."""
    stands = {node.name: _Stand(node, dict(node.labels)) for node in nodes}
    for pod in pods:
        if pod.node_name in stands and not pod.is_finished:
            there = stands[pod.node_name]
            (there.going if pod.deleting else there.shapes).append(pod.shape)
    everywhere = list(stands.values())
    coming = [(number, comer, name) for number, (comer, name) in enumerate(order) if name]
    before = len(coming) + 1
    while coming and len(coming) < before:
        before, later = len(coming), []
        for number, comer, name in coming:
            if name in stands and _takes(stands[name], comer, everywhere, namespaces):
                stands[name].shapes.append(comer)
            else:
                later.append((number, comer, name))
        coming = later
    found = [f"pod {number} is bound to {name}, which does not take it" for number, _, name in coming]
    for number, (comer, name) in enumerate(order):
        able = [] if name else [item.node.name for item in everywhere if _takes(item, comer, everywhere, namespaces)]
        if able:
            found.append(f"pod {number} waits, and {able[0]} takes it")
    return tuple(found)


def _takes(stand: _Stand, shape: PodShape, everywhere: Sequence[_Stand], namespaces: Namespaces) -> bool:
    return (
        _on_its_own(stand, shape)
        and all(_spreads(stand, shape, rule, everywhere) for rule in shape.topology_spread)
        and _is_beside(stand, shape, everywhere, namespaces)
        and _is_apart(stand, shape, everywhere, namespaces)
    )


def _on_its_own(stand: _Stand, shape: PodShape) -> bool:
    """NodeUnschedulable, NodeAffinity, TaintToleration, NodePorts and NodeResourcesFit."""
    node = stand.node
    if not node.ready or node.deleting or node.unschedulable or not shape.selects(stand.labels, node.name):
        return False
    if not _tolerates(shape, node):
        return False
    if any(_clash(own, other) for item in stand.everybody for other in item.host_ports for own in shape.host_ports):
        return False
    for name, amount in shape.requests:
        taken = sum(item.requests.get(name) for item in stand.everybody)
        if amount > 0 and taken + amount > node.allocatable.get(name):
            return False
    return True


def _tolerates(shape: PodShape, node: Node) -> bool:
    return all(
        any(item.tolerates(taint) for item in shape.tolerations) for taint in node.taints if taint.effect in _BLOCKING
    )


def _clash(one: HostPort, other: HostPort) -> bool:
    if (one.port, one.protocol) != (other.port, other.protocol):
        return False
    return one.address == other.address or bool(_ANY_ADDRESS & {one.address, other.address})


def _spreads(stand: _Stand, shape: PodShape, rule: TopologySpread, everywhere: Sequence[_Stand]) -> bool:
    if rule.when_unsatisfiable != "DoNotSchedule":
        return True
    keys = {item.topology_key for item in shape.topology_spread if item.when_unsatisfiable == "DoNotSchedule"}
    key = rule.topology_key
    if key not in stand.labels:
        return False
    counts: dict[str, int] = {}
    for item in everywhere:
        if not keys <= item.labels.keys():
            continue
        if rule.node_affinity_policy == "Honor" and not shape.selects(item.labels, item.node.name):
            continue
        if rule.node_taints_policy == "Honor" and not _tolerates(shape, item.node):
            continue
        counted = sum(_counts(rule, shape, other) for other in item.shapes)
        counts[item.labels[key]] = counts.get(item.labels[key], 0) + counted
    least = min(counts.values(), default=0) if len(counts) >= (rule.min_domains or 0) else 0
    return counts.get(stand.labels[key], 0) + _counts(rule, shape, shape) - least <= rule.max_skew


def _counts(rule: TopologySpread, shape: PodShape, other: PodShape) -> bool:
    selector = rule.selector
    if selector is None or other.namespace != shape.namespace or not (selector.match_labels or selector.expressions):
        return False
    return selector.matches(dict(other.labels)) and _same(rule.match_label_keys, shape, other)


def _same(keys: Iterable[str], shape: PodShape, other: PodShape) -> bool:
    own, theirs = dict(shape.labels), dict(other.labels)
    return all(theirs.get(key) == own[key] for key in keys if key in own)


def _is_beside(stand: _Stand, shape: PodShape, everywhere: Sequence[_Stand], namespaces: Namespaces) -> bool:
    terms = shape.pod_affinity
    if any(term.topology_key not in stand.labels for term in terms):
        return False

    def wanted(other: PodShape) -> bool:
        return all(_meant(term, shape, other, namespaces) for term in terms)

    there = [item.labels for item in everywhere if any(map(wanted, item.everybody))]
    if all(any(labels.get(term.topology_key) == stand.labels[term.topology_key] for labels in there) for term in terms):
        return True
    return wanted(shape) and not any(term.topology_key in labels for term in terms for labels in there)


def _is_apart(stand: _Stand, shape: PodShape, everywhere: Sequence[_Stand], namespaces: Namespaces) -> bool:
    """Both ways: it keeps off others, and others keep it off."""
    for item in everywhere:
        for other in item.everybody:
            pairs = ((shape, other, shape.pod_anti_affinity), (other, shape, other.pod_anti_affinity))
            for owner, target, terms in pairs:
                for term in terms:
                    value = stand.labels.get(term.topology_key)
                    is_near = value is not None and item.labels.get(term.topology_key) == value
                    if is_near and _meant(term, owner, target, namespaces):
                        return False
    return True


def _meant(term: PodAffinityTerm, owner: PodShape, other: PodShape, namespaces: Namespaces) -> bool:
    selector: LabelSelector | None = term.selector
    if selector is None or not selector.matches(dict(other.labels)):
        return False
    named = term.namespaces or (() if term.namespace_selector is not None else (owner.namespace,))
    by_selector = term.namespace_selector is not None and term.namespace_selector.matches(
        namespaces.get(other.namespace, {})
    )
    own, theirs = dict(owner.labels), dict(other.labels)
    unlike = all(theirs.get(key) != own[key] for key in term.mismatch_label_keys if key in own)
    return (other.namespace in named or by_selector) and _same(term.match_label_keys, owner, other) and unlike


@settings(max_examples=40, deadline=None)
@given(world=scheduling_worlds())
def test_the_model_binds_where_the_checker_allows(world: SchedulingWorld) -> None:
    model = SchedulerModel(world.nodes, world.pods, world.kinds, NAMESPACES)
    rows = model.schedule(world.order).tolist()
    bound = [
        (world.kinds[kind].shape, model.nodes[row].name)
        for kind, row in zip(world.order, rows, strict=True)
        if row >= 0
    ]
    assert order_violations(world.nodes, world.pods, NAMESPACES, bound) == ()


@settings(max_examples=40, deadline=None)
@given(world=scheduling_worlds())
def test_who_always_finds_room_never_waits(world: SchedulingWorld) -> None:
    model = SchedulerModel(world.nodes, world.pods, world.kinds, NAMESPACES)
    sure = model.always_bound(np.bincount(world.order, minlength=len(world.kinds)))
    rows = model.schedule(world.order).tolist()
    assert not [kind for kind, row in zip(world.order, rows, strict=True) if row < 0 and sure[kind]]


def test_a_pod_always_finds_room_where_all_that_comes_cannot_fill_the_nodes() -> None:
    kinds = [PodKind(shape("1")), PodKind(shape("2"))]
    model = SchedulerModel([node(f"node-{number}", cpu="4") for number in range(3)], [], kinds, {})
    assert model.always_bound(np.array([2, 1])).all()
    assert not model.always_bound(np.array([6, 3])).any()


@pytest.mark.parametrize("seed", [0, 3, 5, 10, 12, 19, 24, 33, 38, 40])
def test_the_waits_of_a_rehearsal_are_waits(seed: int) -> None:
    """And each other pod may be where the rehearsal has it."""
    problem = problem_of(surge_world(seed))
    placement = place(problem)
    names = names_of(placement)
    standing = standing_nodes(problem, placement, names)
    shapes = {item.ref: item.groups[0].shape for item in problem.demands}
    waits = Rehearsal(problem, placement, names).waits()
    assert waits
    for wait in waits:
        order = [(shapes[item.demand], item.node) for item in wait.bindings]
        nodes = [item.node for item in standing]
        pods = running_pods(problem, standing)
        assert order_violations(nodes, pods, problem.view.namespaces, order) == ()
        assert [item.node for item in wait.bindings if item.demand == wait.demand].count("") == wait.waiting


def test_a_wait_that_is_none_and_a_place_that_is_none_are_told() -> None:
    problem = problem_of(surge_world(3))
    placement = place(problem)
    standing = standing_nodes(problem, placement, names_of(placement))
    shape = problem.demands[0].groups[0].shape
    nodes = [item.node for item in standing]
    pods = running_pods(problem, standing)
    assert "waits, and" in order_violations(nodes, pods, {}, [(shape, "")])[0]
    full = [(shape, nodes[int(number)].name) for number in np.zeros(400)]
    assert "does not take it" in order_violations(nodes, pods, {}, full)[-1]

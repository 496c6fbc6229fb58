"""Generated clusters, pools, catalogues and demands for property tests of placement, and what becomes of a placement."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from math import inf
from typing import Any
from unittest.mock import patch

from hypothesis import strategies as st

from reconciler.model.buffers import Recreation
from reconciler.model.demand import ChunkGroup, Demand
from reconciler.model.nodes import (
    HELD_ANNOTATION,
    HOLDS_ANNOTATION,
    HOSTNAME_LABEL,
    NODEPOOL_LABEL,
    PLACEHOLDER_LABEL,
    ZONE_LABEL,
    InstanceType,
    Node,
    NodeClaim,
    NodePool,
)
from reconciler.model.placement import OccupiedBin, Placement, PlannedNode, words_of_holdings
from reconciler.model.pods import DaemonSet, HostPort, NodeSelectorTerm, Pod, PodAffinityTerm, PodShape, TopologySpread
from reconciler.model.refs import ObjectRef
from reconciler.model.requirements import LabelSelector, Taint, Toleration
from reconciler.model.view import ClusterView
from reconciler.placement.cache import Cache
from reconciler.placement.checker.violations import violations
from reconciler.placement.loops.kernel import Kernel
from reconciler.placement.problem import Problem
from reconciler.stages import placement as stage
from tests.builders import buffer_ref, instance_type, node, node_pool, one_of, pod, selects, shape
from tests.properties.sampling import sampled_from

ZONES = ("zone-a", "zone-b", "zone-c")
TAINT = Taint("dedicated", "batch", "NoSchedule")
TOLERATION = Toleration("dedicated", "Equal", "batch", "NoSchedule")
APPS = ("web", "api")


def place_in_mode(
    problem: Problem, *, memory: Cache | None = None, seconds_left: Callable[[], float] = lambda: inf
) -> Placement:
    """As a pass places it: fast or optimal."""
    return stage.place_in_mode(problem, cache=memory or Cache(), seconds_left=seconds_left)


@dataclass(frozen=True, repr=False, slots=True)
class World(Problem):
    """All that a placement is made from, and its checker asks for again."""

    def under(self, **options: Any) -> World:
        """The same under other options, by the names that PlacementOptions gives them."""
        return replace(self, options=replace(self.options, **options))

    def placed(self, memory: Cache | None = None) -> Placement:
        return place_in_mode(self, memory=memory)

    def placed_rightly(self) -> Placement:
        """Placed and found right by the independent checker."""
        placement = self.placed()
        assert self.broken_rules(placement) == ()
        return placement

    def broken_rules(self, placement: Placement) -> tuple[str, ...]:
        """What the independent checker finds wrong with a placement in this world."""
        return violations(self, placement)

    def __repr__(self) -> str:
        """Short, so that a failing example can be read; hypothesis asks for it by the other name."""
        nodes = [
            (item.name, item.label(HOSTNAME_LABEL), dict(item.labels)[ZONE_LABEL], item.ready, item.taints)
            for item in self.view.nodes
        ]
        pods = [(item.name, _brief(item.shape)) for item in self.view.pods]
        asked = [
            (
                *(item.ref.kind, item.ref.name, item.priority, item.opens_nodes, item.whole, str(item.recreation)),
                *((group.count, _brief(group.shape)) for group in item.groups),
            )
            for item in self.demands
        ]
        pools = [
            (item.name, item.weight, item.limits, item.template.requirements, item.template.taints)
            for item in self.node_pools
        ]
        lines = [nodes, pods, self.view.daemon_sets, pools, [item.name for item in self.instance_types], *asked]
        view = self.view
        lines += [view.node_claims, view.storage, self.overlays, self.options]
        return "\n".join(str(line) for line in lines)

    def _repr_pretty_(self, printer: Any, _cycle: bool) -> None:  # noqa: FBT001 - IPython's protocol
        printer.text(repr(self))


def placed_with(loops: Kernel, world: World) -> Placement:
    """As a large placement is made with compiled loops: a copy of the plain ones counts as compiled, so that batches are walked together."""
    with (
        patch("reconciler.placement.place.WORTH_COMPILING", 0),
        patch("reconciler.placement.place.compiled", lambda: replace(loops)),
    ):
        return world.placed()


def _brief(pod_shape: PodShape) -> dict[str, object]:
    plain = PodShape("shop")
    names = (item.name for item in fields(PodShape) if item.compare)
    return {name: getattr(pod_shape, name) for name in names if getattr(pod_shape, name) != getattr(plain, name)}


SIZES = (("small", "2", "4Gi", 0.1), ("medium", "4", "16Gi", 0.22), ("large", "16", "64Gi", 0.8))


def catalogue(zones: Sequence[str]) -> tuple[InstanceType, ...]:
    """The large type is sold in one zone less and never as spot."""
    return tuple(
        instance_type(
            name,
            cpu=cpu,
            memory=memory,
            price=price,
            zones=zones[1:] or zones if name == "large" else zones,
            capacity_types=("on-demand",) if name == "large" else ("on-demand", "spot"),
        )
        for name, cpu, memory, price in SIZES
    )


@st.composite
def shapes(draw: st.DrawFn) -> PodShape:
    app = draw(sampled_from(APPS))
    selector = selects(draw(sampled_from(APPS)))
    keys = sampled_from([ZONE_LABEL, HOSTNAME_LABEL])
    plain = shape(
        draw(sampled_from(["100m", "500m", "1", "1500m", "3"])),
        draw(sampled_from(["128Mi", "1Gi", "4Gi"])),
        labels={"app": app},
        node_selector=draw(sampled_from([{}, {}, {}, {ZONE_LABEL: "zone-a"}, {"team": "red"}])),
        tolerations=draw(sampled_from([(), (TOLERATION,)])),
    )
    rule = draw(sampled_from(["none", "none", "none", "spread", "apart", "together", "ports", "terms"]))
    match rule:
        case "spread":
            constraint = TopologySpread(draw(keys), draw(st.integers(1, 2)), "DoNotSchedule", selector)
            return replace(plain, topology_spread=(constraint,))
        case "apart":
            return replace(plain, pod_anti_affinity=(PodAffinityTerm(draw(keys), selector),))
        case "together":
            return replace(plain, pod_affinity=(PodAffinityTerm(draw(keys), selector),))
        case "ports":
            return replace(plain, host_ports=(HostPort(draw(sampled_from([80, 443]))),))
        case "terms":
            terms = tuple(NodeSelectorTerm((one_of(ZONE_LABEL, zone),)) for zone in ("zone-b", "zone-z"))
            return replace(plain, required_node_terms=terms)
        case _:
            return plain


@st.composite
def pools(draw: st.DrawFn) -> tuple[NodePool, ...]:
    found = []
    for name in draw(sampled_from([("general",), ("general", "other"), ()])):
        team = one_of("team", "blue", "red")
        requirements = draw(sampled_from([(), (team,), (one_of(ZONE_LABEL, *ZONES[:2]),)]))
        found.append(
            node_pool(
                name,
                weight=draw(sampled_from([0, 0, 10])),
                limits=draw(sampled_from([None, None, {"cpu": "20"}, {"memory": "40Gi", "nodes": "3"}])),
                requirements=requirements,
                taints=draw(sampled_from([(), (), (TAINT,)])),
            )
        )
    return tuple(found)


@st.composite
def nodes_and_pods(draw: st.DrawFn) -> tuple[tuple[Node, ...], tuple[Pod, ...]]:
    nodes, pods = [], []
    for number in range(draw(st.integers(0, 4))):
        name = f"node-{number}"
        nodes.append(
            node(
                name,
                zone=draw(sampled_from(ZONES)),
                instance_type="medium",
                pool=draw(sampled_from(["general", None])),
                taints=draw(sampled_from([(), (), (TAINT,)])),
                ready=draw(sampled_from([True, True, True, False])),
            )
        )
        pods += [
            pod(f"{name}-{index}", node=name, pod_shape=draw(shapes())) for index in range(draw(st.integers(0, 2)))
        ]
    return tuple(nodes), tuple(pods)


def apart(asked: Demand) -> Demand:
    """No two of its chunks go on one node."""
    own = (("apart", asked.ref.name),)
    term = PodAffinityTerm(HOSTNAME_LABEL, LabelSelector(own))
    shapes = [replace(group.shape, labels=own, pod_anti_affinity=(term,)) for group in asked.groups]
    groups = tuple(replace(group, shape=alone) for group, alone in zip(asked.groups, shapes, strict=True))
    return replace(asked, groups=groups)


def with_hostname(item: Node, hostname: str | None) -> Node:
    others = tuple(label for label in item.labels if label[0] != HOSTNAME_LABEL)
    own = () if hostname is None else ((HOSTNAME_LABEL, hostname),)
    return replace(item, labels=tuple(sorted((*others, *own))))


@st.composite
def demands_of(draw: st.DrawFn) -> tuple[Demand, ...]:
    found = []
    for number in range(draw(st.integers(1, 4))):
        pending = draw(st.integers(0, 4)) == 0
        counts = (1,) if pending else draw(sampled_from([(1,), (3,), (7,), (20,), (2, 3)]))
        groups = tuple(ChunkGroup(draw(shapes()), count) for count in counts)
        name = f"demand-{number}"
        found.append(
            Demand(
                ref=ObjectRef("", "Pod", "shop", name) if pending else buffer_ref(name),
                groups=groups,
                desired=sum(counts),
                priority=draw(sampled_from([0, 0, 5])),
                opens_nodes=not pending and draw(st.integers(0, 5)) > 0,
                whole=not pending and draw(st.integers(0, 4)) == 0,
                recreation=draw(sampled_from([Recreation.KEEP_EMPTY, Recreation.KEEP_EMPTY, Recreation.KEEP_MINIMUM]))
                if not pending
                else Recreation.KEEP_EMPTY,
            )
        )
    return tuple(found)


@st.composite
def worlds(draw: st.DrawFn) -> World:
    nodes, pods = draw(nodes_and_pods())
    agent = DaemonSet("system", "agent", shape("100m", "64Mi", namespace="system"))
    view = ClusterView(nodes=nodes, pods=pods, daemon_sets=draw(sampled_from([(), (agent,)])))
    return World(view, draw(pools()), catalogue(draw(sampled_from([ZONES, ZONES[:1]]))), draw(demands_of()))


def carried_out(world: World, placement: Placement) -> World:
    """The world once the planned nodes have been asked for and what holds chunks has been marked."""
    on_nodes = {item.node: item for item in placement.occupied}
    on_claims = {item.node_claim: item for item in placement.occupied}
    nodes = tuple(_held(item, on_nodes.get(item.name)) for item in world.view.nodes)
    claims = tuple(
        replace(item, annotations=_marks(on_claims[item.name])) if item.name in on_claims else item
        for item in world.view.node_claims
    )
    made = tuple(
        _claim(f"claim-{len(claims) + number}", item, world.node_pools) for number, item in enumerate(placement.planned)
    )
    return replace(world, view=replace(world.view, nodes=nodes, node_claims=(*claims, *made)))


def _held(item: Node, occupied: OccupiedBin | None) -> Node:
    return item if occupied is None else replace(item, annotations=_marks(occupied))


def _marks(occupied: OccupiedBin | PlannedNode) -> tuple[tuple[str, str], ...]:
    return ((HELD_ANNOTATION, "true"), (HOLDS_ANNOTATION, words_of_holdings(occupied.holdings)))


def _claim(name: str, planned: PlannedNode, node_pools: Sequence[NodePool]) -> NodeClaim:
    pool = next(item for item in node_pools if item.name == planned.node_pool)
    labels = {
        **dict(planned.labels),
        **dict(pool.template.labels),
        NODEPOOL_LABEL: pool.name,
        PLACEHOLDER_LABEL: "true",
    }
    return NodeClaim(
        name=name,
        labels=tuple(sorted(labels.items())),
        annotations=_marks(planned),
        requirements=planned.requirements,
        requests=planned.requests,
        taints=pool.template.taints,
    )


def priced_by_zone(world: World, factors: tuple[float, ...]) -> World:
    """factors: times the price in each of the zones."""
    factor_of = dict(zip(ZONES, factors, strict=True))
    kinds = tuple(
        replace(
            kind,
            offerings=tuple(replace(item, price=item.price * factor_of.get(item.zone, 1.0)) for item in kind.offerings),
        )
        for kind in world.instance_types
    )
    return replace(world, instance_types=kinds)

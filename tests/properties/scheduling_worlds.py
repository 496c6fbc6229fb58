"""Generated nodes, running pods and pods that come, for what judges kube-scheduler's model.

Nodes differ in size, zone, labels and taints of every effect; pods are under the rules and wishes of `wide_shapes`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from hypothesis import strategies as st

from reconciler.model.nodes import HOSTNAME_LABEL, ZONE_LABEL, Node
from reconciler.model.pods import (
    NodeSelectorTerm,
    Pod,
    PodAffinityTerm,
    PodShape,
    PreferredNodeTerm,
    TopologySpread,
    WeightedPodAffinityTerm,
)
from reconciler.model.quantity import Resources
from reconciler.model.requirements import Taint
from reconciler.placement.scheduler.model import PodKind, SchedulerModel
from tests.builders import node, one_of, pod, selects, shape
from tests.properties.sampling import sampled_from
from tests.properties.wide_shapes import GENERATION, changed
from tests.unit.placement.worlds import APPS, TAINT, TOLERATION, ZONES

_SIZES = (("2", "4Gi"), ("4", "16Gi"), ("8", "16Gi"), ("4", "32Gi"))
_AVOIDED = (Taint("held", "", "PreferNoSchedule"), Taint("dedicated", "batch", "PreferNoSchedule"))

_RUNNING = tuple(shape(cpu, "1Gi", labels={"app": app}) for cpu in ("500m", "1") for app in APPS)


@dataclass(frozen=True)
class SchedulingWorld:
    """kinds: of the pods that come; order: the kind of each, in the order in which they come."""

    nodes: tuple[Node, ...]
    pods: tuple[Pod, ...]
    kinds: tuple[PodKind, ...]
    order: tuple[int, ...]


@st.composite
def _nodes(draw: st.DrawFn) -> tuple[Node, ...]:
    found = []
    for number in range(draw(st.integers(2, 6))):
        cpu, memory = draw(sampled_from(_SIZES))
        plain = node(
            f"node-{number}",
            zone=draw(sampled_from(ZONES)),
            taints=draw(sampled_from([(), (), (), (TAINT,), _AVOIDED[:1], _AVOIDED[1:], _AVOIDED])),
        )
        labels = {**dict(plain.labels), GENERATION: draw(sampled_from(["3", "5"]))}
        if draw(st.booleans()):
            labels["team"] = draw(sampled_from(["red", "blue"]))
        if draw(st.integers(0, 9)) == 0:
            del labels[draw(sampled_from([ZONE_LABEL, HOSTNAME_LABEL]))]
        room = Resources.parse({"cpu": cpu, "memory": memory, "pods": "20"})
        found.append(replace(plain, allocatable=room, capacity=room, labels=tuple(sorted(labels.items()))))
    return tuple(found)


@st.composite
def _shapes(draw: st.DrawFn, *, alone: bool) -> PodShape:
    """Small, so that most find a node."""
    plain = shape(
        draw(sampled_from(["100m", "300m", "700m"])),
        draw(sampled_from(["128Mi", "1Gi", "2Gi"])),
        labels={"app": draw(sampled_from(APPS))},
        tolerations=draw(sampled_from([(), (TOLERATION,)])),
    )
    found = draw(st.one_of(st.just(plain), changed(plain)))
    for _ in range(draw(st.integers(0, 2))):
        found = draw(_wish(found))
    if not alone:
        return found
    return replace(
        found,
        namespace="shop",
        runtime_class="",
        topology_spread=tuple(replace(item, node_affinity_policy="Honor") for item in found.topology_spread),
        pod_affinity=tuple(map(_within, found.pod_affinity)),
        pod_anti_affinity=tuple(map(_within, found.pod_anti_affinity)),
        preferred_pod_affinity=tuple(replace(item, term=_within(item.term)) for item in found.preferred_pod_affinity),
        preferred_pod_anti_affinity=tuple(
            replace(item, term=_within(item.term)) for item in found.preferred_pod_anti_affinity
        ),
    )


@st.composite
def _wish(draw: st.DrawFn, found: PodShape) -> PodShape:
    """With one more thing that it is scored by."""
    key, weight = draw(sampled_from([ZONE_LABEL, HOSTNAME_LABEL])), draw(sampled_from([1, 20, 100]))
    selector = selects(draw(sampled_from(APPS)))
    liked = WeightedPodAffinityTerm(weight, PodAffinityTerm(key, selector))
    match draw(sampled_from(["spread", "near", "apart", "nodes"])):
        case "near":
            return replace(found, preferred_pod_affinity=(*found.preferred_pod_affinity, liked))
        case "apart":
            return replace(found, preferred_pod_anti_affinity=(*found.preferred_pod_anti_affinity, liked))
        case "nodes":
            team = one_of("team", draw(sampled_from(["red", "blue"])))
            preferred = PreferredNodeTerm(weight, NodeSelectorTerm((team,)))
            return replace(found, preferred_node_terms=(*found.preferred_node_terms, preferred))
        case _:
            if any(item.topology_key == key for item in found.topology_spread):
                return found
            soft = TopologySpread(key, draw(st.integers(1, 3)), "ScheduleAnyway", selector)
            return replace(found, topology_spread=(*found.topology_spread, soft))


def _within(term: PodAffinityTerm) -> PodAffinityTerm:
    return replace(term, namespaces=(), namespace_selector=None)


def _running(draw: st.DrawFn, nodes: Sequence[Node], found: Sequence[PodShape], *, alone: bool) -> list[Pod]:
    """What is there before, whether or not it could have come by the rules."""
    pods: list[Pod] = []
    for item in nodes:
        for index in range(draw(st.integers(0, 2))):
            mine = draw(st.one_of(sampled_from(found), sampled_from(_RUNNING), _shapes(alone=alone)))
            mine = replace(mine, host_ports=())
            pods.append(pod(f"{item.name}-{index}", namespace=mine.namespace, node=item.name, pod_shape=mine))
    return pods


@st.composite
def scheduling_worlds(draw: st.DrawFn, *, alone: bool = False) -> SchedulingWorld:
    """alone: whether its pods are in one namespace and look at nodes that they select only, so that it may share a cluster with others."""
    nodes = draw(_nodes())
    found = draw(st.lists(_shapes(alone=alone), min_size=1, max_size=3))
    pods = _running(draw, nodes, found, alone=alone)
    kinds = tuple(PodKind(shape, draw(st.booleans())) for shape in dict.fromkeys(found))
    order = draw(st.lists(st.integers(0, len(kinds) - 1), min_size=4, max_size=10))
    return SchedulingWorld(nodes, tuple(pods), kinds, tuple(order))


def choices(model: SchedulerModel, kind: int) -> set[int]:
    """The rows of the nodes of which kube-scheduler takes any for the next pod, each by some lots; empty if the pod has to wait."""
    found: set[int] = set()
    nodes = len(model.nodes)
    for first in range(nodes):
        found.update(model.schedule([kind], (np.arange(nodes) - first) % nodes).tolist())
        model.take_back()
    return found - {-1}

"""Placements beside the real kube-scheduler: it binds every pod that we said fits, and none that we said does not.

For some hundred generated worlds, half of them with volumes, the nodes that are there and those that were planned are created on a real API server, all
at once. Then come the pods: first those that were placed, each with a resource request that only its bin can meet, so that
the real scheduler has the last word on every other rule, with all the nodes in sight. They come in the order in which
demands are placed, one group after the other: a pod that counts for a spread rule without being under it may tip the
balance for one that comes after, and the first of those that want company finds its own place only while it is the
first. What is meant by "it fits" is that there is an order in which all are bound: a world in which this one leaves a pod waiting
is emptied, and its pods come in the opposite order. When the scheduler is done with them, the pods that found no place come, free to go anywhere in their world; it must
have tried each of them and found nothing.

Left out of the second part: pods that we would make no node for (a node that came for others may suit them), and those that
go wholly or not at all (one of them must stay pending, not all).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import zip_longest

import pytest

from reconciler.cluster.resources import PODS
from reconciler.cluster.view import ViewStore
from reconciler.model.buffers import Recreation
from reconciler.model.demand import Demand
from reconciler.model.placement import Holding
from reconciler.model.pods import PodShape
from reconciler.model.refs import ObjectRef
from tests.controlplane import ControlPlane
from tests.controlplane.documents import namespace
from tests.controlplane.rest import Document
from tests.e2e.world_documents import create_node, each, node_document, planned_document, pod_document, settled
from tests.e2e.world_volumes import class_documents, storage_documents, worlds_with_volumes
from tests.properties.sampling import drawn
from tests.unit.placement.worlds import World

pytestmark = pytest.mark.e2e

WORLDS = 300


@dataclass(frozen=True)
class Staged:
    """One world in the cluster. placed: documents of pods, one list a round; unplaced: likewise, all at once; wholes: names of unplaced pods, one list for each demand
    that goes wholly or not at all. shapes: of pods that are placed or unplaced, by name."""

    name: str
    world: World
    nodes: list[Document]
    storage: list[Document]
    bound: list[Document]
    placed: list[list[Document]]
    unplaced: list[Document]
    wholes: list[set[str]]
    shapes: dict[str, PodShape]


@cache
def generated() -> tuple[World, ...]:
    """Always the same ones. Chunks are judged as pods that come, by what nodes have."""
    return tuple(map(_as_pods, drawn(worlds_with_volumes(), WORLDS)))


def _as_pods(world: World) -> World:
    """Nodes that are not up and daemons yet to come have tests of their own; here what is there is what counts."""
    nodes = tuple(replace(node, ready=True) for node in world.view.nodes)
    demands = tuple(replace(demand, recreation=Recreation.KEEP_EMPTY) for demand in world.demands)
    return replace(world, view=replace(world.view, nodes=nodes, daemon_sets=()), demands=demands)


def staged(number: int, world: World) -> Staged:
    name = f"world-{number:03}"
    placement = world.placed()
    nodes = [node_document(name, node) for node in world.view.nodes]
    bins: list[tuple[str, tuple[Holding, ...]]] = [
        (item.node, item.holdings) for item in placement.occupied if item.node is not None
    ]
    by_ref = {demand.ref: demand for demand in world.demands}
    shapes: dict[str, PodShape] = {}
    for index, planned in enumerate(placement.planned):
        nodes.append(planned_document(name, index, planned, world.node_pools, world.instance_types))
        bins.append((f"planned-{index}", planned.holdings))
    bound = [pod_document(name, pod.name, pod.shape, bound_to=pod.node_name) for pod in world.view.pods]
    rounds: dict[tuple[ObjectRef, int], list[Document]] = {
        (demand.ref, group): [] for demand in _in_order(world.demands) for group in range(len(demand.groups))
    }
    for bin_name, holdings in bins:
        for holding in holdings:
            shape = by_ref[holding.demand].groups[holding.group].shape
            for index in range(holding.count):
                pod = f"{holding.demand.name}-{holding.group}-{bin_name}-{index}"
                rounds[holding.demand, holding.group].append(pod_document(name, pod, shape, meant_for=bin_name))
                shapes[pod] = shape
    unplaced: list[Document] = []
    wholes: dict[str, set[str]] = {}
    for missing in placement.unplaced:
        demand = by_ref[missing.demand]
        if not demand.opens_nodes:
            continue
        for index in range(missing.count):
            pod = f"{missing.demand.name}-{missing.group}-unplaced-{index}"
            shapes[pod] = demand.groups[missing.group].shape
            unplaced.append(pod_document(name, pod, shapes[pod]))
            if demand.whole:
                wholes.setdefault(missing.demand.name, set()).add(pod)
    storage = storage_documents(name, world.view.storage)
    return Staged(name, world, nodes, storage, bound, list(rounds.values()), unplaced, list(wholes.values()), shapes)


def _in_order(demands: Iterable[Demand]) -> list[Demand]:
    return sorted(demands, key=lambda item: (not item.is_pending_pod, -item.priority, item.ref.name))


@pytest.fixture(scope="module")
def turned() -> list[Staged]:
    """To be filled with the worlds whose pods had to come in the opposite order."""
    return []


@pytest.fixture(scope="module")
def stages(plane: ControlPlane, turned: list[Staged]) -> list[Staged]:
    """All worlds in the cluster, with the placed pods bound as far as the scheduler will."""
    found = [staged(number, world) for number, world in enumerate(generated())]
    each(lambda stage: plane.api.create(namespace(stage.name)), found)
    each(lambda node: create_node(plane.api, node), (node for stage in found for node in stage.nodes))
    each(plane.api.create, class_documents())
    each(plane.api.create, (item for stage in found for item in stage.storage))
    each(plane.api.create, (pod for stage in found for pod in stage.bound))
    _come(plane, found, [stage.placed for stage in found])
    there = _pods(plane)
    waiting = [
        stage
        for stage in found
        if not all(there[stage.name, pod["metadata"]["name"]]["spec"].get("nodeName") for pod in _placed(stage))
    ]
    for stage in waiting:
        for pod in _placed(stage):
            plane.api.delete("v1", "Pod", pod["metadata"]["name"], namespace=stage.name)
    _come(plane, waiting, [stage.placed[::-1] for stage in waiting])
    turned += waiting
    return found


def _placed(stage: Staged) -> list[Document]:
    return [pod for pods in stage.placed for pod in pods]


def _come(plane: ControlPlane, stages: Sequence[Staged], rounds: Iterable[list[list[Document]]]) -> None:
    for pods in zip_longest(*rounds, fillvalue=[]):
        each(
            plane.api.create,
            (pod for _, some in zip(stages, pods, strict=True) for pod in some),
        )
        settled(plane.api)


def test_pods_are_read_as_what_they_are_said_to_count_for(plane: ControlPlane, stages: list[Staged]) -> None:
    store = ViewStore()
    store.replace(PODS, plane.api.list("v1", "Pod"))
    found = {(pod.namespace, pod.name): pod.shape.requests for pod in store.view().pods}
    meant = {(stage.name, pod.name): pod.shape.requests for stage in stages for pod in stage.world.view.pods}

    assert len(meant) > WORLDS
    assert {key: found[key] for key in meant} == meant


def test_every_pod_that_fits_is_bound(plane: ControlPlane, stages: list[Staged]) -> None:
    found = _pods(plane)
    wanted = {(stage.name, pod["metadata"]["name"]) for stage in stages for pods in stage.placed for pod in pods}
    unbound = {key: _why(found[key]) for key in wanted if not found[key]["spec"].get("nodeName")}

    assert len(wanted) > WORLDS
    assert unbound == {}


def test_the_order_of_demands_is_one_in_which_they_are_bound_nearly_always(
    stages: list[Staged], turned: list[Staged]
) -> None:
    assert len(turned) <= len(stages) // 100, [stage.name for stage in turned]


def test_no_pod_that_does_not_fit_is_bound(plane: ControlPlane, stages: list[Staged]) -> None:
    each(plane.api.create, (pod for stage in stages for pod in stage.unplaced))
    settled(plane.api)
    pods = _pods(plane)
    wrong = {}
    for stage in stages:
        bound = {
            name
            for name in (pod["metadata"]["name"] for pod in stage.unplaced)
            if pods[stage.name, name]["spec"].get("nodeName")
        }
        whole = {name for names in stage.wholes for name in names}
        wholly = [names for names in stage.wholes if names <= bound]
        if bound - whole or wholly:
            wrong[stage.name] = (sorted(bound - whole), wholly)

    assert sum(len(stage.unplaced) for stage in stages) > WORLDS / 2
    assert wrong == {}


def _pods(plane: ControlPlane) -> dict[tuple[str, str], Document]:
    return {(pod["metadata"]["namespace"], pod["metadata"]["name"]): pod for pod in plane.api.list("v1", "Pod")}


def _why(pod: Document) -> str:
    found = [item.get("message", "") for item in pod["status"].get("conditions", []) if item["type"] == "PodScheduled"]
    return found[0] if found else "never tried"

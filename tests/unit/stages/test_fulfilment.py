"""Passes over buffers that are filled once, or kept by balloon pods, on the embedded cluster."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.cycle import Cycle
from reconciler.model.buffers import ONE_SHOTS_KEY, OneShot
from reconciler.model.changes import Delete
from reconciler.model.nodes import HELD_TAINT
from reconciler.model.remembered import remembered
from reconciler.model.rules import PlacementRules
from reconciler.settings.settings import Settings
from reconciler.stages.state import PassResult
from tests.builders import buffer_ref, instance_type
from tests.fakes.embedded import Sandbox, buffer, node_pool, workload

FOUR_PODS = instance_type("m-5x", cpu="5", memory="16Gi")
"""With room for four pods of one core, and no more."""


class World:
    """A pool that never consolidates, a Deployment of one-core pods, and a buffer that is declared in the cluster."""

    def __init__(self, replicas: int = 4, **annotations: str) -> None:
        self.sandbox = Sandbox(instance_types=(FOUR_PODS,))
        self.sandbox.cluster.apply(node_pool())
        self.scale(0)
        self.declare(replicas, **annotations)
        self.cycle = self.restarted()

    def restarted(self) -> Cycle:
        return self.sandbox.new_cycle(settings=Settings(placement=PlacementRules(check=True)))

    def scale(self, replicas: int) -> None:
        self.sandbox.cluster.apply(workload(replicas=replicas, cpu="1"))

    def declare(self, replicas: int = 4, **annotations: str) -> None:
        named = {f"headroom.dev/{name.replace('_', '-')}": value for name, value in annotations.items()}
        document = buffer(replicas=replicas)
        self.sandbox.cluster.apply({**document, "metadata": {**document["metadata"], "annotations": named}})

    def run(self, passes: int = 3) -> PassResult:
        self.sandbox.run_passes(self.cycle, passes)
        return self.cycle.run("test")

    def status(self) -> dict[str, Any]:
        status: dict[str, Any] = dict(self.sandbox.cluster.view().objects[buffer_ref()].body["status"])
        return status

    def said(self, kind: str) -> tuple[str, str] | None:
        found = (item for item in self.status()["conditions"] if item["type"] == kind)
        return next(((item["status"], item["reason"]) for item in found), None)

    def left(self) -> list[int]:
        return [
            item.left
            for item in remembered(self.sandbox.cluster.view().inventory.records, ONE_SHOTS_KEY, OneShot).values()
        ]

    def nodes(self) -> int:
        return len(self.sandbox.cluster.view().nodes)

    def held(self) -> int:
        marks = ("headroom.dev/held", "true")
        return sum(marks in node.annotations for node in self.sandbox.cluster.view().nodes)

    def is_tainted(self) -> bool:
        return any(HELD_TAINT in node.taints for node in self.sandbox.cluster.view().nodes)


@pytest.fixture
def once() -> World:
    world = World(one_shot="true")
    (outcome,) = world.cycle.plan().required_plan.demands
    assert outcome.demand.explanation[-1] == "one-shot: to be filled once"
    world.run()
    assert world.said("Provisioning") == ("True", "FitsExistingCapacity")
    return world


def test_it_is_forgotten_with_its_object_and_a_new_one_is_filled(once: World) -> None:
    once.scale(4)
    once.run()
    assert once.sandbox.write(Delete(buffer_ref())).ok
    once.run()
    assert ONE_SHOTS_KEY not in once.sandbox.cluster.view().inventory.records
    once.declare(one_shot="true")
    once.run()
    assert (once.left(), once.said("Provisioning")) == ([4], ("True", "FitsExistingCapacity"))


def test_from_placeholders_to_balloon_pods_and_back_no_pass_leaves_the_capacity_unheld() -> None:
    world = World()
    world.run()
    assert (world.held(), world.nodes()) == (1, 1)
    world.declare(fulfilment="balloon")
    result = world.cycle.run("balloon")
    assert (world.held(), world.said("Fulfilment")) == (1, ("False", "HandingOver"))
    made = {change.ref.kind for change in result.required_plan.objects}
    assert made == {"Deployment", "PriorityClass"}
    world.run()
    assert (world.held(), world.said("Fulfilment"), world.nodes()) == (0, ("True", "BalloonPods"), 1)
    assert world.said("Provisioning") == ("True", "FitsExistingCapacity")

    world.declare()
    result = world.cycle.run("back")
    assert result.change_set is not None
    kinds = [type(item.write).__name__ for item in result.change_set.results]
    assert kinds.index("Annotate") < kinds.index("Delete"), "the nodes are held before the balloon goes"
    assert (world.held(), world.said("Fulfilment")) == (1, None)
    world.run()
    assert (world.nodes(), world.said("Provisioning")) == (1, ("True", "FitsExistingCapacity"))


def test_a_pass_over_a_settled_balloon_writes_nothing_and_it_goes_with_its_buffer() -> None:
    world = World(fulfilment="balloon")
    world.run()
    pods = [pod for pod in world.sandbox.cluster.view().pods if pod.owner_kind == "ReplicaSet"]
    assert [pod.priority for pod in pods] == [-10] * 4
    result = world.cycle.run("again")
    assert result.change_set is not None
    assert result.change_set.results == ()
    assert world.sandbox.write(Delete(buffer_ref())).ok
    world.run()
    assert world.sandbox.cluster.view().pods == ()


def written_by(world: World, manager: str, *types: str) -> None:
    """A controller sets these conditions to True, beside all others."""
    generation = world.sandbox.cluster.view().objects[buffer_ref()].body["metadata"]["generation"]
    said = {"status": "True", "reason": "R", "message": manager, "observedGeneration": generation}
    times = {"lastTransitionTime": "2026-01-01T00:00:00Z"}
    own = [{"type": kind, **said, **times} for kind in types]

    def write(copy: dict[str, Any]) -> None:
        status = copy["status"]
        others = [item for item in status["conditions"] if item["type"] not in types]
        copy["status"] = {**status, "conditions": [*others, *own]}

    world.sandbox.change(buffer_ref(), write, manager)


def test_release_and_status_follow_what_an_autoscaler_reports_in_the_same_pass() -> None:
    world = World()
    world.run()
    assert world.is_tainted()
    written_by(world, "karpenter", "ReadyForProvisioning")
    world.run(1)
    assert (world.held(), world.said("Fulfilment")) == (1, ("False", "HandingOver"))
    assert not world.is_tainted(), "Karpenter is to find the room, not to make it a second time"
    written_by(world, "karpenter", "Provisioning")
    world.cycle.run("reported")
    assert (world.held(), world.said("Fulfilment")) == (0, ("True", "ServedByAutoscaler"))
    messages = {item["type"]: item["message"] for item in world.status()["conditions"]}
    assert (messages["Provisioning"], messages["ReadyForProvisioning"]) == ("karpenter", "karpenter")
    again = world.cycle.run("again")
    assert again.change_set is not None
    assert again.change_set.results == ()

    world.declare(fulfilment="placeholder")
    world.cycle.run("asked back")
    assert (world.held(), world.said("Fulfilment")) == (1, ("False", "AlsoServed"))
    assert not world.is_tainted()
    quiet = world.run()
    assert quiet.change_set is not None
    assert quiet.change_set.results == (), "nobody fights over words"


def also_served() -> World:
    """Karpenter serves the buffer, and headroom keeps it."""
    world = World()
    world.run()
    written_by(world, "karpenter", "ReadyForProvisioning", "Provisioning")
    world.declare(fulfilment="placeholder")
    world.run()
    assert world.said("Fulfilment") == ("False", "AlsoServed")
    return world


def test_an_autoscaler_that_was_switched_off_is_found_out_though_nothing_else_happens() -> None:
    world = also_served()
    world.sandbox.wait(600)
    world.cycle.run("asks")
    world.cycle.run("waits for the answer")
    assert world.said("Fulfilment") == ("False", "AlsoServed")
    assert not world.is_tainted()
    world.sandbox.wait(16)
    world.cycle.run("no answer")
    assert world.said("Fulfilment") is None
    assert world.is_tainted()
    assert (world.held(), world.said("Provisioning")) == (1, ("True", "FitsExistingCapacity"))

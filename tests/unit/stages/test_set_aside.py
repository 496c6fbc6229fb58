"""Whatever one object makes a stage raise: the object is set aside with a finding, and all others are served.

The faults are planted in the functions that stages call: each raises if the object `bad` of one kind is among what it is given.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import cache
from typing import Any

import pytest
import yaml

from reconciler.demand.combine import demands
from reconciler.model.changes import Annotate, Delete
from reconciler.model.errors import Transient
from reconciler.model.findings import Finding
from reconciler.model.refs import ObjectRef
from reconciler.model.view import LiveObject, identity_of
from reconciler.report.status.text import daemon_status_text
from reconciler.stages.state import PassResult
from reconciler.telemetry.last_pass import LastPass
from reconciler.telemetry.metrics import Metrics
from tests.builders import manifest
from tests.fakes.embedded import Sandbox, buffer, node_pool, workload
from tests.fakes.requests import pod_template, request
from tests.fakes.source import FakeSource
from tests.fakes.status import shown

BAD = "bad"
_BY_TEMPLATE = {"podTemplateRef": {"name": BAD}, "replicas": 1}
_SCHEDULE = {"schedule": {"defaultReplicas": 1, "behaviors": []}}
FILES = {
    "good.yaml": yaml.safe_dump(buffer("good", replicas=2)),
    "bad.yaml": yaml.safe_dump_all(
        [
            {**buffer(BAD), "spec": _BY_TEMPLATE},
            pod_template(BAD, cpu="100m"),
            manifest("autoscaling.karpenter.sh/v1alpha1", "MetricsProducer", BAD, "shop", spec=_SCHEDULE),
            request(BAD, template=BAD),
        ]
    ),
}
_BARE: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "PriorityClass": ("scheduling.k8s.io/v1", {"value": 5}),
    "ResourceQuota": ("v1", {"spec": {"hard": {"cpu": "100"}}}),
    "PodDisruptionBudget": ("policy/v1", {"spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "x"}}}}),
    "RuntimeClass": ("node.k8s.io/v1", {"handler": "runc"}),
    "StorageClass": ("storage.k8s.io/v1", {"provisioner": "example.com/disk"}),
    "PersistentVolumeClaim": ("v1", {"spec": {"accessModes": ["ReadWriteOnce"]}}),
}
_CLUSTER_SCOPED = {"PriorityClass", "RuntimeClass", "StorageClass"}


class World:
    """A good buffer and a bad one in Git; in the cluster an object `bad` of every kind."""

    def __init__(self) -> None:
        self.sandbox = Sandbox()
        cluster = self.sandbox.cluster
        cluster.apply(node_pool())
        cluster.apply(node_pool(BAD))
        cluster.apply(workload(replicas=0))
        cluster.apply(workload(BAD, replicas=1, nodeName=f"node-{BAD}"))
        cluster.apply(workload(BAD, kind="DaemonSet"))
        for kind, (version, body) in _BARE.items():
            cluster.apply(manifest(version, kind, BAD, "" if kind in _CLUSTER_SCOPED else "shop", **body))
        self.sandbox.add_node(BAD)
        self.source = FakeSource(FILES)
        self.cycle = self.sandbox.new_cycle(self.source)

    def passes(self, count: int = 3) -> PassResult:
        return self.sandbox.run_passes(self.cycle, count, wait=5)


def refs_in(value: Any) -> set[ObjectRef]:
    """Every object that a value is, holds, or was made from. A name alone, or a finding, is no object."""
    found: set[ObjectRef] = set()
    waiting, seen = [value], set()
    while waiting:
        item = waiting.pop()
        if id(item) in seen or isinstance(item, str | bytes | int | ObjectRef | Finding):
            continue
        seen.add(id(item))
        ref = None if isinstance(item, type) else identity_of(item)
        if ref is not None:
            found.add(ref)
        if isinstance(item, LiveObject):
            continue
        if dataclasses.is_dataclass(item) and not isinstance(item, type):
            waiting += [getattr(item, each.name) for each in dataclasses.fields(item) if not each.name.startswith("_")]
        elif isinstance(item, Mapping):
            waiting += item.values()
        elif isinstance(item, list | tuple | set | frozenset):
            waiting += item
    return found


def plant(patch: pytest.MonkeyPatch, function: str, matches: Callable[[ObjectRef], bool], *, at_hand: bool) -> None:
    """The function raises whenever it is given a matching object. at_hand: while it looks at that object, and not as a whole."""
    module, _, name = function.rpartition(".")
    real = getattr(__import__(module, fromlist=[name]), name)

    def judge(one: ObjectRef) -> None:
        raise ValueError(f"a planted fault, of {one}")

    def broken(*args: Any, **options: Any) -> Any:
        suspects = [ref for ref in sorted(refs_in((args, options))) if matches(ref)]
        if suspects and at_hand:
            judge(suspects[0])
        if suspects:
            del suspects
            raise ValueError("a planted fault")
        return real(*args, **options)

    patch.setattr(function, broken)


def set_aside(result: PassResult) -> list[Finding]:
    return [finding for finding in result.required_plan.findings if finding.code == "set-aside"]


def assert_the_good_one_is_served(result: PassResult) -> None:
    good = next(item for item in result.required_plan.demands if item.demand.ref.name == "good")
    assert good.on_existing == 2, good


STAGES = {
    "in_force": "reconciler.stages.reading.in_force",
    "schedules": "reconciler.stages.reading.schedule_findings",
    "prepare": "reconciler.stages.demand.launch_record",
    "demand": "reconciler.stages.demand.demands",
    "placement": "reconciler.stages.placement.place_in_mode",
    "vacate": "reconciler.stages.consolidation.vacancies",
    "plan": "reconciler.stages.planning.make_plan",
    "render": "reconciler.stages.planning.render_writes",
    "statuses": "reconciler.stages.planning.status_writes",
}
KINDS = (
    "CapacityBuffer", "PodTemplate", "MetricsProducer", "ProvisioningRequest",
    "NodePool", "Node", "NodeClaim", "Pod", "Deployment", "DaemonSet", "InstanceType", *_BARE,
)  # fmt: skip


@cache
def given() -> Mapping[str, set[ObjectRef]]:
    """By stage, the objects that its function is given while nothing fails."""
    found: dict[str, set[ObjectRef]] = {}
    with pytest.MonkeyPatch.context() as patch:
        for stage, function in STAGES.items():
            found[stage] = set()
            plant(patch, function, lambda ref, known=found[stage]: known.add(ref), at_hand=True)  # type: ignore[misc]
        World().passes()
    return found


@pytest.mark.parametrize("where", ["at hand", "among all"])
@pytest.mark.parametrize("kind", KINDS)
def test_one_object_that_a_stage_fails_on_stops_no_other(
    kind: str, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In every second stage that is given one of this kind: the next kind meets the stages between."""

    def is_bad(ref: ObjectRef) -> bool:
        return ref.kind == kind and (BAD in ref.name or (kind == "InstanceType" and ref.name == "m-8x"))

    at_hand = where == "at hand"
    some = STAGES if at_hand else ("in_force", "placement", "statuses")
    stages = [stage for stage in some if any(map(is_bad, given()[stage]))]
    for stage in stages[KINDS.index(kind) % 2 :: 2] or stages:
        world = World()
        with monkeypatch.context() as patch:
            plant(patch, STAGES[stage], is_bad, at_hand=at_hand)
            result = world.passes()
            assert_the_good_one_is_served(result)
            found = set_aside(result)
            assert found, stage
            for finding in found:
                assert finding.ref is not None
                assert is_bad(finding.ref), finding
                assert "a planted fault" in finding.message
                assert "Traceback" not in finding.message


def test_each_kind_is_given_to_some_stage() -> None:
    assert {ref.kind for refs in given().values() for ref in refs} >= set(KINDS)


def test_nothing_is_deleted_or_released_because_of_it_and_it_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    world.passes()
    nodes = world.sandbox.node_names()

    with monkeypatch.context() as patch:
        plant(patch, STAGES["demand"], lambda ref: ref.kind == "CapacityBuffer" and ref.name == BAD, at_hand=True)
        world.sandbox.wait(700)
        result = world.passes(20)
        assert len(set_aside(result)) == 2, "its document and the object in the cluster, which is the same"
        assert result.change_set is not None
        assert not [item for item in result.change_set.results if isinstance(item.write, Delete | Annotate)]
        assert world.sandbox.node_names() == nodes
        assert any("CapacityBuffer/shop/bad is set aside" in why for why in result.required_plan.blocked)

    assert set_aside(world.passes(1)), "nothing has changed"
    world.sandbox.wait(timedelta(minutes=10).total_seconds())
    assert not set_aside(world.passes(1))


def test_a_new_version_in_git_is_judged_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    with monkeypatch.context() as patch:
        plant(patch, STAGES["demand"], lambda ref: ref.name == BAD and ref.kind == "CapacityBuffer", at_hand=True)
        assert set_aside(world.passes(1))
    world.source.commit(dict(FILES))

    assert not set_aside(world.passes(1))


def test_what_the_cluster_has_of_a_document_stays_in_force(monkeypatch: pytest.MonkeyPatch) -> None:
    """The newer version in Git asks for five chunks, and only that version makes headroom fail."""
    world = World()
    world.passes()
    with monkeypatch.context() as patch:

        def broken(declared: Any, view: Any, **options: Any) -> Any:
            for one in declared.buffers:
                if one.replicas == 5:
                    raise ValueError("a planted fault")
            return demands(declared, view, **options)

        patch.setattr("reconciler.stages.demand.demands", broken)
        world.source.commit({**FILES, "good.yaml": yaml.safe_dump(buffer("good", replicas=5))})
        result = world.passes()

    (finding,) = set_aside(result)
    assert str(finding.position) == "good.yaml:1:1"
    assert_the_good_one_is_served(result)


def test_very_many_objects_with_one_fault_take_none_of_another_kind_along(monkeypatch: pytest.MonkeyPatch) -> None:
    """More than are suspected one by one in a pass."""
    world = World()
    world.sandbox.cluster.apply(workload("many", replicas=60, nodeName=f"node-{BAD}"))
    plant(monkeypatch, STAGES["demand"], lambda ref: ref.name.startswith("many-"), at_hand=True)

    result = world.passes()

    assert_the_good_one_is_served(result)
    found = [finding.ref for finding in set_aside(result) if finding.ref]
    assert {ref.name.partition("-")[0] for ref in found} == {"many"}
    assert len(found) == 60


def test_a_file_that_reading_fails_on_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    plant(
        monkeypatch, "reconciler.manifests.repository.declared.references", lambda ref: ref.name == BAD, at_hand=False
    )

    result = world.passes()

    assert_the_good_one_is_served(result)
    assert [str(finding.position) for finding in set_aside(result)] == ["bad.yaml:1:1"]


def test_events_that_headroom_fails_on_leave_what_was_written(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_args: Any, **_options: Any) -> Any:
        yield from ()
        raise ValueError("a planted fault")

    monkeypatch.setattr("reconciler.stages.planning.events", broken)
    world = World()

    result = world.passes()

    assert_the_good_one_is_served(result)
    assert "EventsFailed" in world.sandbox.reasons()


def test_people_see_it_in_the_status_and_the_trace_only_in_the_debug_log(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    plant(monkeypatch, STAGES["demand"], lambda ref: ref.kind == "Deployment" and ref.name == BAD, at_hand=True)
    told: list[tuple[str, str, dict[str, Any]]] = []

    class Told:
        def __getattr__(self, level: str) -> Callable[..., None]:
            return lambda event, **facts: told.append((level, event, facts))

    last = LastPass(cluster="a", clock=world.sandbox.clock, metrics=Metrics(), log=Told())
    for _ in range(3):
        last.observe("change", world.passes(1))

    text = daemon_status_text(shown(last.report()))
    assert "not healthy" in text
    assert "Deployment/shop/bad" in text
    assert "Traceback" not in text
    assert [level for level, event, _ in told if event == "an object was set aside"] == ["debug"], (
        "once, while it is new"
    )
    assert [facts["object"] for level, event, facts in told if event == "finding" and facts["code"] == "set-aside"] == [
        "Deployment/shop/bad"
    ]


def test_a_fault_of_no_object_still_ends_the_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()

    def broken(*_args: Any, **_options: Any) -> Any:
        raise ValueError("whatever is left out")

    monkeypatch.setattr("reconciler.stages.demand.demands", broken)

    with pytest.raises(ValueError, match="whatever is left out"):
        world.cycle.run("change")


@pytest.mark.parametrize("stage", [None, *STAGES])
def test_what_is_new_is_suspected_before_what_was_served_until_now(
    stage: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Headroom fails on the two together. The buffer was served before the node came, so that the node is to blame. A pass between that
    failed in a stage, for another reason, served nothing."""
    world = World()
    world.passes()

    def broken(declared: Any, view: Any, **options: Any) -> Any:
        for one in declared.buffers:
            for node in view.nodes:
                if (one.ref.name, node.name) == ("good", "node-new"):
                    raise ValueError("a planted fault")
        return demands(declared, view, **options)

    def fails(*_args: Any, **_options: Any) -> Any:
        raise failure

    world.sandbox.add_node("new")
    if stage is not None:
        failure = Transient("no answer")
        with monkeypatch.context() as patch:
            patch.setattr(STAGES[stage], fails)
            assert world.cycle.run("change").failure is failure
    monkeypatch.setattr("reconciler.stages.demand.demands", broken)
    result = world.passes(2)

    assert_the_good_one_is_served(result)
    assert [str(finding.ref) for finding in set_aside(result)] == ["Node/node-new"]

"""The cluster is asked once in a pass. It says which fields it knows: with those it does not know, the last good version of a document stays
in force."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from reconciler.cycle import Cycle
from reconciler.model.changes import Apply
from reconciler.model.errors import Transient, Waiting
from reconciler.model.findings import Severity
from reconciler.model.refs import ObjectRef
from reconciler.model.view import ClusterView
from reconciler.plan.facts import Facts
from reconciler.stages.state import PassResult
from tests.fakes.embedded import GitSandbox

BUFFER = """\
apiVersion: autoscaling.x-k8s.io/v1beta1
kind: CapacityBuffer
metadata: {name: web, namespace: shop, annotations: {example.com/note: NOTE}}
spec: {podTemplateRef: {name: web}, replicas: 2}
---
apiVersion: v1
kind: PodTemplate
metadata: {name: web, namespace: shop}
template: {spec: {containers: [{name: web, image: pause, resources: {requests: {cpu: "1"}}}]}}
"""
REF = ObjectRef("autoscaling.x-k8s.io", "CapacityBuffer", "shop", "web")


class Serving(GitSandbox):
    """Its definitions of kinds have every field but those of `unknown`, and it answers only while `answers`."""

    def __init__(self) -> None:
        super().__init__({"web.yaml": BUFFER})
        self.unknown: set[str] = set()
        self.answers = True
        self.asked: list[ObjectRef] = []
        served: Any = self.cluster
        served.unknown_fields = self._unknown_fields

    def _unknown_fields(self, apply: Apply) -> tuple[str, ...] | None:
        self.asked.append(apply.ref)
        if not self.answers:
            return None
        return tuple(f"spec.{key}" for key in sorted(apply.manifest.get("spec", {})) if key in self.unknown)

    def chunks(self, result: PassResult) -> int | None:
        return next(outcome.service.wanted for outcome in result.required_plan.demands if outcome.demand.ref == REF)

    def spec(self) -> dict[str, Any]:
        live = self.cluster.live(REF)
        found: dict[str, Any] = live["spec"]
        return found


def errors(result: PassResult) -> list[tuple[str, str]]:
    return [(item.code, item.path) for item in result.required_plan.findings if item.severity is Severity.ERROR]


def test_a_field_that_the_cluster_does_not_know_keeps_the_last_good_version() -> None:
    world = Serving()
    world.passes()
    world.unknown = {"limits"}
    world.source.commit({"web.yaml": BUFFER.replace("replicas: 2", "replicas: 1, limits: {cpu: 5}")})

    result = world.passes()

    assert errors(result) == [("field-not-served", "spec.limits")]
    assert world.chunks(result) == 2, "not only the object: what is kept for it too"
    assert world.spec()["replicas"] == 2

    world.unknown = set()  # a newer definition is installed
    assert world.chunks(world.passes(seconds=70)) == 1
    assert errors(world.passes()) == []


def test_a_field_that_only_the_cluster_knows_passes_through_even_near_one_of_ours() -> None:
    world = Serving()
    world.passes()
    world.source.commit({"web.yaml": BUFFER.replace("replicas: 2", "replicas: 3, replica: 1, colour: blue")})

    result = world.passes()

    assert errors(result) == []
    assert not any("colour" in item.path for item in result.required_plan.findings)
    assert (world.chunks(result), world.spec()["colour"], world.spec()["replica"]) == (3, "blue", 1)


def test_without_an_answer_the_shipped_schema_decides() -> None:
    world = Serving()
    world.passes()
    world.answers = False
    near, far = (BUFFER.replace("replicas: 2", f"replicas: 3, {key}: 1") for key in ("replica", "colour"))

    world.source.commit({"web.yaml": near})
    result = world.passes()
    assert errors(result) == [("misspelt-field", "spec.replica")]
    assert world.chunks(result) == 2

    world.source.commit({"web.yaml": far})
    result = world.passes()
    assert errors(result) == []
    assert world.chunks(result) == 3
    assert "colour" not in world.spec()


def test_a_document_that_loses_its_namespace_does_not_lose_its_object() -> None:
    """It would be another object, in the namespace default, and the old one would be deleted."""
    world = Serving()
    world.passes()
    world.source.commit({"web.yaml": BUFFER.replace("name: web, namespace: shop", "name: web")})

    result = world.passes(seconds=7200, every=120)

    assert {(code, path) for code, path in errors(result)} == {("missing-field", "metadata.namespace")}
    assert world.chunks(result) == 2
    assert world.cluster.get(REF) is not None
    assert world.cluster.get(REF._replace(namespace="default")) is None


def test_a_document_may_be_moved_to_another_namespace_by_name() -> None:
    world = Serving()
    world.passes()
    world.source.commit({"web.yaml": BUFFER.replace("namespace: shop", "namespace: default")})
    world.passes(seconds=7200, every=120)
    assert world.cluster.get(REF) is None
    assert world.cluster.get(REF._replace(namespace="default")) is not None


def test_an_object_that_was_always_in_the_default_namespace_needs_no_namespace() -> None:
    world = Serving()
    world.source.commit({"web.yaml": BUFFER.replace("name: web, namespace: shop", "name: web")})
    assert errors(world.passes()) == []
    world.source.commit(
        {"web.yaml": BUFFER.replace("name: web, namespace: shop", "name: web").replace("NOTE", "other")}
    )
    assert errors(world.passes()) == []


def test_of_a_file_with_an_error_it_is_said_which_commit_is_in_force() -> None:
    world = Serving()
    bad = BUFFER.replace("CapacityBuffer", "CapacityBufer")
    world.source.commit({"web.yaml": BUFFER}, f"main@sha1:{'1' * 40}")
    assert world.passes().required_plan.notes == ()
    told = "web.yaml: CapacityBuffer/shop/web stays as in main@111111111111, since the file has errors now"
    for digit in "23":  # the second is no better, and the last good one is still the first
        world.source.commit({"web.yaml": f"# {digit}\n{bad}"}, f"main@sha1:{digit * 40}")
        assert world.passes().required_plan.notes == (told,)
    world.source.commit({"web.yaml": BUFFER}, f"main@sha1:{'4' * 40}")
    assert world.passes().required_plan.notes == ()


WAYS: Mapping[str, Callable[[Cycle], PassResult | Facts]] = {
    "plan": lambda cycle: cycle.plan(settled=True),
    "run": lambda cycle: cycle.run("change"),
    "observe": Cycle.observe,
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("error", [None, Waiting("pods not read yet"), Transient("no answer"), ValueError("a defect")])
def test_the_cluster_is_asked_once_in_a_pass_also_if_it_cannot_be_read(
    error: Exception | None, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = Serving()
    world.passes(10)
    asked: list[str] = []
    read = world.cluster.view

    def view() -> ClusterView:
        asked.append(way)
        if error is not None:
            raise error
        return read()

    monkeypatch.setattr(world.cluster, "view", view)
    world.source.commit({"web.yaml": BUFFER})
    if isinstance(error, ValueError) or (error is not None and way == "observe"):
        with pytest.raises(type(error), match=str(error)):
            WAYS[way](world.cycle)
    else:
        result = WAYS[way](world.cycle)
        assert isinstance(result, Facts) or (result.failure is error and {"git", "view"} <= result.timings.keys())
    assert asked == [way]

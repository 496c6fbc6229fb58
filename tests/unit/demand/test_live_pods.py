"""Live pods tell shapes and bases of workloads; runtime classes add their overhead."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from reconciler.cluster.resources import DAEMON_SETS, RUNTIME_CLASSES
from reconciler.cluster.view import ViewStore
from reconciler.demand.buffers import buffer_demands
from reconciler.demand.combine import demands
from reconciler.demand.resolve import LivePods
from reconciler.manifests.pods.pod_shape import pod_spec_from, shape_of
from reconciler.model.buffers import MOST_CHUNKS, Dialect
from reconciler.model.declared import Declared
from reconciler.model.demand import Demand
from reconciler.model.pods import Pod, RuntimeClass
from reconciler.model.quantity import CPU, Resources
from reconciler.model.requirements import LabelSelector, Operator, Requirement, Toleration
from reconciler.model.view import ClusterView
from reconciler.placement.place import place
from reconciler.placement.problem import Problem
from tests.builders import buffer, deployment, node, pod, selects, shape

# The newest live pod of a workload, by any selector.

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


def made(name: str, minutes: int, **labels: str) -> Pod:
    return pod(name, pod_shape=shape(labels=labels), created=NOON - timedelta(minutes=minutes))


PODS = (
    made("a", 5, app="web", tier="front"),
    made("b", 3, app="web", tier="back"),
    made("c", 1, app="api", tier="front"),
    replace(made("d", 0, app="web", tier="front"), namespace="other"),
    replace(made("e", 0, app="web", tier="front"), deleting=True),
)


@pytest.mark.parametrize(
    ("selector", "newest"),
    [
        (selects(), "b"),
        (LabelSelector((("app", "web"), ("tier", "front"))), "a"),
        (LabelSelector((("app", "web"),), (Requirement("tier", Operator.NOT_IN, ("back",)),)), "a"),
        (LabelSelector((), (Requirement("app", Operator.EXISTS),)), "c"),
        (LabelSelector(), "c"),
        (selects("db"), None),
        (LabelSelector((("app", "web"), ("new", "x"))), None),
        (None, None),
    ],
)
def test_the_newest_that_the_selector_matches(selector: LabelSelector | None, newest: str | None) -> None:
    found = LivePods(PODS).newest(deployment(selector=selector))
    assert (None if found is None else found.name) == newest


def test_pods_of_one_age_are_taken_by_name_and_one_without_an_age_last() -> None:
    alike = shape(labels={"app": "web"})
    pods = [pod(name, pod_shape=alike, created=NOON) for name in ("x", "z", "y")]
    selecting = deployment(selector=selects())
    for order in (pods, pods[::-1]):
        found = LivePods([*order, pod("zz", pod_shape=alike, created=None)]).newest(selecting)
        assert found is not None
        assert found.name == "z"


# Chunks of pods with a RuntimeClass need room for its overhead, as the real pods will.

KATA = RuntimeClass(
    "kata",
    overhead=Resources.parse({"cpu": "250m"}),
    node_selector=(("runtime", "kata"),),
    tolerations=(Toleration("kata", "Exists"),),
)
IN_KATA = shape(node_selector={"disk": "ssd"}, runtime_class="kata")


def only_demand(view: ClusterView) -> Demand:
    workloads = (deployment(pod_shape=IN_KATA),)
    found, _ = demands(Declared(buffers=(buffer(),), workloads=workloads), view, dialect=Dialect.KARPENTER)
    return found[-1]


def test_a_chunk_has_the_classs_overhead_selector_and_tolerations() -> None:
    chunk = only_demand(ClusterView(runtime_classes=(KATA,))).groups[0].shape
    assert chunk.requests.get(CPU) == 1250
    assert chunk.node_selector == (("disk", "ssd"), ("runtime", "kata"))
    assert chunk.tolerations == (Toleration("kata", "Exists"),)


def test_a_pending_pod_that_has_no_overhead_yet_gets_it() -> None:
    view = ClusterView(pods=(pod(pod_shape=IN_KATA),), runtime_classes=(KATA,))
    (waiting, _) = demands(Declared(buffers=(buffer(),)), view, dialect=Dialect.KARPENTER)[0]
    assert waiting.groups[0].shape.requests.get(CPU) == 1250


def test_what_admission_has_written_is_not_written_twice() -> None:
    spec = {"containers": [{"name": "main"}], "runtimeClassName": "kata"}
    assert shape_of(pod_spec_from(spec), namespace="shop", labels={}).runtime_class == "kata"
    admitted = spec | {"overhead": {"cpu": "250m"}}
    assert shape_of(pod_spec_from(admitted), namespace="shop", labels={}).runtime_class == ""


def test_a_class_that_is_not_there_is_said() -> None:
    demand = only_demand(ClusterView())
    placement = place(Problem(ClusterView(nodes=(node(),)), (), (), (demand,)))
    assert placement.assumptions == (
        "CapacityBuffer/shop/web: RuntimeClass kata does not exist: its overhead is not counted",
    )


def test_daemon_pods_have_it_too_whichever_is_read_first() -> None:
    store = ViewStore()
    template = {"spec": {"runtimeClassName": "kata", "containers": [{"name": "main"}]}}
    store.put(DAEMON_SETS, {"metadata": {"namespace": "system", "name": "agent"}, "spec": {"template": template}})
    assert store.view().daemon_sets[0].shape.requests.get(CPU) == 0
    store.put(RUNTIME_CLASSES, {"metadata": {"name": "kata"}, "overhead": {"podFixed": {"cpu": "250m"}}})
    assert store.view().daemon_sets[0].shape.requests.get(CPU) == 250


# One slip of the hand must not stop every pass.


@pytest.mark.parametrize("replicas", [MOST_CHUNKS + 1, 2_147_483_647, 10**400])
def test_no_more_is_placed_than_a_cluster_can_have_pods(replicas: int) -> None:
    declared = Declared(buffers=(buffer(replicas=replicas),), workloads=(deployment(),))
    (found,), findings = buffer_demands(declared, ClusterView(), dialect=Dialect.KARPENTER)
    assert found.desired == replicas
    assert [group.count for group in found.groups] == [MOST_CHUNKS]
    assert [finding.code for finding in findings] == ["buffer-too-large"]
    assert all(len(finding.message) < 200 for finding in findings)
    assert len(found.conditions[0].message) < 100


def test_the_largest_possible_size_is_taken() -> None:
    declared = Declared(buffers=(buffer(replicas=MOST_CHUNKS),), workloads=(deployment(),))
    (found,), findings = buffer_demands(declared, ClusterView(), dialect=Dialect.KARPENTER)
    assert [group.count for group in found.groups] == [MOST_CHUNKS]
    assert findings == ()

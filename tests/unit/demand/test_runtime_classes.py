"""Chunks of pods with a RuntimeClass need room for its overhead, as the real pods will."""

from __future__ import annotations

from dataclasses import replace

from reconciler.cluster.resources import DAEMON_SETS, RUNTIME_CLASSES
from reconciler.cluster.view import ViewStore
from reconciler.demand.combine import demands
from reconciler.demand.dialect import Dialect
from reconciler.manifests.pods.pod_shape import pod_spec_from, shape_of
from reconciler.model.declared import Declared
from reconciler.model.demand import Demand
from reconciler.model.pods import RuntimeClass
from reconciler.model.quantity import CPU, Resources
from reconciler.model.requirements import Toleration
from reconciler.model.view import ClusterView
from reconciler.placement.place import place
from reconciler.placement.problem import Problem
from tests.builders import buffer, deployment, node, pod, shape

KATA = RuntimeClass(
    "kata",
    overhead=Resources.parse({"cpu": "250m"}),
    node_selector=(("runtime", "kata"),),
    tolerations=(Toleration("kata", "Exists"),),
)
IN_KATA = replace(shape(node_selector={"disk": "ssd"}), runtime_class="kata")


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

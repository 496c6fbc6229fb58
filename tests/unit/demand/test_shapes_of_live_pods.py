"""Shape and percent base of a workload whose pods live: each autoscaler takes another, and so does each dialect."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from reconciler.model.buffers import Dialect
from reconciler.model.pods import Pod, Workload
from reconciler.model.refs import ObjectRef
from reconciler.model.requirements import Toleration
from reconciler.model.view import ClusterView
from tests.builders import buffer, deployment, pod, selects, shape
from tests.unit.demand.test_buffers import NOON, ask_one, readiness


def web_pod(name: str = "web-1", cpu: str = "1", *, hours: int = 1, **fields: object) -> Pod:
    """A pod of the Deployment below, so many hours old at noon."""
    labels = {"app": "web", "pod-template-hash": "5d"}
    live = pod(name, pod_shape=shape(cpu, labels=labels), created=NOON - timedelta(hours=hours))
    return replace(live, **fields)  # type: ignore[arg-type]


def selecting(**fields: object) -> Workload:
    return deployment(replicas=20, selector=selects(), **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(("dialect", "count"), [(Dialect.KARPENTER, 2), (Dialect.CLUSTER_AUTOSCALER, 1)])
def test_the_base_of_a_percentage_is_the_spec_or_what_is_observed(dialect: Dialect, count: int) -> None:
    scaling = selecting(observed_replicas=10)
    view = ClusterView(pods=(web_pod(),))
    tenth = buffer(replicas=None, percentage=10)
    demand, (finding,) = ask_one(tenth, workloads=[scaling], view=view, dialect=dialect)
    assert demand.desired == count
    assert finding.code == "dialects-differ"
    assert "Karpenter" in finding.message
    assert "Cluster Autoscaler" in finding.message


@pytest.mark.parametrize("pods", [(), (web_pod(deleting=True),), (replace(web_pod(), namespace="other"),)])
@pytest.mark.parametrize("dialect", list(Dialect))
def test_what_is_observed_without_a_live_pod_is_no_base(dialect: Dialect, pods: tuple[Pod, ...]) -> None:
    tenth = buffer(replicas=None, percentage=10)
    view = ClusterView(pods=pods)
    demand, findings = ask_one(tenth, workloads=[selecting(observed_replicas=0)], view=view, dialect=dialect)
    assert demand.desired == 2
    assert findings == []


def test_what_webhooks_added_counts_for_cluster_autoscaler() -> None:
    view = ClusterView(pods=(web_pod("web-old", "1", hours=3), web_pod("web-new", "1500m"), web_pod("db", "4")))
    view = replace(view, pods=(*view.pods[:2], replace(view.pods[2], shape=shape("4", labels={"app": "db"}))))
    answers = {dialect: ask_one(buffer(), workloads=[selecting()], view=view, dialect=dialect) for dialect in Dialect}
    cpus = {dialect: demand.groups[0].shape.requests.get("cpu") for dialect, (demand, _) in answers.items()}
    assert cpus == {Dialect.KARPENTER: 1000, Dialect.CLUSTER_AUTOSCALER: 1500}
    demand, (finding,) = answers[Dialect.CLUSTER_AUTOSCALER]
    assert demand.explanation[-1] == "chunks are like web-new, the newest pod of Deployment/shop/web"
    assert finding.code == "dialects-differ"
    assert finding.message == (
        "chunks are like the newest live pod here: cpu 1, memory 1Gi in the template, cpu 1500m, memory 1Gi in web-new"
    )


@pytest.mark.parametrize(("cpu", "code"), [("1500m", "chunk-too-small"), ("500m", "dialects-differ")])
def test_a_pod_that_asks_for_more_than_its_template_may_not_fit_where_a_chunk_does(cpu: str, code: str) -> None:
    view = ClusterView(pods=(web_pod(cpu=cpu),))
    _, (finding,) = ask_one(buffer(), workloads=[selecting()], view=view, dialect=Dialect.KARPENTER)
    assert finding.code == code


def test_labels_and_tolerations_that_every_live_pod_has_are_no_difference() -> None:
    defaulted = Toleration("node.kubernetes.io/not-ready", "Exists", "", "NoExecute")
    alike = web_pod(shape=shape(labels={"app": "web", "pod-template-hash": "5d"}, tolerations=[defaulted]))
    demand, findings = ask_one(
        buffer(), workloads=[selecting()], view=ClusterView(pods=(alike,)), dialect=Dialect.CLUSTER_AUTOSCALER
    )
    assert demand.desired == 3
    assert findings == []


def test_kinds_of_other_projects_may_have_the_names_of_kubernetes_own() -> None:
    advanced = ObjectRef("apps.kruise.io", "StatefulSet", "shop", "web")
    theirs = Workload(advanced, None, 10, selector=selects())
    tenth = replace(buffer(replicas=None), target=advanced, percentage=20)
    demand, _ = ask_one(tenth, workloads=[theirs], view=ClusterView(pods=(web_pod(),)))
    assert demand.desired == 2
    missing, (finding,) = ask_one(tenth, workloads=[])
    assert readiness(missing) == ("False", "ScalableRefNotFound")
    assert finding.message == "not ready: StatefulSet/shop/web of apps.kruise.io does not exist"


@pytest.mark.parametrize("group", ["batch", "extensions", "networking.k8s.io"])
def test_kubernetes_has_each_kind_in_one_group(group: str) -> None:
    demand, (finding,) = ask_one(replace(buffer(), target=ObjectRef(group, "Deployment", "shop", "web")))
    assert readiness(demand) == ("False", "ResolutionFailed")
    assert finding.code == "target-in-wrong-group"

"""What headroom takes from each kind of API object."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from reconciler.cluster.decoding.decode import decode
from reconciler.cluster.decoding.workloads import NamespaceLabels
from reconciler.cluster.resources import (
    CAPACITY_BUFFERS,
    CRON_JOBS,
    DAEMON_SETS,
    DEPLOYMENTS,
    JOBS,
    NAMESPACES,
    NODE_CLAIMS,
    NODES,
    POD_DISRUPTION_BUDGETS,
    PODS,
    PRIORITY_CLASSES,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    RESOURCE_QUOTAS,
    Resource,
)
from reconciler.model.pods import DaemonSet, PodDisruptionBudget, PriorityClass, ResourceQuota
from reconciler.model.quantity import Resources
from reconciler.model.refs import ObjectRef
from reconciler.model.requirements import LabelSelector, Operator, Requirement
from reconciler.model.view import LiveObject
from tests.unit.cluster.documents import buffer, deployment, managed, named, node_claim, pod


def value(resource: Resource, document: dict[str, Any]) -> Any:
    decoded = decode(resource, document)
    assert decoded.problem == ""
    return decoded.value


@pytest.mark.parametrize(
    "conditions", [[], *([{"type": "Ready", "status": status}] for status in ("False", "Unknown"))]
)
def test_a_node_that_does_not_say_it_is_ready_is_not(conditions: list[dict[str, str]]) -> None:
    found = value(NODES, {"metadata": {"name": "new"}, "status": {"conditions": conditions}})
    assert (found.ready, found.allocatable) == (False, Resources())


@pytest.mark.parametrize(("written", "expected"), [("Never", None), (None, timedelta(hours=720))])
def test_expire_after(written: str | None, expected: timedelta | None) -> None:
    document = node_claim()
    document["spec"]["expireAfter"] = written
    assert value(NODE_CLAIMS, document).expire_after == expected


@pytest.mark.parametrize(
    ("status", "reason", "failure"),
    [
        ("Unknown", "LaunchFailed", "no free address"),
        ("Unknown", "AwaitingReconciliation", ""),
        ("True", "Launched", ""),
    ],
)
def test_why_karpenter_could_not_launch_a_node_claim(status: str, reason: str, failure: str) -> None:
    document = node_claim()
    launched = {"type": "Launched", "status": status, "reason": reason, "message": "no free address"}
    document["status"]["conditions"] = [launched]
    assert value(NODE_CLAIMS, document).launch_failure == failure


def test_a_pending_pod_may_be_gated() -> None:
    document = pod(node=None, phase="Pending")
    document["spec"]["schedulingGates"] = [{"name": "example.com/quota"}]
    found = value(PODS, document)
    assert (found.node_name, found.gated) == (None, True)


def test_of_a_pods_annotations_only_those_that_headroom_acts_on() -> None:
    document = pod()
    document["metadata"]["annotations"] = {"karpenter.sh/do-not-disrupt": "true", "prometheus.io/scrape": "true"}
    assert value(PODS, document).annotations == (("karpenter.sh/do-not-disrupt", "true"),)


@pytest.mark.parametrize(
    ("entries", "manager"),
    [
        ([managed("kubectl-client-side-apply", {"f:spec": {"f:replicas": {}}})], "kubectl-client-side-apply"),
        ([managed("headroom", {"f:spec": {"f:replicas": {}}})], None),
        ([managed("argocd", {"f:spec": {"f:template": {}}})], None),
        (
            [
                managed("argocd", {"f:spec": {"f:replicas": {}}}),
                managed("kube-controller-manager", {"f:spec": {"f:replicas": {}}}, subresource="scale"),
            ],
            "kube-controller-manager",
        ),
    ],
)
def test_who_decides_a_workloads_replicas(entries: list[dict[str, Any]], manager: str | None) -> None:
    assert value(DEPLOYMENTS, deployment(managed_fields=entries)).replicas_manager == manager


def test_old_revisions_of_a_deployment_are_left_out() -> None:
    document = deployment("web-abc", replicas=0)
    document["metadata"]["ownerReferences"] = [{"kind": "Deployment", "name": "web"}]
    assert value(REPLICA_SETS, document) is None


def test_a_replication_controllers_selector_is_a_bare_map() -> None:
    document = deployment()
    document["spec"]["selector"] = {"app": "web"}
    assert value(REPLICATION_CONTROLLERS, document).selector == LabelSelector((("app", "web"),))


def test_jobs_have_their_size_in_parallelism() -> None:
    job = named("j", spec={"parallelism": 5, "template": deployment()["spec"]["template"]})
    cron = named("c", spec={"jobTemplate": {"spec": job["spec"]}})
    assert value(JOBS, job).replicas == 5
    assert value(CRON_JOBS, cron).replicas == 5
    assert value(CRON_JOBS, cron).shape == value(JOBS, job).shape


@pytest.mark.parametrize(
    ("spec", "status", "left"),
    [
        ({"parallelism": 5}, {}, 5),
        ({}, {}, 1),
        ({"parallelism": 5, "completions": 8}, {"succeeded": 2}, 5),
        ({"parallelism": 5, "completions": 8}, {"succeeded": 6}, 2),
        ({"parallelism": 5, "completions": 3}, {}, 3),
        ({"completions": 1}, {"succeeded": 1}, 0),
        ({"parallelism": 5, "completions": 8, "suspend": True}, {}, 0),
        ({"parallelism": 5, "completions": 8, "suspend": False}, {}, 5),
        ({"parallelism": 5, "completions": 8}, {"conditions": [{"type": "Complete", "status": "True"}]}, 0),
        ({"parallelism": 5, "completions": 8}, {"conditions": [{"type": "FailureTarget", "status": "True"}]}, 0),
        ({"parallelism": 5, "completions": 8}, {"conditions": [{"type": "Failed", "status": "False"}]}, 5),
        ({"parallelism": 5, "completions": 8}, {"conditions": [{"type": "Suspended", "status": "True"}]}, 5),
        # Pods that share a queue of work: after the first success no new one is made.
        ({"parallelism": 5}, {"succeeded": 1, "active": 3}, 3),
        ({"parallelism": 5}, {"succeeded": 1}, 0),
        ({"parallelism": 0, "completions": 8}, {}, 0),
    ],
)
def test_a_job_asks_for_what_is_left_of_it(spec: dict[str, Any], status: dict[str, Any], left: int) -> None:
    assert value(JOBS, named("j", spec=spec, status=status)).replicas == left


def test_a_suspended_cron_job_makes_no_jobs() -> None:
    spec = {"jobTemplate": {"spec": {"parallelism": 4, "completions": 3}}}
    assert value(CRON_JOBS, named("c", spec=spec)).replicas == 3
    assert value(CRON_JOBS, named("c", spec={**spec, "suspend": True})).replicas == 0


CLONE_SETS = Resource("apps.kruise.io", "CloneSet", "clonesets", ("v1alpha1",), builtin=False)


@pytest.mark.parametrize(
    ("spec", "status"),
    [
        ({"selector": {"matchLabels": {"app": "web"}}}, {}),
        ({}, {"selector": "app=web"}),
        ({"selector": {"matchLabels": {"app": "other"}}}, {"labelSelector": "app in (web)"}),
        ({"selector": {"app": "web"}}, {"selector": ""}),
    ],
)
def test_a_kind_with_a_scale_is_what_its_scale_tells(spec: dict[str, Any], status: dict[str, Any]) -> None:
    document = deployment(managed_fields=[managed("hpa", {"f:spec": {"f:replicas": {}}}, subresource="scale")])
    document["spec"] = {"replicas": 5, "template": document["spec"]["template"], **spec}
    document["status"] = {"replicas": 4, "conditions": "odd", **status}
    found = value(CLONE_SETS, document)
    assert found.ref == ObjectRef("apps.kruise.io", "CloneSet", "shop", "web")
    assert (found.replicas, found.observed_replicas, found.replicas_manager) == (5, 4, "hpa")
    assert found.shape is None, "its template is not what a cluster shows"
    assert found.selector.matches({"app": "web"})
    assert not found.selector.matches({"app": "other"})


@pytest.mark.parametrize("spec", [None, [], "x", {"replicas": "many", "selector": 5}, {"selector": {}}])
def test_a_kind_with_a_scale_may_have_fields_of_any_type(spec: Any) -> None:
    found = value(CLONE_SETS, named("web", spec=spec, status=spec))
    assert (found.replicas, found.observed_replicas, found.selector) == (None, None, None)


def test_a_daemon_set() -> None:
    found = value(DAEMON_SETS, deployment("agent"))
    assert isinstance(found, DaemonSet)
    assert (found.namespace, found.name, found.shape.requests.get("cpu")) == ("shop", "agent", 1000)


def test_a_priority_class() -> None:
    document = {"metadata": {"name": "low"}, "value": -10, "globalDefault": True}
    assert value(PRIORITY_CLASSES, document) == PriorityClass("low", -10, global_default=True)


def test_of_a_quota_what_pods_request() -> None:
    hard = {"requests.cpu": "4", "memory": "8Gi", "limits.cpu": "8", "count/secrets": "5", "requests.storage": "1Ti"}
    status = {"hard": hard, "used": {"requests.cpu": "1500m", "memory": "0"}}
    limits, used = (("cpu", 4000), ("memory", 8 * 2**30)), Resources.parse({"cpu": "1500m"})
    found = value(RESOURCE_QUOTAS, named("q", spec={"hard": hard}, status=status))
    assert found == ResourceQuota("shop", "q", limits, used)
    assert value(RESOURCE_QUOTAS, named("q", spec={"hard": {"cpu": "0"}})).hard == (("cpu", 0),), "zero forbids"


def scoped(*expressions: dict[str, Any]) -> dict[str, Any]:
    spec = {
        "hard": {"cpu": "4"},
        "scopes": ["NotTerminating"],
        "scopeSelector": {"matchExpressions": list(expressions)},
    }
    return named("q", spec=spec)


def test_a_quota_has_its_scopes_from_both_places() -> None:
    classes = {"scopeName": "PriorityClass", "operator": "In", "values": ["high", "low"]}
    assert value(RESOURCE_QUOTAS, scoped(classes, {"scopeName": "NotBestEffort", "operator": "Exists"})).scopes == (
        Requirement("NotTerminating", Operator.EXISTS),
        Requirement("PriorityClass", Operator.IN, ("high", "low")),
        Requirement("NotBestEffort", Operator.EXISTS),
    )
    decoded = decode(RESOURCE_QUOTAS, scoped({"scopeName": "PriorityClass", "operator": "Near"}))
    problem = "ResourceQuota/shop/q cannot be read: operator 'Near' of 'PriorityClass' does not exist"
    assert (decoded.value, decoded.problem) == (None, problem), "a scope that cannot be read is a gap"


def test_a_pod_disruption_budget_has_what_may_be_evicted_now() -> None:
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "queue"}}}
    document = named("queue", spec=spec, status={"disruptionsAllowed": 2, "expectedPods": 3, "currentHealthy": 3})
    selector = LabelSelector((("app", "queue"),))
    assert value(POD_DISRUPTION_BUDGETS, document) == PodDisruptionBudget("shop", "queue", selector, 2)
    assert value(POD_DISRUPTION_BUDGETS, named("new", spec={})) == PodDisruptionBudget("shop", "new")


@pytest.mark.parametrize(
    ("spec", "none"),
    [
        ({"maxUnavailable": 0}, True),
        ({"maxUnavailable": "0%"}, True),
        ({"minAvailable": "100%"}, True),
        ({"maxUnavailable": 1}, False),
        ({"minAvailable": 3}, False),
        ({"minAvailable": "99%"}, False),
    ],
    ids=str,
)
def test_a_pod_disruption_budget_that_lets_none_go_whatever_there_is(spec: dict[str, object], *, none: bool) -> None:
    found = value(POD_DISRUPTION_BUDGETS, named("queue", spec=spec))
    assert found == PodDisruptionBudget("shop", "queue", allows_none=none)


def test_a_namespace() -> None:
    assert value(NAMESPACES, {"metadata": {"name": "shop", "labels": {"team": "red"}}}) == NamespaceLabels(
        "shop", {"team": "red"}
    )


def test_a_declared_kind_is_kept_whole_but_for_what_changes_with_every_write() -> None:
    conditions: dict[str, object] = {
        'k:{"type":"Ready"}': {".": {}, "f:type": {}, "f:message": {}},
        'k:{"type":"Full"}': {".": {}, "f:type": {}, "f:status": {}},  # somebody else has given it another message
        "k:odd": {},
    }
    entry = managed("karpenter", {"f:status": {"f:conditions": conditions, "f:replicas": {}}})
    document = buffer(managedFields=[{**entry, "time": "2026-11-22T12:00:00Z"}, managed("kubectl", {"f:spec": {}})])
    found = value(CAPACITY_BUFFERS, document)
    assert isinstance(found, LiveObject)
    assert found.ref == ObjectRef("autoscaling.x-k8s.io", "CapacityBuffer", "shop", "web")
    theirs = {"status.conditions", "status.conditions.Ready", "status.replicas"}
    assert found.managers == {"karpenter": frozenset(theirs), "kubectl": frozenset({"spec"})}
    assert found.status_writes == {"karpenter": "2026-11-22T12:00:00Z"}
    assert "managedFields" not in found.body["metadata"]
    assert "resourceVersion" not in found.body["metadata"]
    assert found.body["spec"] == buffer()["spec"]


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        (pod(node=7), "expected `str | null`, got `int` at spec.nodeName"),
        (pod(cpu="-3"), "resources of container main: cpu is -3, which is negative"),
    ],
    ids=["a number where a text belongs", "less than nothing"],
)
def test_a_pod_that_cannot_be_read_is_named_with_the_field(document: dict[str, Any], problem: str) -> None:
    decoded = decode(PODS, document)
    assert (decoded.value, decoded.problem) == (None, f"Pod/shop/web-1 cannot be read: {problem}")

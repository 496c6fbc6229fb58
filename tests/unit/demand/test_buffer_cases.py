"""Every case of the two autoscalers' buffers, with the places where headroom decides otherwise and why."""

from __future__ import annotations

import pytest

from reconciler.demand.buffers import LIMITED, READY, buffer_demands
from reconciler.demand.dialect import Dialect
from reconciler.demand.quota import in_scope
from reconciler.demand.size import Base, limit_count, percentage_count, size_of
from reconciler.model.conditions import ConditionStatus
from reconciler.model.declared import Declared
from reconciler.model.demand import Demand
from reconciler.model.quantity import Resources
from reconciler.model.view import ClusterView
from tests.unit.demand.buffer_cases import Case, buffer, cases, pod_shape, quota, resolved, with_quotas, workload

KARPENTER, CA = "buffers_karpenter.yaml", "buffers_ca.yaml"
DEVIATIONS: dict[str, tuple[int | None, str, str]] = {
    # case → (chunks, reason of ReadyForProvisioning, why)
    "container-limits-do-not-become-requests": (
        2,
        "Resolved",
        "the API server turns limits into requests when the pods come, so chunks without them would be too small",
    ),
    "replication-controller-unsupported": (
        None,
        "ScalableRefNotFound",
        "ReplicationControllers are supported here; this one is not there",
    ),
    "replication-controller-empty-group-fails": (2, "Resolved", "the empty API group is the core group's name"),
    "both-references-scalable-wins": (None, "ResolutionFailed", "the CRD's own rule refuses both references"),
}


def ready(demand: Demand) -> tuple[bool, str]:
    (condition,) = [item for item in demand.conditions if item.type == READY]
    return condition.status is ConditionStatus.TRUE, condition.reason


def by_name(case: Case) -> str:
    return str(case["name"])


@pytest.mark.parametrize("case", cases(KARPENTER, "resolve"), ids=by_name)
def test_a_buffer_as_karpenter_resolves_it(case: Case) -> None:
    demand, _ = resolved(case, Dialect.KARPENTER)
    (expected,) = case["expect"]["conditions"]
    count, reason, _ = DEVIATIONS.get(case["name"], (case["expect"]["replicas"], expected["reason"], ""))
    assert demand.desired == count
    assert ready(demand) == (count is not None, reason)
    assert sum(group.count for group in demand.groups) == (count or 0)


@pytest.mark.parametrize("case", cases(CA, "resolve"), ids=by_name)
def test_a_buffer_as_cluster_autoscaler_resolves_it(case: Case) -> None:
    """Reasons are Karpenter's in both dialects, so only readiness is compared here."""
    demand, _ = resolved(case, Dialect.CLUSTER_AUTOSCALER)
    count, _, _ = DEVIATIONS.get(case["name"], (case["expect"]["replicas"], "", ""))
    assert demand.desired == count
    assert ready(demand)[0] == (count is not None)


def test_every_deviation_is_from_a_case() -> None:
    names = {case["name"] for file in (KARPENTER, CA) for case in cases(file, "resolve")}
    assert set(DEVIATIONS) <= names


@pytest.mark.parametrize("case", cases(CA, "number_of_pods"), ids=by_name)
def test_the_number_of_chunks_as_cluster_autoscaler_counts(case: Case) -> None:
    given = case["input"]
    base = given.get("scalableReplicas")
    size = size_of(
        buffer(given),
        Resources.parse(given["podRequests"]),
        None if base is None else Base(base, "Deployment/default/d"),
        Dialect.CLUSTER_AUTOSCALER,
    )
    assert size.count == case["expect"].get("replicas")
    assert (size.problem is not None) == case["expect"].get("error", False)


@pytest.mark.parametrize("case", cases(KARPENTER, "limit_replicas"), ids=by_name)
def test_how_many_chunks_fit_into_limits(case: Case) -> None:
    given = case["input"]
    limits = buffer(given).limits
    assert limits is not None
    count = limit_count(pod_shape(given["podSpec"]).requests, limits)
    assert (count is not None) == case["expect"]["applies"]
    assert count == case["expect"]["replicas"]


@pytest.mark.parametrize("case", cases(KARPENTER, "percentage"), ids=by_name)
def test_percentages_are_rounded_up(case: Case) -> None:
    given = case["input"]
    assert percentage_count(given["scalableReplicas"], given["percentage"]) == case["expect"]["replicas"]


@pytest.mark.parametrize("case", cases(CA, "quota"), ids=by_name)
def test_quotas_cap_buffers_oldest_first(case: Case) -> None:
    demands = with_quotas(case)
    assert [demand.desired for demand in demands] == case["expect"]["replicas"]
    assert [demand.limited_by.split(", ") if demand.limited_by else [] for demand in demands] == case["expect"][
        "limitedBy"
    ]


@pytest.mark.parametrize("case", cases(CA, "quota_scope"), ids=by_name)
def test_a_quota_counts_only_pods_in_its_scope(case: Case) -> None:
    scopes = quota(case["input"]).scopes
    assert in_scope(pod_shape(case["input"]["podSpec"]), scopes) is case["expect"]["matches"]


@pytest.mark.parametrize("case", cases(CA, "filter_strategy"), ids=by_name)
def test_other_strategies_are_not_provisioned(case: Case) -> None:
    """Cluster Autoscaler ignores them without a word; here the condition and a finding say so."""
    buffers = tuple(
        buffer({"provisioningStrategy": strategy, "podTemplateRef": {"name": "t"}, "replicas": 1}, name)
        for name, strategy in case["input"]["buffers"].items()
    )
    demands, findings = buffer_demands(Declared(buffers=buffers), ClusterView(), dialect=Dialect.CLUSTER_AUTOSCALER)
    assert [demand.ref.name for demand in demands if demand.desired is not None] == case["expect"]["kept"]
    assert [finding.code for finding in findings] == ["unknown-strategy"] * len(demands)


@pytest.mark.parametrize("case", cases(KARPENTER, "steps"), ids=by_name)
def test_a_buffer_that_is_deleted_asks_for_nothing(case: Case) -> None:
    first, last = case["input"]["steps"]
    templates = tuple(workload(document) for document in first["apply"])
    declared = [Declared(buffers=(buffer(first["buffer"]),), workloads=templates), Declared(workloads=templates)]
    assert last == {"deleteBuffer": True}
    counts = []
    for state in declared:
        demands, _ = buffer_demands(state, ClusterView(), dialect=Dialect.KARPENTER)
        counts.append(sum(group.count for demand in demands for group in demand.groups))
    assert counts == [step["virtualPods"] for step in case["expect"]["after"]]


@pytest.mark.parametrize("case", cases(CA, "steps"), ids=by_name)
def test_a_buffer_that_is_not_ready_takes_nothing_from_a_quota(case: Case) -> None:
    (step,) = case["input"]["steps"]
    buffers = tuple(buffer(spec, name) for name, spec in sorted(step["buffers"].items()))
    demands, _ = buffer_demands(
        Declared(buffers=buffers, workloads=tuple(workload(document) for document in step["apply"])),
        ClusterView(resource_quotas=(quota(step["quota"]),)),
        dialect=Dialect.CLUSTER_AUTOSCALER,
    )
    (after,) = case["expect"]["after"]
    for demand in demands:
        limited = next(
            (item.status is ConditionStatus.TRUE for item in demand.conditions if item.type == LIMITED), None
        )
        assert {"replicas": demand.desired, "limited": limited} == after[demand.ref.name]

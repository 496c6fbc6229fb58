"""What Prometheus reads after passes, polls and requests."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from prometheus_client.parser import text_string_to_metric_families

from reconciler.model.changes import Annotate, Apply, ChangeSet, Outcome, WriteResult
from reconciler.model.declared import SourceTree
from reconciler.model.errors import Failure, Invalid, Stalled, Transient, Waiting
from reconciler.model.refs import ObjectRef
from reconciler.ports import PassResult
from reconciler.telemetry.metrics import MergedMetrics, Metrics
from tests.fakes.passes import wrote
from tests.plans import full_plan

NOW = datetime(2026, 11, 21, 7, 30, tzinfo=UTC)
LATER = datetime(2026, 11, 21, 7, 35, tzinfo=UTC)


def value(metrics: Metrics, name: str, /, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(name, labels)


def claim(name: str) -> ObjectRef:
    return ObjectRef("karpenter.sh", "NodeClaim", "", name)


def test_before_the_first_pass_the_counters_are_there_and_the_gauges_are_not() -> None:
    text, content_type = Metrics().exposition()
    assert content_type.startswith("text/plain")
    assert b'headroom_reconcile_total{result="applied"} 0.0' in text
    assert b"headroom_settled" not in text
    assert b"_created" not in text
    assert list(text_string_to_metric_families(text.decode()))


@pytest.mark.parametrize(
    ("result", "counted_as"),
    [
        (PassResult(), "unchanged"),
        (PassResult(change_set=wrote(Outcome.UNCHANGED)), "unchanged"),
        (PassResult(change_set=wrote(Outcome.UNCHANGED, Outcome.APPLIED)), "applied"),
        (PassResult(change_set=wrote(Outcome.APPLIED, Outcome.REFUSED)), "partial"),
        (PassResult(change_set=wrote(Outcome.APPLIED, Outcome.SKIPPED)), "applied"),
        (PassResult(failure=Transient("no answer")), "transient"),
        (PassResult(failure=Waiting("not synced")), "waiting"),
        (PassResult(failure=Stalled("gone", reason="GitOperationFailed")), "stalled"),
        (PassResult(failure=Invalid("a broken template")), "invalid"),
    ],
)
def test_passes_are_counted_by_their_result(result: PassResult, counted_as: str) -> None:
    metrics = Metrics()
    metrics.observe(result, now=NOW)
    assert value(metrics, "headroom_reconcile_total", result=counted_as) == 1


def test_a_failing_pass_is_an_attempt_and_no_success() -> None:
    metrics = Metrics()
    metrics.observe(PassResult(), now=NOW)
    metrics.observe(PassResult(failure=Transient("no answer")), now=LATER)
    assert value(metrics, "headroom_reconcile_last_attempt_timestamp_seconds") == LATER.timestamp()
    assert value(metrics, "headroom_reconcile_last_success_timestamp_seconds") == NOW.timestamp()


def test_the_plan_shows_as_gauges() -> None:
    metrics = Metrics()
    metrics.observe(PassResult(plan=full_plan()), now=NOW)
    assert [value(metrics, "headroom_plan_nodeclaims", action=action) for action in ("create", "hold", "release")] == [
        1, 1, 1,
    ]  # fmt: skip
    cart = {"kind": "CapacityBuffer", "namespace": "shop", "name": "cart"}
    assert value(metrics, "headroom_plan_unplaced_chunks", **cart) == 4
    assert value(metrics, "headroom_plan_desired_chunks", **cart) == 4
    broken = {"kind": "CapacityBuffer", "namespace": "shop", "name": "broken"}
    assert value(metrics, "headroom_plan_desired_chunks", **broken) is None
    assert value(metrics, "headroom_demand_ready", **broken) == 0


def test_a_pass_without_a_plan_leaves_the_last_plan_on_show() -> None:
    metrics = Metrics()
    metrics.observe(PassResult(plan=full_plan()), now=NOW)
    metrics.observe(PassResult(failure=Transient("no answer")), now=LATER)
    assert value(metrics, "headroom_plan_nodeclaims", action="create") == 1


def test_the_proposals_own_names_tell_what_stands_for_each_buffer() -> None:
    metrics = Metrics()
    metrics.observe(PassResult(plan=full_plan()), now=NOW)
    web = {"kind": "CapacityBuffer", "namespace": "shop", "name": "web"}
    assert value(metrics, "karpenter_buffer_capacity_cpu_cores", **web) == 1
    assert value(metrics, "karpenter_buffer_capacity_memory_bytes", **web) == 2**30


def test_node_claims_made_and_nodes_protected_are_counted_when_the_write_succeeded() -> None:
    plan = full_plan()
    created = plan.node_claims.create[0].name
    marks = (("karpenter.sh/do-not-disrupt", "true"),)
    writes = [
        WriteResult(Apply(claim(created), {}), Outcome.APPLIED),
        WriteResult(Annotate(claim("general-x"), marks), Outcome.APPLIED),
        WriteResult(Annotate(ObjectRef("", "Node", "", "node-x"), marks), Outcome.APPLIED),
        WriteResult(Annotate(claim("general-y"), (("karpenter.sh/do-not-disrupt", None),)), Outcome.APPLIED),
    ]
    metrics = Metrics()
    metrics.observe(PassResult(plan=plan, change_set=ChangeSet(tuple(writes))), now=NOW)
    assert value(metrics, "karpenter_buffer_nodeclaims_total", kind="CapacityBuffer") == 1
    assert value(metrics, "karpenter_buffer_consolidation_blocked_total", kind="CapacityBuffer") == 2
    assert value(metrics, "headroom_writes_total", kind="NodeClaim", action="annotate", outcome="applied") == 2

    refused = [WriteResult(result.write, Outcome.REFUSED) for result in writes]
    metrics.observe(PassResult(plan=plan, change_set=ChangeSet(tuple(refused))), now=LATER)
    assert value(metrics, "karpenter_buffer_nodeclaims_total", kind="CapacityBuffer") == 1
    assert value(metrics, "karpenter_buffer_consolidation_blocked_total", kind="CapacityBuffer") == 2


def test_a_node_that_is_protected_already_is_not_counted_again() -> None:
    """Only what it holds, or its taint, has changed."""
    plan = full_plan()
    (action, *_) = plan.node_claims.hold
    again = replace(plan, node_claims=replace(plan.node_claims, create=(), hold=(replace(action, node_claim=None),)))
    wrote = WriteResult(Annotate(ObjectRef("", "Node", "", action.node or ""), ()), Outcome.APPLIED)
    metrics = Metrics()
    metrics.observe(PassResult(plan=again, change_set=ChangeSet((wrote,))), now=NOW)
    assert value(metrics, "karpenter_buffer_consolidation_blocked_total", kind="CapacityBuffer") == 0


@pytest.mark.parametrize(
    ("tree", "failure"),
    [
        (SourceTree("main@sha1:abc", stalled=("GitOperationFailed", "the branch is gone")), None),
        (None, Stalled("the branch is gone", reason="GitOperationFailed")),
    ],
)
def test_a_stalled_source_shows_its_reason_until_it_is_over(tree: SourceTree | None, failure: Failure | None) -> None:
    metrics = Metrics()
    metrics.observe(PassResult(tree=tree, failure=failure), now=NOW)
    assert value(metrics, "headroom_source_stalled", reason="GitOperationFailed") == 1
    metrics.observe(PassResult(tree=SourceTree("main@sha1:def")), now=LATER)
    assert value(metrics, "headroom_source_stalled", reason="") == 0
    assert value(metrics, "headroom_git_revision_info", revision="main@sha1:def") == 1
    assert value(metrics, "headroom_git_revision_info", revision="main@sha1:abc") is None


def test_polls_and_requests_are_counted() -> None:
    metrics = Metrics()
    metrics.observe_poll("changed", 0.3)
    metrics.observe_poll("transient", 60)
    metrics.count_request("GET", "nodes", "200")
    metrics.set_leader(True)
    assert value(metrics, "headroom_git_polls_total", result="changed") == 1
    assert value(metrics, "headroom_git_poll_duration_seconds_sum") == 60.3
    assert value(metrics, "headroom_cluster_requests_total", method="GET", resource="nodes", code="200") == 1
    assert value(metrics, "headroom_leader") == 1


def test_a_replica_that_leads_no_longer_serves_nothing_that_may_be_outdated() -> None:
    """Alerts take the greatest value of all replicas: what blocked deletions when it lost the Lease was told until it led again."""
    metrics = Metrics()
    metrics.observe(PassResult(plan=full_plan()), now=NOW)
    cart = {"kind": "CapacityBuffer", "namespace": "shop", "name": "cart"}
    assert (value(metrics, "headroom_plan_blocked"), metrics.leads) == (1, True)
    metrics.set_leader(False)
    assert (value(metrics, "headroom_plan_blocked"), metrics.leads) == (None, False)
    assert value(metrics, "headroom_buffer_shortage_age_seconds", **cart) is None
    assert value(metrics, "headroom_reconcile_last_success_timestamp_seconds") == NOW.timestamp()
    metrics.set_leader(True)
    metrics.observe(PassResult(plan=full_plan()), now=LATER)
    assert value(metrics, "headroom_buffer_shortage_age_seconds", **cart) == 0, "others may have filled it meanwhile"


def test_two_daemons_in_one_process_do_not_share_their_metrics() -> None:
    first, second = Metrics(), Metrics()
    first.observe_poll("changed", 0.3)
    assert value(second, "headroom_git_polls_total", result="changed") is None


# Metrics of several clusters in one exposition.


def test_each_family_is_there_once_with_a_sample_for_each_cluster() -> None:
    one, other = Metrics(), Metrics()
    one.observe_poll("changed", 0.2)
    other.observe_poll("stalled", 0.1)
    other.count_request("GET", "pods", "200")
    text, _ = MergedMetrics({"production": one.registry, "staging": other.registry}).exposition()
    families = list(text_string_to_metric_families(text.decode()))
    assert len({family.name for family in families}) == len(families)
    samples = {
        (sample.name, sample.labels["cluster"], sample.labels.get("result")): sample.value
        for family in families
        for sample in family.samples
    }
    assert samples["headroom_git_polls_total", "production", "changed"] == 1
    assert samples["headroom_git_polls_total", "staging", "stalled"] == 1
    assert samples["headroom_git_poll_duration_seconds_count", "production", None] == 1
    assert all("cluster" in sample.labels for family in families for sample in family.samples)

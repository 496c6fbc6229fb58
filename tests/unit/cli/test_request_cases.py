"""What Cluster Autoscaler makes of ProvisioningRequests, asked of headroom as a person would: documents, a snapshot, `headroom plan`.

Where headroom does more, or otherwise, on purpose, the case is named here with the reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.case_files import Case, cases_in, for_each
from tests.unit.cli.request_cases import FILE, NAMESPACE, Snapshot, conditions_of
from tests.unit.cli.two_folders import Document

OTHERWISE: Mapping[str, str] = {
    "batch-timebox-zero": "all requests are decided in one pass, however long it takes",
    "batch-ignores-atomic": "requests of both classes are decided in one pass",
    "small-atomic-valid-until-not-enforced": "ValidUntilSeconds counts",
    "small-booking-partly-consumed-books-all-again": "what has been consumed is not booked again",
    "inject-instance-matches": "there is one headroom in a cluster, and it has no instance name",
    "inject-prefix-matches": "there is one headroom in a cluster, and it has no instance name",
    "inject-unknown-skipped": "a condition that says Unknown decides nothing",
    "class-instance-match": "there is one headroom in a cluster, and it has no instance name",
    "book-new": "it is asked for, and booked in the same pass",
    "book-not-found-check-capacity": "it is asked for again, and booked in the same pass",
    "book-instance-disables-atomic": "there is one headroom in a cluster, and it has no instance name",
    "gc-provisioned-false-ten-days-deleted": "one that was never provisioned fails first, and is collected later",
    "gc-booking-expired-ten-days": "requests that only the cluster has are never deleted; those of Git are",
}
ELSEWHERE = {
    "filter_consumers": "Karpenter makes nodes for pods, whatever they are annotated with",
    "filter_events": "events are aggregated by the API server",
    "alternation": "pods and requests are placed in one pass",
    "consumer_state": "Kueue's own code, which tests/e2e/test_kueue.py runs",
}


def cases(kind: str) -> pytest.MarkDecorator:
    return for_each(cases_in(FILE, kind))


def test_every_kind_of_case_is_asked_or_has_no_counterpart() -> None:
    asked = {mark.args[1][0]["kind"] for mark in _parametrized() if mark.args[0] == "case"}
    assert {case["kind"] for case in cases_in(FILE)} == asked | set(ELSEWHERE)
    assert set(OTHERWISE) <= {case["name"] for case in cases_in(FILE)}


def _parametrized() -> list[pytest.Mark]:
    tests = [value for name, value in globals().items() if name.startswith("test_")]
    return [mark for test in tests for mark in getattr(test, "pytestmark", ()) if mark.name == "parametrize"]


def asked_for(plan: Document) -> dict[str, int]:
    """Chunks by request; those that ask for nothing are left out."""
    return {row["name"]: row["desired"] for row in plan["demands"] if row["desired"]}


@cases("scale_up")
def test_one_pass(case: Case, tmp_path: Path) -> None:
    given, expected = case["input"], case["expect"]
    snapshot = Snapshot(tmp_path)
    snapshot.add_cluster(given["cluster"])
    for number, request in enumerate(given["requests"]):
        aged = {"ageSeconds": len(given["requests"]) - number, **request}
        snapshot.add_request(aged, request["podSets"])
    for pods in given.get("runningPods", ()):
        snapshot.add_pods(pods)
    plan = snapshot.planned()
    said = conditions_of(plan["demands"])
    new: dict[str, int] = {}
    for claim in plan["nodeClaims"]["create"]:
        new[claim["nodePool"]] = new.get(claim["nodePool"], 0) + 1
    assert new == expected["scaleUp"]
    differs = OTHERWISE_SAID.get(case["name"])
    for name, wanted in (expected.get("conditions", {}) if differs is None else differs).items():
        for kind, status, reason in wanted:
            if new and kind == "Provisioned":
                # Cluster Autoscaler says so once it has asked for the nodes; headroom once they are ready.
                assert (kind, "False", "AttemptUnderWay") in said[name]
            else:
                assert any(item[:2] == (kind, status) and reason in {None, item[2]} for item in said[name]), said
    if differs is None and "counts" in expected and not new:
        every = [item[:2] for items in said.values() for item in items]
        assert every.count(("Provisioned", "True")) == expected["counts"]["provisionedTrue"]
        assert every.count(("Failed", "True")) == expected["counts"]["failedTrue"]


OTHERWISE_SAID: Mapping[str, Mapping[str, Any]] = {
    "batch-timebox-zero": {
        "cpu-a": [["Provisioned", "True", "CapacityIsFound"]],
        "mem": [["Provisioned", "True", "CapacityIsFound"]],
    },
    "batch-ignores-atomic": {name: [["Provisioned", "True", "CapacityIsFound"]] for name in ("mem", "cpu-a", "atomic")},
    "small-atomic-valid-until-not-enforced": {"a": [["Failed", "True", "Expired"]]},
    "small-booking-partly-consumed-books-all-again": {"a": [["Provisioned", "True", "CapacityIsFound"]]},
}


@cases("inject")
def test_which_requests_are_asked_for(case: Case, tmp_path: Path) -> None:
    given, expected = case["input"], case["expect"]
    snapshot = Snapshot(tmp_path)
    snapshot.add_nodes(1)
    for request in given["requests"]:
        snapshot.add_request(request, [{"count": request["pods"], "cpu": "100m"}])
    asked = asked_for(snapshot.planned())
    if case["name"] == "inject-unknown-skipped":
        assert asked == {"unknown": 20}
    elif case["name"] in OTHERWISE:
        assert asked == {}
    else:
        name = expected["acceptedNow"]
        assert asked == ({name: expected["injectedPods"]} if name else {})


@cases("refresh")
def test_what_the_clock_ends(case: Case, tmp_path: Path) -> None:
    given, expected = case["input"], case["expect"]
    snapshot = Snapshot(tmp_path)
    snapshot.add_request({**given, "name": "case"}, [{"count": 1, "cpu": "1"}])
    said = {
        kind: (status, reason) for kind, status, reason in conditions_of(snapshot.planned()["demands"]).get("case", ())
    }
    for kind, status, reason in expected["conditions"]:
        assert said[kind][0] == status
        assert reason in {None, said[kind][1]}
    assert "Failed" in said or all(kind != "Failed" for kind, _, _ in expected["conditions"])
    if not expected["conditions"]:
        assert said == {}


@cases("should_book")
def test_what_is_booked(case: Case, tmp_path: Path) -> None:
    """There is room for one pod, and another request asks for it."""
    snapshot = Snapshot(tmp_path)
    snapshot.add_nodes(1, cpu="1")
    snapshot.add_request({**case["input"], "name": "case", "ageSeconds": 30}, [{"count": 1, "cpu": "1"}])
    other = {"name": "other", "class": "check-capacity.autoscaling.x-k8s.io", "ageSeconds": 10}
    snapshot.add_request(other, [{"count": 1, "cpu": "1"}])
    said = conditions_of(snapshot.planned()["demands"])
    booked = ("Provisioned", "False", "CapacityIsNotFound") in said["other"]
    assert booked == (True if case["name"] in OTHERWISE else case["expect"]["booked"])


@cases("booking_consumed")
def test_what_consumes_a_booking(case: Case, tmp_path: Path) -> None:
    given, expected = case["input"], case["expect"]
    snapshot = Snapshot(tmp_path)
    snapshot.add_nodes(1)
    request = {"name": given["requestName"], "class": given["class"], "conditions": [["Provisioned", "True", 60]]}
    assert given["requestNamespace"] == "ns"
    snapshot.add_request(request, [{"count": given["podCount"], "cpu": "1"}])
    annotations = {given["annotation"]: given["annotationValue"]}
    pods = {"node": "node-0", "count": given["scheduledPods"], "cpu": "1", "annotations": annotations}
    namespace = NAMESPACE if given["podNamespace"] == given["requestNamespace"] else given["podNamespace"]
    snapshot.add_pods(pods, namespace=namespace)
    plan = snapshot.planned()
    ended = [
        reason
        for kind, status, reason in conditions_of(plan["demands"])["pr"]
        if (kind, status) == ("BookingExpired", "True")
    ]
    assert ended == ([expected["bookingExpiredReason"]] if expected["bookingExpiredReason"] else [])
    assert bool(asked_for(plan)) == expected["booked"]


@cases("supported_class")
def test_which_classes_are_provided_for(case: Case, tmp_path: Path) -> None:
    given = case["input"]
    instance = given["processorInstanceParameter"]
    snapshot = Snapshot(tmp_path)
    snapshot.add_nodes(1)
    request = {
        "name": "case",
        "class": given["class"],
        "parameters": {"processorInstance": instance} if instance else {},
    }
    snapshot.add_request(request, [{"count": 1, "cpu": "1"}])
    supported = False if case["name"] in OTHERWISE else case["expect"]["supported"]
    assert asked_for(snapshot.planned()) == ({"case": 1} if supported else {})


@cases("request_pods")
def test_a_template_that_is_missing(case: Case, tmp_path: Path) -> None:
    given = case["input"]
    snapshot = Snapshot(tmp_path)
    snapshot.add_nodes(1)
    request = {"name": "case", "class": "check-capacity.autoscaling.x-k8s.io"}
    snapshot.add_request(request, [{"cpu": "1", **pod_set} for pod_set in given["podSets"]])
    (row,) = snapshot.planned()["demands"]
    assert case["expect"] == {"error": True}
    assert row["desired"] is None
    assert conditions_of([row])["case"] == [("Accepted", "False", "PodTemplateNotFound")]


@cases("delete_old")
def test_what_only_the_cluster_has_is_never_deleted(case: Case, tmp_path: Path) -> None:
    """Whoever made it sees to that; what ended and is in Git is collected."""
    snapshot = Snapshot(tmp_path)
    snapshot.add_request({**case["input"], "name": "case"}, [{"count": 1, "cpu": "1"}])
    assert snapshot.planned()["objects"] == []

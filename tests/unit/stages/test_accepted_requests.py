"""Which requests headroom provides for, what their parameters ask for, and which events tell of them: passes over the embedded cluster."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from reconciler.model.conditions import Condition, ConditionStatus
from reconciler.model.provisioning_requests import (
    RESERVED_TAINT,
    PodSet,
    ProvisioningRequest,
    RequestKind,
    RequestRules,
)
from reconciler.model.rules import PlacementRules
from reconciler.requests.life import record_of, valid_until
from reconciler.settings.settings import Settings
from tests.builders import manifest
from tests.fakes.clock import START
from tests.fakes.embedded import Document, node_pool, workload_ref
from tests.fakes.requests import ATOMIC, CHECK, MADE, RESERVE, BatchShop, pod_template, pods_of, request, request_ref

# Which requests headroom provides for, and with which parameters: passes over the embedded cluster.

ACCEPTED = ("True", "Accepted")


def provisioning_class(name: str = ATOMIC, **fields: object) -> Document:
    return {
        "apiVersion": "autoscaling.x-k8s.io/v1alpha1",
        "kind": "ProvisioningClass",
        "metadata": {"name": name},
        **fields,
    }


@pytest.mark.parametrize(("own", "seconds"), [({}, 30), ({"ValidUntilSeconds": "90"}, 90)])
def test_the_class_gives_a_parameter_that_the_request_does_not_set(own: dict[str, str], seconds: int) -> None:
    shop = BatchShop()
    shop.cluster.apply(provisioning_class(parameters={"ValidUntilSeconds": "30"}))
    shop.cluster.apply(pod_template(cpu="64"))
    shop.cluster.apply(request(class_name=ATOMIC, parameters=own))
    shop.wait(timedelta(seconds=seconds - 1))
    shop.run()
    assert "Failed" not in shop.conditions()
    shop.wait(timedelta(seconds=1))
    shop.run()
    assert shop.conditions()["Failed"] == ("True", "Expired")


def test_a_parameter_that_the_class_does_not_allow_keeps_the_request_waiting() -> None:
    shop = BatchShop().given(
        provisioning_class(allowedParameters=["ValidUntilSeconds"]),
        request(class_name=ATOMIC, parameters={"zone": "a", "ValidUntilSeconds": "600"}),
    )
    assert shop.conditions() == {"Accepted": ("False", "ParameterNotAllowed")}
    assert shop.claims() == []
    outcome = shop.outcome()
    assert outcome.demand.desired is None
    assert "does not allow zone; it allows ValidUntilSeconds" in outcome.conditions[0].message

    shop.settle(provisioning_class(allowedParameters=["ValidUntilSeconds", "zone"]))
    assert shop.conditions()["Accepted"] == ACCEPTED
    assert shop.conditions()["Provisioned"][0] == "True"


def test_a_booking_stays_when_its_class_becomes_stricter() -> None:
    shop = BatchShop().given(request(class_name=ATOMIC, parameters={"zone": "a"}))
    before = shop.conditions()
    shop.settle(provisioning_class(allowedParameters=[]))
    assert shop.conditions() == before
    assert len(shop.held()) == 1


def test_a_request_whose_pods_have_resource_claims_is_told_so_and_nothing_is_made() -> None:
    shop = BatchShop()
    claims = [{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}]
    shop.cluster.apply(pod_template("trainer", resourceClaims=claims))
    plan = shop.settle(request(class_name=ATOMIC, template="trainer"))
    assert [(item.code, str(item.ref), item.path) for item in plan.findings] == [
        ("resource-claims", "ProvisioningRequest/shop/train", "spec.podSets[0].podTemplateRef")
    ]
    assert (shop.claims(), shop.conditions()["Provisioned"][0]) == ([], "False")


@pytest.mark.parametrize("text", ["2026-01-01", "2026-01-01T00:00:00", "20260101", "yesterday", ""])
def test_a_time_without_a_zone_counts_as_none(text: str) -> None:
    """A snapshot may have one, which cannot be compared with the clock."""
    done = Condition("Provisioned", ConditionStatus.TRUE, "")
    asked = ProvisioningRequest(
        request_ref(),
        CHECK,
        (PodSet("train", 1),),
        created=text,
        uid="1",
        status_conditions=(done,),
        status_times=(("Provisioned", text),),
    )
    assert valid_until(asked, RequestKind.CHECK, RequestRules()) is None
    assert record_of(asked, {}, {}, START).provisioned == START


def test_a_request_waits_for_a_template_that_is_missing() -> None:
    shop = BatchShop()
    plan = shop.settle(request(class_name=ATOMIC, template="later"))
    assert shop.conditions() == {"Accepted": ("False", "PodTemplateNotFound")}
    assert shop.claims() == []
    assert [(item.code, str(item.ref), item.message) for item in plan.findings] == [
        ("target-not-found", "ProvisioningRequest/shop/train", "not ready: PodTemplate/shop/later does not exist")
    ]
    plan = shop.settle(pod_template("later"))
    assert shop.conditions()["Provisioned"][0] == "True"
    assert plan.findings == ()


def test_what_kept_a_request_from_being_accepted_is_why_it_failed() -> None:
    shop = BatchShop().given(request(class_name=ATOMIC, template="later"), passes=2)
    shop.wait(timedelta(minutes=10))
    shop.settle(passes=2)
    assert shop.conditions()["Failed"] == ("True", "Expired")
    (failed,) = (item for item in shop.outcome().conditions if item.type == "Failed")
    assert failed.message == "it could not be accepted in time: PodTemplate/shop/later does not exist"


def write_condition(shop: BatchShop, name: str, manager: str) -> None:
    """As an update of the status subresource, which is how Cluster Autoscaler writes."""

    def write(body: Document) -> None:
        written = {"type": name, "status": "True", "reason": name, "message": "", "lastTransitionTime": ""}
        body["status"] = {"conditions": [*(body.get("status") or {}).get("conditions", []), written]}

    shop.sandbox.change(request_ref(), write, manager)


def test_a_request_whose_conditions_another_manager_writes_is_left_to_it() -> None:
    shop = BatchShop()
    shop.cluster.apply(request(class_name=ATOMIC))
    write_condition(shop, "Accepted", "cluster-autoscaler")
    shop.settle()
    assert shop.conditions() == {"Accepted": ("True", "Accepted")}
    assert shop.claims() == []
    (said,) = shop.outcome().conditions
    assert (said.status.value, said.reason) == ("Unknown", "LeftToAnother")
    assert said.message == "cluster-autoscaler writes its conditions, so headroom stands down"


def test_what_was_made_is_handed_back_when_somebody_else_takes_the_request_over() -> None:
    shop = BatchShop().given(request(class_name=ATOMIC))
    assert len(shop.held()) == 1
    before = shop.conditions()
    write_condition(shop, "Failed", "cluster-autoscaler")
    shop.settle()
    assert shop.held() == []
    assert shop.conditions() == {**before, "Failed": ("True", "Failed")}


# Passes over requests that ask for more than capacity: how long it is booked and lives, quotas, classes, nodes of their own.


def asked(shop: BatchShop, name: str = "train", count: int = 3, **parameters: Any) -> None:
    shop.cluster.apply(request(name, count, class_name=ATOMIC, parameters=parameters))


def test_a_request_may_say_how_long_it_is_booked() -> None:
    shop = BatchShop()
    asked(shop, bookedForSeconds="120")
    shop.settle()
    assert shop.message() == "room for 3 pods was made; it is booked for 2m"
    shop.wait(timedelta(seconds=60))
    shop.run()
    assert "BookingExpired" not in shop.conditions()
    shop.wait(timedelta(seconds=60))
    shop.run()
    assert shop.conditions()["BookingExpired"] == ("True", "CapacityReservationTimeExpired")


@pytest.mark.parametrize(("of_the_pool", "lives"), [("Never", timedelta(hours=2)), ("1h", timedelta(hours=1))])
def test_nodes_live_no_longer_than_the_request_lets_them(of_the_pool: str, lives: timedelta) -> None:
    pool = node_pool()
    pool["spec"]["template"]["spec"]["expireAfter"] = of_the_pool
    shop = BatchShop(pool=pool)
    asked(shop, maxRunDurationSeconds="7200")
    shop.settle()
    assert shop.conditions()["Provisioned"] == MADE
    assert {claim.expire_after for claim in shop.cluster.view().node_claims} == {lives}


@pytest.mark.parametrize("name", ["bookedForSeconds", "maxRunDurationSeconds"])
def test_a_time_that_is_none_is_told_and_left_out(name: str) -> None:
    shop = BatchShop()
    asked(shop, "train", 3, **{name: "soon"})
    shop.settle()
    accepted = next(item.message for item in shop.outcome().conditions if item.type == "Accepted")
    assert f"{name} must be a number of seconds above 0, not 'soon'; the default is used" in accepted


@pytest.mark.parametrize("bounded", ["requests.cpu", "pods"])
def test_nothing_is_made_for_pods_that_a_quota_would_not_let_be_created(bounded: str) -> None:
    def quota(most: str) -> Document:
        return manifest("v1", "ResourceQuota", "compute", "shop", spec={"hard": {bounded: most}})

    shop = BatchShop()
    shop.cluster.apply(quota("5"))
    asked(shop, "first", 3)
    shop.sandbox.wait(1)
    asked(shop, "second", 3)
    shop.settle()
    assert shop.conditions("first")["Provisioned"] == MADE
    assert shop.conditions("second")["Provisioned"] == ("False", "QuotaExceeded")
    assert shop.message("second") == "ResourceQuota shop/compute lets 2 of its 3 pods be created"
    assert len(shop.claims()) == 1
    shop.settle(quota("6"))
    assert shop.conditions("second")["Provisioned"] == MADE


def test_classes_that_are_not_declared_can_be_forbidden() -> None:
    settings = Settings(placement=PlacementRules(check=True), requests=RequestRules(only_declared_classes=True))
    shop = BatchShop(settings=settings)
    declared = {"apiVersion": "autoscaling.x-k8s.io/v1alpha1", "kind": "ProvisioningClass"}
    shop.cluster.apply({**declared, "metadata": {"name": CHECK}})
    asked(shop, "atomic")
    shop.settle(request("check"))
    assert shop.conditions("atomic") == {"Accepted": ("False", "ClassNotAllowed")}
    assert shop.conditions("check")["Accepted"] == ("True", "Accepted")
    assert shop.claims() == []
    shop.settle({**declared, "metadata": {"name": ATOMIC}})
    assert shop.conditions("atomic")["Provisioned"] == MADE


def test_a_check_says_how_many_of_its_pods_have_room() -> None:
    shop = BatchShop()
    shop.sandbox.add_node("free", "m-4x", cpu="3")
    shop.settle(request(count=8))
    assert shop.conditions()["Provisioned"] == ("False", "CapacityIsNotFound")
    assert shop.message().startswith("at least 3 of 8 pods have room: ")


def shop_of_two() -> BatchShop:
    """Two requests for nodes of their own."""
    shop = BatchShop()
    shop.cluster.apply(pod_template("own", cpu="3", tolerations=[{"key": RESERVED_TAINT, "operator": "Exists"}]))
    for name in ("one", "two"):
        shop.cluster.apply(request(name, 2, class_name=ATOMIC, template="own", **RESERVE))
    shop.settle()
    return shop


def test_the_status_names_the_label_of_its_own_nodes() -> None:
    shop = shop_of_two()
    for name in ("one", "two"):
        live = shop.cluster.live(request_ref(name))
        assert live["status"]["provisioningClassDetails"] == {"ReservedNodes": f"shop.{name}"}
    labels = sorted(node.label(RESERVED_TAINT) or "" for node in shop.cluster.view().nodes)
    assert labels == ["shop.one", "shop.one", "shop.two", "shop.two"]
    assert shop.run().required_plan.node_claims.create == ()


def test_the_pods_of_a_check_that_wait_although_it_says_no_are_told() -> None:
    shop = BatchShop()
    document = pods_of("train", 2, cpu="3")
    shop.settle(request(count=2), passes=2)
    shop.cluster.apply(document)
    shop.sandbox.wait(1)
    (finding,) = (item for item in shop.plan().findings if item.code == "pods-before-answer")
    assert finding.message.startswith("the check says no, and 2 pods of it wait: Karpenter makes nodes")
    shop.cluster.delete(workload_ref("train"))
    shop.sandbox.wait(60)
    document["spec"]["template"]["spec"]["schedulingGates"] = [{"name": "example.com/capacity"}]
    shop.cluster.apply(document)
    shop.sandbox.wait(5)
    assert not [item for item in shop.plan().findings if item.code == "pods-before-answer"]


# Events of requests: told once, on the request and on pods that wait for it.


def told(shop: BatchShop, kind: str = "ProvisioningRequest") -> list[tuple[str, str]]:
    """Kind and reason of every event on objects of a kind, repeated ones once."""
    return [(item.event.kind, item.event.reason) for item in shop.cluster.events if item.event.ref.kind == kind]


def consumer() -> Document:
    return pods_of("train", 7, own="job", cpu="1")


def test_pods_that_wait_for_a_request_are_told_and_five_are_enough() -> None:
    shop = BatchShop(pool=node_pool(limits={"cpu": "1"})).given(
        consumer(), request(count=7, parameters={"noRetry": "true"})
    )
    assert ("Warning", "CapacityIsNotFound") in told(shop)
    pods = [
        item
        for item in shop.cluster.events
        if item.event.ref.kind == "Pod" and item.event.reason == "CapacityIsNotFound"
    ]
    assert len({item.event.ref for item in pods}) == 5

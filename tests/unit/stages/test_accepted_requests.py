"""Which requests headroom provides for, and with which parameters: passes over the embedded cluster."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.fakes.embedded import Document
from tests.fakes.requests import ATOMIC, CHECK, BatchShop, pod_template, request, request_ref

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


def test_a_default_of_another_class_is_none() -> None:
    shop = BatchShop()
    shop.cluster.apply(provisioning_class(CHECK, parameters={"ValidUntilSeconds": "30"}))
    shop.cluster.apply(pod_template(cpu="64"))
    shop.cluster.apply(request(class_name=ATOMIC))
    shop.wait(timedelta(seconds=60))
    shop.run()
    assert "Failed" not in shop.conditions()


def test_a_parameter_that_the_class_does_not_allow_keeps_the_request_waiting() -> None:
    shop = BatchShop()
    shop.cluster.apply(provisioning_class(allowedParameters=["ValidUntilSeconds"]))
    shop.cluster.apply(request(class_name=ATOMIC, parameters={"zone": "a", "ValidUntilSeconds": "600"}))
    shop.settle()
    assert shop.conditions() == {"Accepted": ("False", "ParameterNotAllowed")}
    assert shop.claims() == []
    outcome = shop.outcome()
    assert outcome.demand.desired is None
    assert "does not allow zone; it allows ValidUntilSeconds" in outcome.conditions[0].message

    shop.cluster.apply(provisioning_class(allowedParameters=["ValidUntilSeconds", "zone"]))
    shop.settle()
    assert shop.conditions()["Accepted"] == ACCEPTED
    assert shop.conditions()["Provisioned"][0] == "True"


def test_a_class_may_allow_nothing() -> None:
    shop = BatchShop()
    shop.cluster.apply(provisioning_class(allowedParameters=[]))
    shop.cluster.apply(request("with", class_name=ATOMIC, parameters={"zone": "a"}))
    shop.cluster.apply(request("without", class_name=ATOMIC))
    shop.settle()
    assert shop.conditions("with")["Accepted"] == ("False", "ParameterNotAllowed")
    assert shop.conditions("without")["Accepted"] == ACCEPTED


def test_a_booking_stays_when_its_class_becomes_stricter() -> None:
    shop = BatchShop()
    shop.cluster.apply(request(class_name=ATOMIC, parameters={"zone": "a"}))
    shop.settle()
    before = shop.conditions()
    shop.cluster.apply(provisioning_class(allowedParameters=[]))
    shop.settle()
    assert shop.conditions() == before
    assert len(shop.held()) == 1


def test_a_request_waits_for_a_template_that_is_missing() -> None:
    shop = BatchShop()
    shop.cluster.apply(request(class_name=ATOMIC, template="later"))
    plan = shop.settle()
    assert shop.conditions() == {"Accepted": ("False", "PodTemplateNotFound")}
    assert shop.claims() == []
    assert [(item.code, str(item.ref), item.message) for item in plan.findings] == [
        ("target-not-found", "ProvisioningRequest/shop/train", "not ready: PodTemplate/shop/later does not exist")
    ]
    shop.cluster.apply(pod_template("later"))
    plan = shop.settle()
    assert shop.conditions()["Provisioned"][0] == "True"
    assert plan.findings == ()


def test_what_kept_a_request_from_being_accepted_is_why_it_failed() -> None:
    shop = BatchShop()
    shop.cluster.apply(request(class_name=ATOMIC, template="later"))
    shop.settle(passes=2)
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

    shop.cluster._world.store.change(request_ref(), write, manager)


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
    shop = BatchShop()
    shop.cluster.apply(request(class_name=ATOMIC))
    shop.settle()
    assert len(shop.held()) == 1
    before = shop.conditions()
    write_condition(shop, "Failed", "cluster-autoscaler")
    shop.settle()
    assert shop.held() == []
    assert shop.conditions() == {**before, "Failed": ("True", "Failed")}


@pytest.mark.parametrize(("class_name", "expected"), [(CHECK, {}), (ATOMIC, {"Accepted": ACCEPTED})])
def test_a_check_for_one_of_several_cluster_autoscalers_is_left_to_it(
    class_name: str, expected: dict[str, tuple[str, str]]
) -> None:
    shop = BatchShop()
    shop.cluster.apply(request(class_name=class_name, parameters={"processorInstance": "blue"}))
    shop.settle()
    assert {name: said for name, said in shop.conditions().items() if name == "Accepted"} == expected


def test_an_unknown_class_is_left_alone() -> None:
    shop = BatchShop()
    shop.cluster.apply(request(class_name="queued-provisioning.gke.io"))
    plan = shop.settle()
    assert shop.conditions() == {}
    assert [item for item in plan.demands if item.demand.ref == request_ref()] == []

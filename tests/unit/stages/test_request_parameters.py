"""Passes over requests that ask for more than capacity: how long it is booked and lives, quotas, classes, nodes of their own."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from reconciler.model.provisioning_requests import RESERVED_TAINT
from reconciler.settings.settings import PlacementSettings, RequestSettings, Settings
from tests.fakes.embedded import Document, node_pool, workload, workload_ref
from tests.fakes.requests import ATOMIC, CHECK, CLASS_NAME, CONSUME, BatchShop, pod_template, request, request_ref

MADE = ("True", "CapacityIsProvisioned")


def message(shop: BatchShop, name: str = "train") -> str:
    return next(item.message for item in shop.outcome(name).conditions if item.type == "Provisioned")


def asked(shop: BatchShop, name: str = "train", count: int = 3, **parameters: Any) -> None:
    shop.cluster.apply(request(name, count, class_name=ATOMIC, parameters=parameters))


def test_a_request_may_say_how_long_it_is_booked() -> None:
    shop = BatchShop()
    asked(shop, bookedForSeconds="120")
    shop.settle()
    assert message(shop) == "room for 3 pods was made; it is booked for 2m"
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


def quota(cpu: str) -> Document:
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "compute", "namespace": "shop"},
        "spec": {"hard": {"requests.cpu": cpu}},
    }


def test_nothing_is_made_for_pods_that_a_quota_would_not_let_be_created() -> None:
    shop = BatchShop()
    shop.cluster.apply(quota("5"))
    asked(shop, "first", 3)
    shop.sandbox.wait(1)
    asked(shop, "second", 3)
    shop.settle()
    assert shop.conditions("first")["Provisioned"] == MADE
    assert shop.conditions("second")["Provisioned"] == ("False", "QuotaExceeded")
    assert message(shop, "second") == "ResourceQuota shop/compute lets 2 of its 3 pods be created"
    assert len(shop.claims()) == 1
    shop.cluster.apply(quota("6"))
    shop.settle()
    assert shop.conditions("second")["Provisioned"] == MADE


def test_classes_that_are_not_declared_can_be_forbidden() -> None:
    settings = Settings(placement=PlacementSettings(check=True), requests=RequestSettings(only_declared_classes=True))
    shop = BatchShop(settings=settings)
    declared = {"apiVersion": "autoscaling.x-k8s.io/v1alpha1", "kind": "ProvisioningClass"}
    shop.cluster.apply({**declared, "metadata": {"name": CHECK}})
    asked(shop, "atomic")
    shop.cluster.apply(request("check"))
    shop.settle()
    assert shop.conditions("atomic") == {"Accepted": ("False", "ClassNotAllowed")}
    assert shop.conditions("check")["Accepted"] == ("True", "Accepted")
    assert shop.claims() == []
    shop.cluster.apply({**declared, "metadata": {"name": ATOMIC}})
    shop.settle()
    assert shop.conditions("atomic")["Provisioned"] == MADE


def test_a_check_says_how_many_of_its_pods_have_room() -> None:
    shop = BatchShop()
    shop.sandbox.add_node("free", "m-4x", cpu="3")
    shop.cluster.apply(request(count=8))
    shop.settle()
    assert shop.conditions()["Provisioned"] == ("False", "CapacityIsNotFound")
    assert message(shop).startswith("at least 3 of 8 pods have room: ")


def test_an_attempt_says_when_its_nodes_may_be_ready_once_launches_were_seen() -> None:
    shop = BatchShop()
    asked(shop, "first")
    shop.run()
    assert message(shop, "first") == "attempt 1: 3 on nodes on their way"
    shop.settle()
    asked(shop, "second", 9)
    began = shop.sandbox.clock.now()
    shop.run()
    due = began + timedelta(seconds=5)
    assert f"; ready at about {due:%H:%M}" in message(shop, "second")
    assert "since nodes took " in message(shop, "second")


RESERVE: Any = {"annotations": {"headroom.dev/reserve": "true"}}


def pinned(name: str, count: int) -> Document:
    """The pods of a Job that Kueue pins to the nodes of its request."""
    document = workload(name, replicas=count, cpu="3", nodeSelector={RESERVED_TAINT: f"shop.{name}"})
    document["spec"]["template"]["spec"]["tolerations"] = [{"key": RESERVED_TAINT, "operator": "Exists"}]
    document["spec"]["template"]["metadata"]["annotations"] = {CONSUME: name, CLASS_NAME: ATOMIC}
    return document


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
        live = shop.cluster.get(request_ref(name))
        assert live is not None
        assert live["status"]["provisioningClassDetails"] == {"ReservedNodes": f"shop.{name}"}
    labels = sorted(node.label(RESERVED_TAINT) or "" for node in shop.cluster.view().nodes)
    assert labels == ["shop.one", "shop.one", "shop.two", "shop.two"]
    assert shop.run().required_plan.node_claims.create == ()


def test_pods_that_select_them_mix_with_no_others_and_a_lost_node_is_replaced_for_them() -> None:
    shop = shop_of_two()
    lost = next(node.name for node in shop.cluster.view().nodes if node.label(RESERVED_TAINT) == "shop.one")
    shop.sandbox.cluster.lose(lost)
    for name in ("one", "two"):
        shop.cluster.apply(pinned(name, 2))
    shop.settle(passes=12)
    view = shop.cluster.view()
    labels = {node.name: node.label(RESERVED_TAINT) for node in view.nodes}
    assert sorted((pod.owner_name[:3], labels.get(pod.node_name or "")) for pod in view.pods) == [
        ("one", "shop.one"),
        ("one", "shop.one"),
        ("two", "shop.two"),
        ("two", "shop.two"),
    ]
    assert len(shop.claims()) == 4


def test_the_pods_of_a_check_that_wait_although_it_says_no_are_told() -> None:
    shop = BatchShop()
    document = workload("train", replicas=2, cpu="3")
    document["spec"]["template"]["metadata"]["annotations"] = {CONSUME: "train", CLASS_NAME: CHECK}
    shop.cluster.apply(request(count=2))
    shop.settle(passes=2)
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

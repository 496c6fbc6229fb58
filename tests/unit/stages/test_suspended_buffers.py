"""A suspended buffer keeps what it has, and gets nothing."""

from __future__ import annotations

import re
from typing import Any

import yaml

from reconciler.model.changes import DemandOutcome, Plan
from reconciler.model.refs import ObjectRef
from reconciler.report.explanation import explanation, explanation_text
from reconciler.report.plan.page import plan_page
from reconciler.report.plan.rows import page_text
from reconciler.report.status.document import PassReport
from reconciler.report.status.text import daemon_status_text
from tests.fakes.embedded import Document, workload, workload_ref
from tests.fakes.requests import BatchShop, pod_template
from tests.fakes.status import shown

SUSPENDED = {"headroom.dev/suspend": "true"}
WEB: dict[str, Any] = {"scalableRef": {"apiGroup": "apps", "kind": "Deployment", "name": "web"}, "percentage": 100}


def buffer(name: str = "web", annotations: dict[str, str] | None = None, **spec: Any) -> Document:
    return {
        "apiVersion": "autoscaling.x-k8s.io/v1beta1",
        "kind": "CapacityBuffer",
        "metadata": {"name": name, "namespace": "shop", "annotations": annotations or {}},
        "spec": {"podTemplateRef": {"name": "worker"}, **spec} if "scalableRef" not in spec else spec,
    }


class Shop(BatchShop):
    def has(self, *buffers: Document) -> None:
        documents = {item["metadata"]["name"]: item for item in (pod_template(), *buffers)}
        self.source.commit({f"{name}.yaml": yaml.safe_dump(item) for name, item in documents.items()})
        self.settle()

    def said(self, name: str = "web") -> DemandOutcome:
        return next(item for item in self.plan().demands if item.demand.ref.name == name)

    def status(self) -> Document:
        live = self.cluster.get(ObjectRef("autoscaling.x-k8s.io", "CapacityBuffer", "shop", "web"))
        assert live is not None
        return dict(live["status"])


def status_of(plan: Plan) -> str:
    report = PassReport("shop", plan.now, plan.now, passes=1, plan=plan, settled=True)
    return daemon_status_text(shown(report))


def test_a_smaller_size_in_the_commit_that_suspends_a_buffer_takes_no_node_from_it() -> None:
    shop = Shop()
    shop.has(buffer(replicas=7))
    held = shop.held()
    shop.has(buffer(annotations=SUSPENDED, replicas=2))
    assert shop.held() == held
    assert len(shop.claims()) == len(held) == 3
    status = shop.status()
    said = {item["type"]: item["message"] for item in status["conditions"]}
    assert status["replicas"] == 7
    assert said["ReadyForProvisioning"] == "7 chunks"
    assert said["Suspended"] == "headroom.dev/suspend: it stays at 7 chunks, and no other node is taken or made for it"
    shop.has(buffer(replicas=2))
    assert len(shop.claims()) == 1


def test_a_workload_that_shrinks_takes_no_node_from_its_suspended_buffer() -> None:
    shop = Shop()
    shop.cluster.apply(workload("web", replicas=4, cpu="1"))
    shop.has(buffer(**WEB))
    shop.has(buffer(annotations=SUSPENDED, **WEB))
    held = shop.held()
    shop.cluster.scale(workload_ref(), 1)
    shop.settle()
    assert shop.held() == held != []
    assert shop.status()["replicas"] == shop.said().demand.desired == 4


def test_a_suspended_buffer_whose_room_is_used_is_called_suspended_and_not_short() -> None:
    shop = Shop()
    shop.cluster.apply(workload("web", replicas=4, cpu="1"))
    shop.has(buffer(**WEB))
    shop.has(buffer(annotations=SUSPENDED, **WEB))
    claims = shop.claims()
    shop.cluster.scale(workload_ref(), 9)
    shop.settle()
    plan, outcome = shop.plan(), shop.said()
    assert shop.claims() == claims
    assert outcome.demand.desired == 4
    assert 0 < outcome.unplaced == outcome.service.missing
    assert outcome.unplaced_reasons == ()
    message = "headroom.dev/suspend: it stays at 4 chunks, and no other node is taken or made for it"
    assert outcome.service.why == message
    assert f"{outcome.unplaced} without a place  " in (text := page_text(plan_page(plan, cluster="shop")))
    assert "      suspended\n" in text
    explained = explanation_text(explanation(plan, "CapacityBuffer/shop/web"))
    assert f"chunks unplaced:\n    {message}\n" in explained
    told = status_of(plan)
    assert re.search(rf"  buffer      shop/web  suspended(, .*)?: {re.escape(message)}\n", told)
    assert "short" not in told


def test_a_buffer_that_is_suspended_from_the_first_takes_no_node_that_becomes_free() -> None:
    shop = Shop()
    shop.has(buffer("other", replicas=7))
    shop.has(buffer("other", replicas=1), buffer(annotations=SUSPENDED, replicas=4))
    assert len(shop.claims()) == 1
    assert shop.said().demand.desired == 0
    assert "CapacityBuffer/shop/web: 0 chunks" in page_text(plan_page(shop.plan(), cluster="shop"))

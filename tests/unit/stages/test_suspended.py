"""Suspended buffers keep what they have and get nothing; a suspended daemon writes nothing."""

from __future__ import annotations

import re
from typing import Any

import yaml

from reconciler.cluster.apply import InventoryParent
from reconciler.model.changes import Annotate, ApplyStatus, DemandOutcome, Plan
from reconciler.model.nodes import HELD_ANNOTATION, HOLDS_ANNOTATION
from reconciler.model.refs import ObjectRef
from reconciler.report.explanation import explanation, explanation_text
from reconciler.report.plan.page import plan_page
from reconciler.report.plan.rows import page_text
from reconciler.report.status.document import PassReport
from reconciler.report.status.text import daemon_status_text
from tests import manifests
from tests.fakes.embedded import LARGE, SMALL, Document, Sandbox, buffer, node_pool, workload, workload_ref
from tests.fakes.kept_cluster import KeptCluster
from tests.fakes.requests import BatchShop, pod_template
from tests.fakes.status import shown

# A suspended buffer keeps what it has, and gets nothing.

OF_ALL_PODS = "percentage: 100"


class Shop(BatchShop):
    def has(self, size: str, *, of: str, **marks: str) -> None:
        """The repository has this buffer and its pods."""
        text = yaml.safe_dump(pod_template()) + manifests.buffer("web", size, of=of, **marks)
        self.source.commit({"web.yaml": text})
        self.settle()

    def said(self, name: str = "web") -> DemandOutcome:
        return next(item for item in self.plan().demands if item.demand.ref.name == name)

    def status(self) -> Document:
        return dict(self.cluster.live(ObjectRef("autoscaling.x-k8s.io", "CapacityBuffer", "shop", "web"))["status"])


def status_of(plan: Plan) -> str:
    report = PassReport("shop", plan.now, plan.now, passes=1, plan=plan, settled=True)
    return daemon_status_text(shown(report))


def test_a_suspended_buffer_whose_room_is_used_is_called_suspended_and_not_short() -> None:
    shop = Shop()
    shop.cluster.apply(workload("web", replicas=4, cpu="1"))
    shop.has(OF_ALL_PODS, of=manifests.BY_DEPLOYMENT)
    shop.has(OF_ALL_PODS, of=manifests.BY_DEPLOYMENT, suspend="true")
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


# The room of a suspended buffer: it keeps the nodes that it has, and takes none beside them.

STEADY: dict[str, Any] = {"consolidateAfter": "30s", "budgets": [{"nodes": "0"}]}
BUDGET: dict[str, Any] = {"consolidateAfter": "30s", "budgets": [{"nodes": "1"}]}


def warm_shop(disruption: dict[str, Any] = STEADY, **more: Any) -> KeptCluster:
    """Two chunks, each on a node that it fills."""
    shop = KeptCluster(instance_types=(SMALL, LARGE), **more)
    shop.want(2, node_pool(disruption=disruption))
    assert len(shop.node_names()) == 2
    return shop


def add_room(shop: KeptCluster) -> None:
    """A node on which one small pod runs, and four chunks would fit."""
    shop.add_node("big", "m-8x", cpu="7")
    shop.keep(10, workload("small", replicas=1, cpu="500m"))
    assert shop.node("node-big").ready


def suspend(shop: KeptCluster, value: str = "true") -> None:
    body = buffer(replicas=2)
    body["metadata"]["annotations"] = {"headroom.dev/suspend": value}
    shop.keep(10, body)


def held(shop: KeptCluster) -> dict[str, str]:
    """Names of held nodes, and what each holds."""
    nodes = shop.cluster.view().nodes
    return {item.name: item.annotation(HOLDS_ANNOTATION) or "" for item in nodes if item.annotation(HELD_ANNOTATION)}


def said(shop: KeptCluster) -> dict[str, str]:
    live = shop.cluster.get(ObjectRef("autoscaling.x-k8s.io", "CapacityBuffer", "shop", "web")) or {}
    return {item["type"]: f"{item['status']}: {item['message']}" for item in live["status"]["conditions"]}


def test_of_room_that_pods_use_nothing_is_made_good_on_other_nodes() -> None:
    shop = warm_shop()
    suspend(shop)
    add_room(shop)
    shop.cluster.scale(workload_ref("web"), 6)
    shop.keep(30)
    assert held(shop) == {}
    shop.cluster.scale(workload_ref("web"), 1)
    shop.keep(300)
    assert held(shop) == {}
    assert said(shop)["Provisioning"].startswith("False")
    suspend(shop, "false")
    assert sum(map(len, held(shop).values())) > 0


def test_a_node_that_goes_is_not_made_good_on_other_nodes() -> None:
    shop = warm_shop()
    suspend(shop)
    first, second = held(shop)
    add_room(shop)
    shop.cluster.lose(second)
    shop.keep(120)
    assert list(held(shop)) == [first]
    plan = shop.cycle.plan().required_plan
    assert "      suspended\n" in page_text(plan_page(plan, cluster="shop"))
    suspend(shop, "false")
    assert len(held(shop)) == 2


def test_it_is_not_moved_to_room_that_became_free() -> None:
    shop = warm_shop(BUDGET)
    nodes = shop.node_names()
    suspend(shop)
    add_room(shop)
    shop.keep(300)
    assert sorted(held(shop)) == nodes


def test_one_that_never_held_anything_takes_nothing_whatever_its_status_says() -> None:
    shop = warm_shop()
    add_room(shop)
    other = buffer("other", replicas=2)
    other["metadata"]["annotations"] = {"headroom.dev/suspend": "true"}
    shop.cluster.apply(other)
    ref = ObjectRef("autoscaling.x-k8s.io", "CapacityBuffer", "shop", "other")
    shop.write(ApplyStatus(ref, {"replicas": 2}))
    shop.keep(30)
    assert all("other" not in words for words in held(shop).values())


def test_its_nodes_stay_though_they_drift() -> None:
    shop = warm_shop(BUDGET)
    nodes = {item.uid for item in shop.cluster.view().nodes}
    suspend(shop)
    pool = node_pool(disruption=BUDGET)
    pool["spec"]["template"]["metadata"] = {"labels": {"team": "shop"}}
    shop.keep(300, pool)
    assert {item.uid for item in shop.cluster.view().nodes} == nodes
    assert len(held(shop)) == 2
    suspend(shop, "false")
    shop.keep(300)
    assert nodes.isdisjoint({item.uid for item in shop.cluster.view().nodes})


def test_its_nodes_stay_though_its_workload_is_gone() -> None:
    shop = warm_shop()
    suspend(shop)
    before = held(shop)
    shop.cluster.delete(workload_ref())
    shop.keep(60)
    assert held(shop) == before != {}
    shop.keep(60, workload(replicas=0, cpu="1500m"))
    assert held(shop) == before, "the size is what its nodes hold"


def test_it_stays_without_its_workload_on_a_node_of_two() -> None:
    other = (workload("other", replicas=0, cpu="500m"), buffer("other", of="other", replicas=1))
    shop = KeptCluster(instance_types=(LARGE,))
    shop.keep(60, node_pool(disruption=STEADY), workload(replicas=0, cpu="1500m"), buffer(replicas=2), *other)
    suspend(shop)
    assert list(held(shop).values()) == ["1 of CapacityBuffer/shop/other, 2 of CapacityBuffer/shop/web"]
    shop.cluster.delete(workload_ref())
    shop.keep(60, buffer("other", of="other", replicas=0))
    assert list(held(shop).values()) == ["2 of CapacityBuffer/shop/web"]


def test_its_node_stays_though_it_is_not_ready_for_long() -> None:
    shop = warm_shop()
    name = shop.node_names()[0]
    suspend(shop)
    shop.cluster.set_ready(name, ready=False)
    shop.keep(600)
    assert len(held(shop)) == 2
    assert said(shop)["Provisioning"] == "False: of 2 chunks, 1 on nodes that are not ready"
    shop.cluster.set_ready(name, ready=True)
    shop.keep(10)
    assert said(shop)["Provisioning"].startswith("True")


# The whole daemon is suspended and goes on while it runs, by an annotation of its inventory.

INVENTORY = InventoryParent()


def test_nothing_is_written_until_it_is_taken_back() -> None:
    sandbox = Sandbox()
    for document in (node_pool(), workload(replicas=0), buffer()):
        sandbox.cluster.apply(document)
    for kind, name in (("Namespace", INVENTORY.namespace), ("ConfigMap", INVENTORY.name)):
        namespace = {"namespace": INVENTORY.namespace} if kind == "ConfigMap" else {}
        sandbox.cluster.apply({"apiVersion": "v1", "kind": kind, "metadata": {"name": name, **namespace}})
    cycle = sandbox.new_cycle()
    sandbox.write(Annotate(INVENTORY.ref, (("headroom.dev/suspend", "true"),)))

    suspended = cycle.run("tick")

    assert suspended.change_set is None
    assert suspended.required_plan.has_changes
    assert "headroom is suspended: nothing of this is applied" in suspended.required_plan.notes
    assert sandbox.wait().node_claims == ()
    unmade = "of 3 chunks, 3 on nodes that are not made while headroom is suspended"
    assert unmade in explanation_text(explanation(suspended.required_plan, "CapacityBuffer/shop/web"))
    assert re.search(
        rf"  buffer      shop/web  0/3 ready, 3 missing(, .*)?: {unmade}\n", status_of(suspended.required_plan)
    )
    sandbox.write(Annotate(INVENTORY.ref, (("headroom.dev/suspend", None),)))
    assert cycle.run("change").change_set is not None
    assert sandbox.wait().node_claims
    # What headroom writes into its inventory leaves the annotation of others alone.
    sandbox.write(Annotate(INVENTORY.ref, (("headroom.dev/suspend", "true"),)))
    assert cycle.run("tick").change_set is None

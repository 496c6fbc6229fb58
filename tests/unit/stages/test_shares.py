"""Buffers whose size somebody else decides: a share of running pods, or the scale subresource."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from reconciler.model.buffers import SHARES_KEY, RememberedShare
from reconciler.model.changes import Apply, Plan
from reconciler.model.placement import Placement
from reconciler.model.pods import PodShape
from reconciler.model.refs import ObjectRef
from reconciler.model.remembered import remembered
from reconciler.placement.problem import Problem
from reconciler.placement.scheduler.model import PodKind
from reconciler.placement.surge.firm import Firm, Firmer
from reconciler.report.explanation import explanation, explanation_text
from tests import manifests
from tests.builders import buffer_ref
from tests.fakes.embedded import LARGE, SMALL, Sandbox, buffer, node_pool, workload, workload_ref
from tests.fakes.kept_cluster import KeptCluster
from tests.unit.stages.test_owners import Daemon

SHAPE = manifests.pod_template("shape", "cpu: 500m, memory: 256Mi")


class Shop:
    def __init__(self, percent_of: str = "nodepool/general", **settings: Any) -> None:
        self.percent_of, self.settings = percent_of, settings
        self.sandbox = Sandbox(provisions_pending=True)
        self.sandbox.cluster.apply(node_pool())
        self.restart()

    def restart(self) -> None:
        of, size = "podTemplateRef: {name: shape}", "replicas: 0, percentage: 10"
        spare = manifests.buffer("spare", size, of=of, percent_of=self.percent_of)
        self.daemon = Daemon(self.sandbox, {"spare.yaml": spare + SHAPE}, **self.settings)

    def scale(self, pods: int) -> None:
        """The pods run before the next pass."""
        self.sandbox.cluster.apply(workload(replicas=pods))
        self.sandbox.wait(30)
        assert sum(node is not None for node in self.sandbox.where().values()) == pods

    def memory(self) -> Mapping[str, Any]:
        return self.sandbox.cluster.view().inventory.records

    def plan(self, minutes: float = 0) -> Plan:
        """Of the last pass, with a pass each ten seconds."""
        return self.daemon.passes(1 + int(minutes * 6)).required_plan

    def chunks(self, plan: Plan) -> tuple[int | None, int]:
        """How many are asked for, and how many stand on nodes."""
        outcome = next(item for item in plan.demands if item.demand.ref == buffer_ref("spare"))
        return outcome.demand.desired, outcome.on_existing


def test_it_grows_with_the_pods_at_once_and_shrinks_ten_minutes_after_them() -> None:
    shop = Shop()
    shop.scale(20)
    assert shop.chunks(shop.plan())[0] == 2
    assert shop.chunks(shop.plan(1)) == (2, 2)

    shop.scale(60)
    assert shop.chunks(shop.plan())[0] == 6
    assert shop.chunks(shop.plan(1)) == (6, 6)

    shop.scale(20)
    first = shop.plan()
    assert shop.chunks(first) == (6, 6)
    (edge,) = [item for item in first.edges if "share of running pods" in item.why]
    assert (edge.at - first.now).total_seconds() == 600
    shop.plan(4)
    shop.restart()
    assert shop.chunks(shop.plan(5.5)) == (6, 6), "a restart forgets nothing"
    last = shop.plan(1)
    assert last.now >= edge.at
    assert shop.chunks(last) == (2, 2)
    live = shop.sandbox.cluster.live(buffer_ref("spare"))
    assert live["status"]["replicas"] == 2


def test_its_memory_goes_with_it() -> None:
    shop = Shop("selector:app=web")
    shop.scale(20)
    shop.plan(1)
    assert remembered(shop.memory(), SHARES_KEY, RememberedShare)["shop/spare"].size == 2
    shop.daemon.source.commit({"shape.yaml": SHAPE})
    shop.plan(1)
    assert "shares" not in shop.memory()


# Buffers that somebody sizes through the scale subresource: that value counts, and nobody fights over it.

RUNNERS = """\
apiVersion: autoscaling.x-k8s.io/v1alpha1
kind: Buffer
metadata: {name: runners, namespace: shop, annotations: {}}
spec:
  replicas: 2
  capacity:
    pods:
      replicaNum: 2
      podSpec: {containers: [{name: runner, image: pause, resources: {requests: {cpu: "1"}}}]}
"""
REF = ObjectRef("autoscaling.x-k8s.io", "Buffer", "shop", "runners")
HOURS = """\
---
apiVersion: autoscaling.karpenter.sh/v1alpha1
kind: MetricsProducer
metadata: {name: hours, namespace: shop}
spec: {schedule: {timezone: UTC, defaultReplicas: 1}}
"""


def kept(text: str = RUNNERS) -> KeptCluster:
    shop = KeptCluster(instance_types=(LARGE,))
    shop.cluster.apply(node_pool())
    shop.commit({"runners.yaml": text})
    shop.keep(30)
    return shop


def live(shop: KeptCluster) -> dict[str, Any]:
    return dict(shop.cluster.live(REF))


def sizes(shop: KeptCluster) -> tuple[int, int]:
    """In the spec, and of the buffer."""
    found = live(shop)
    return found["spec"]["replicas"], found["status"]["replicas"]


def test_the_number_of_the_scale_subresource_counts_and_stays() -> None:
    shop = kept()
    assert sizes(shop) == (2, 2)
    shop.cluster.scale(REF, 5, manager="keda-operator")
    shop.keep(30)
    assert sizes(shop) == (5, 5)
    assert "5 by keda-operator through /scale" in shop.passes[-1].plan.demands[0].demand.explanation

    shop.commit({"runners.yaml": RUNNERS.replace("2\n", "3\n")})
    shop.restart()
    passes = shop.keep(900, step=5)

    assert sizes(shop) == (5, 5), "Git is not written over it, now or later"
    applied = [write.manifest["spec"] for each in passes for write in each.writes if isinstance(write, Apply)]
    assert [("replicas" in spec, spec["capacity"]["pods"]["replicaNum"]) for spec in applied] == [(False, 3)]


def test_a_schedule_gives_way_to_it_as_git_does() -> None:
    shop = kept(RUNNERS.replace("{}", "{headroom.dev/replicas-from: hours}") + HOURS)
    assert live(shop)["status"]["replicas"] == 1
    shop.cluster.scale(REF, 4, manager="keda-operator")
    shop.keep(30)
    assert sizes(shop) == (4, 4)


def test_an_override_takes_the_field_back() -> None:
    shop = kept()
    shop.cluster.scale(REF, 5, manager="keda-operator")
    shop.keep(30)
    shop.commit({"runners.yaml": RUNNERS.replace("{}", "{headroom.dev/ssa: Override}")})
    shop.keep(60)
    assert sizes(shop) == (2, 2)


def test_its_status_has_what_a_scaler_reads() -> None:
    status = live(kept())["status"]
    assert status["selector"] == (
        "autoscaling.x-k8s.io/buffer=runners,autoscaling.x-k8s.io/buffer-namespace=shop,karpenter.sh/capacity-type=buffer"
    )
    assert "selector" not in live(kept(RUNNERS.replace("  replicas: 2\n", "")))["status"], (
        "an older definition lacks it"
    )


# Room that pods with few places need: told, marked, and kept from others, on the embedded cluster.


def two_pools(surge: str, *, hurried: bool = False) -> KeptCluster:
    """Pods of web go anywhere, those of batch to one NodePool. Each has a node. hurried: the nodes come at once, and passes answer that."""
    shop = KeptCluster(instance_types=(SMALL,), surge=surge)
    for name, weight in (("general", 10), ("batch", 1)):
        shop.cluster.apply(node_pool(name, weight=weight))
    batch = workload("batch", replicas=0, cpu="1500m")
    batch["spec"]["template"]["spec"]["nodeSelector"] = {"karpenter.sh/nodepool": "batch"}
    for document in (workload("web", replicas=0, cpu="1500m"), batch, buffer("batch", of="batch", replicas=1)):
        shop.cluster.apply(document)
    if not hurried:
        shop.keep(60)
    shop.keep(5, buffer("web", replicas=1))
    shop.trigger = "came" if hurried else shop.trigger
    shop.keep(115)
    assert len(shop.node_names()) == 2
    return shop


def scarce(shop: KeptCluster) -> list[str]:
    return [dict(item.labels)["karpenter.sh/nodepool"] for item in shop.cluster.view().nodes if item.scarce_taints]


def told(shop: KeptCluster) -> list[str]:
    return [item.message for item in shop.cycle.plan().required_plan.findings if item.code == "pods-may-wait"]


def test_the_room_of_those_with_few_places_is_marked_until_it_is_used() -> None:
    shop = two_pools("all")
    assert scarce(shop) == ["batch"]
    assert told(shop) == []
    assert shop.keep(600) == [], "a second pass changes nothing"

    shop.cluster.scale(workload_ref("web"), 1)
    shop.keep(1)
    shop.cluster.scale(workload_ref("batch"), 1)
    shop.keep(1)
    assert None not in shop.where().values(), "both are bound at once"
    shop.keep(120)
    assert len(scarce(shop)) == 1, "the new placeholder's room is scarce now, the used one's no longer"
    used = set(shop.where().values())
    assert not used & {item.name for item in shop.cluster.view().nodes if item.scarce_taints}


def test_a_node_may_get_a_second_mark() -> None:
    firm = Firmer.firm

    def firmer(self: Firmer, problem: Problem, placement: Placement) -> Firm:
        found = firm(self, problem, placement)
        return replace(found, scarce=dict.fromkeys(found.scarce, 2))

    with patch.object(Firmer, "firm", firmer):
        shop = two_pools("all")
        assert [item.scarce_taints for item in shop.cluster.view().nodes if item.scarce_taints] == [2]
        assert shop.keep(600) == [], "a second pass changes nothing"


def test_a_node_is_marked_by_the_pass_that_answers_its_coming() -> None:
    """Which rehearses nothing. While only its NodeClaim was there, that was what would be marked."""
    shop = two_pools("all", hurried=True)
    assert scarce(shop) == ["batch"]


def test_as_planned_the_wait_is_only_told() -> None:
    shop = two_pools("planned")
    assert scarce(shop) == []
    assert shop.cycle.plan().required_plan.notes == (), "the checker agrees"
    assert told(shop) == [
        "1 of 1 may have to wait when web is scaled up before batch: pods of web take room that pods of batch need"
    ]


def explained_surge(shop: KeptCluster, name: str) -> str:
    return explanation_text(explanation(shop.cycle.plan().required_plan, f"CapacityBuffer/shop/{name}"), surge=True)


def test_explain_prints_the_order_in_which_a_pod_waits() -> None:
    shop = two_pools("planned")
    (room,) = [name for name in shop.node_names() if name.startswith("node-batch-")]
    text = explained_surge(shop, "batch")
    assert text.count("may have to wait") == 1
    assert text.endswith(
        "The order, and where kube-scheduler would bind each pod:\n"
        f"    1 pod of CapacityBuffer/shop/web: {room}\n"
        "    1 pod of CapacityBuffer/shop/batch: waits\n"
    )
    assert "it has room for 1 pod, and in no order that was tried does one of them wait" in explained_surge(shop, "web")
    shop.cluster.apply(buffer("web", replicas=0))
    assert "no order of pods is tried: it has room for no pod" in explained_surge(shop, "web")
    balloon = buffer("web", replicas=1)
    balloon["metadata"]["annotations"] = {"headroom.dev/fulfilment": "balloon"}
    shop.cluster.apply(balloon)
    assert "it does not promise that its room is free" in explained_surge(shop, "web")


def test_the_checker_tells_where_the_rehearsal_is_wrong() -> None:
    """A pod of batch would wait although a node takes it: the model thinks it twice as large as it is."""

    def twice(found: PodShape, **others: bool) -> PodKind:
        return PodKind(replace(found, requests=found.requests + found.requests), **others)

    with patch("reconciler.placement.surge.rehearsal.PodKind", twice):
        (note,) = two_pools("planned").cycle.plan().required_plan.notes
    assert note.startswith("the checker does not agree with the rehearsal of pods that come: ")
    assert "CapacityBuffer/shop/batch: a pod waits, and node-batch-" in note


def test_spare_room_stays_where_it_is() -> None:
    """No order of two sizes fits two nodes; a third is there for that, and chunks are not drawn together again."""
    shop = KeptCluster(instance_types=(SMALL,), surge="all")
    shop.cluster.apply(node_pool(consolidate_after="30s"))
    for name, cpu, count in (("a", "950m", 2), ("b", "600m", 3)):
        shop.cluster.apply(workload(name, replicas=0, cpu=cpu))
        shop.cluster.apply(buffer(name, of=name, replicas=count))
    shop.keep(300)
    assert told(shop) == []
    assert shop.keep(900, step=5) == []
    for name, count in (("a", 2), ("b", 3)):
        shop.cluster.scale(workload_ref(name), count)
    shop.keep(1)
    assert None not in shop.where().values()

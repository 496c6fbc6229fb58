"""Types that are sold out and nodes that are not ready: how long chunks wait, and where they go."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import replace
from datetime import timedelta

import pytest

from reconciler.model.changes import Outcome, Write, WriteResult
from reconciler.model.quantity import Resources
from reconciler.model.refs import ObjectRef
from tests import manifests
from tests.builders import manifest
from tests.fakes.embedded import LARGE, SMALL, Document, GitSandbox, buffer, node_pool, node_ref, workload
from tests.fakes.kept_cluster import KeptCluster, Pass


@pytest.mark.parametrize("minutes", [10, 30, 180])
def test_after_an_outage_the_whole_buffer_is_back_ten_minutes_after_its_stock_at_the_latest(minutes: int) -> None:
    kept = KeptCluster(instance_types=(SMALL,))
    kept.cluster.apply(node_pool())
    kept.cluster.apply(workload(replicas=0, cpu="1500m"))
    kept.cluster.apply(buffer(replicas=6))
    sell(kept, available=False)
    first = creations_of(kept.keep(5))
    tried = creations_of(kept.keep(minutes * 60, step=5))
    sell(kept, available=True)
    filled = creations_of(kept.keep(11 * 60, step=5))

    assert len(first) == 6
    assert 1 <= len(tried) <= 2 + minutes // 10  # one NodeClaim at a time, at most every ten minutes in the end
    assert len(filled) == 6
    assert kept.short() == 0


def sell(kept: KeptCluster, *, available: bool) -> None:
    for zone in ("zone-a", "zone-b"):
        kept.cluster.set_stock("m-2x", zone, "on-demand", available=available)


def creations_of(passes: list[Pass]) -> list[str]:
    return [creation.name for made in passes for creation in made.plan.node_claims.create]


@pytest.mark.parametrize(
    ("refused", "marks", "why"),
    [
        ("NodeClaim", {"ssa": "Override"}, r"NodeClaim general-headroom-\w+ could not be made: not by hand"),
        ("NodePool", {"ssa": "Override"}, "NodePool general could not be applied: not by hand"),
        ("", {}, r'NodePool general could not be applied: spec\.\S+ belongs to "kubectl"\. .+'),
    ],
)
def test_why_the_api_server_lets_no_node_be_made_is_told_of_its_buffer(
    refused: str, marks: dict[str, str], why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its nodes were on their way, for as long as an admission policy forbade them, or a change of the NodePool that they wait for."""
    declared = manifests.node_pool(**marks) + manifests.pod_template() + manifests.buffer(size="replicas: 1")
    shop = GitSandbox({"all.yaml": declared.replace("spec: {template: {spec", "spec: {weight: 3, template: {spec")})
    allowed = shop.cluster.write

    def write(write: Write, *, dry_run: bool = False) -> WriteResult:
        if write.ref.kind == refused:
            return WriteResult(write, Outcome.REFUSED, "not by hand")
        return allowed(write, dry_run=dry_run)

    def told() -> str:
        (outcome,) = shop.passes(10).required_plan.demands
        return next(item.message for item in outcome.conditions if item.type == "Provisioning")

    with monkeypatch.context() as patch:
        patch.setattr(shop.cluster, "write", write)
        shop.passes(30)
        assert re.fullmatch(f"of 1 chunk, 1 on nodes that are on their way; {why}", told())
    shop.passes(20)
    assert ("could not be" in told()) == (not refused)


# What ran out is stayed away from, another offering is taken if one will do, and all who look are told so.

ZONE = "topology.kubernetes.io/zone"


def sold_out(*types: str, replicas: int = 1, zone: str = "zone-a") -> KeptCluster:
    """Chunks of a node each that have to be in one zone, where these types have run out without anybody knowing yet."""
    shop = KeptCluster(instance_types=(SMALL, LARGE), instance_types_offered=1)
    shop.cluster.apply(node_pool())
    shop.cluster.apply(workload(replicas=0, cpu="1500m", nodeSelector={ZONE: zone}))
    for name in types:
        shop.cluster.set_stock(name, zone, "on-demand", available=False)
    shop.cluster.apply(buffer(replicas=replicas))
    return shop


def asked_for(shop: KeptCluster) -> list[tuple[str, ...]]:
    return [item.planned.instance_types for made in shop.passes for item in made.plan.node_claims.create]


def warnings(shop: KeptCluster) -> list[str]:
    return [item.event.message for item in shop.cluster.events if item.event.reason == "NoCapacity"]


def test_another_offering_is_taken_and_that_is_said() -> None:
    shop = sold_out("m-2x")
    shop.keep(60)
    assert asked_for(shop) == [("m-2x",), ("m-8x",)]
    (message,) = warnings(shop)
    assert "(m-2x in zone-a as on-demand): instead headroom asks for m-8x in zone-a as on-demand" in message
    assert shop.short() == 0
    assert shop.keep(120) == []


# Chunks wait a moment for a node that is not ready; only then is other room made for them.


def warm_shop(not_ready_grace: timedelta = timedelta(minutes=1)) -> KeptCluster:
    """Two chunks, each on a node of its own, in a pool whose nodes nobody takes away."""
    shop = KeptCluster(instance_types=(SMALL,), not_ready_grace=not_ready_grace)
    shop.want(2, node_pool(disruption={"consolidateAfter": "30s", "budgets": [{"nodes": "0"}]}))
    shop.passes.clear()
    return shop


def claims(shop: KeptCluster) -> int:
    return len(shop.cluster.view().node_claims)


def conditions(shop: KeptCluster) -> dict[str, str]:
    (outcome,) = shop.passes[-1].plan.demands
    return {item.type: f"{item.status}: {item.message}" for item in outcome.conditions}


def test_a_node_that_is_back_within_the_grace_changes_nothing_but_the_status() -> None:
    shop = warm_shop()
    name = shop.node_names()[0]
    shop.cluster.set_ready(name, ready=False)
    shop.keep(40)
    assert claims(shop) == 2
    assert conditions(shop)["Provisioning"] == "False: of 2 chunks, 1 on nodes that are not ready"
    shop.cluster.set_ready(name, ready=True)
    shop.keep(120)
    assert claims(shop) == 2
    assert shop.hold_changes() == {}
    assert len(shop.passes) == 2


@pytest.mark.parametrize("grace", [60, 20])
def test_other_room_is_made_when_the_grace_is_over(grace: int) -> None:
    shop = warm_shop(not_ready_grace=timedelta(seconds=grace))
    shop.cluster.set_ready(shop.node_names()[0], ready=False)
    shop.keep(grace - 1)
    assert claims(shop) == 2
    shop.keep(15)
    assert claims(shop) == 3
    assert conditions(shop)["Provisioning"].startswith("True")
    assert shop.keep(900) == []


def test_a_clock_that_was_set_back_lets_nothing_flap() -> None:
    shop = warm_shop()
    shop.cluster.set_ready(shop.node_names()[0], ready=False)
    shop.keep(80)
    changes = shop.hold_changes()
    shop.clock.advance(-3600)
    shop.restart()
    shop.keep(300)
    assert claims(shop) == 3
    assert shop.hold_changes() == changes


def test_no_new_chunk_comes_to_a_node_that_is_waited_for() -> None:
    shop = warm_shop()
    name = shop.node_names()[0]
    shop.cluster.set_ready(name, ready=False)
    shop.cluster.apply(workload("small", replicas=0, cpu="100m"))
    shop.keep(20, buffer("small", of="small", replicas=6))
    held = {place.node: place.holdings for place in shop.passes[-1].plan.occupied}
    assert [holding.demand.name for holding in held[name]] == ["web"]


GPU = "nvidia.com/gpu"


def gpu_shop(replicas: int, gpus: int = 1) -> KeptCluster:
    """Chunks of one GPU each."""
    shop = KeptCluster(instance_types=(replace(SMALL, capacity=SMALL.capacity + Resources.of([(GPU, gpus)])),))
    asking = workload(replicas=0, cpu="500m")
    asking["spec"]["template"]["spec"]["containers"][0]["resources"] = {"limits": {GPU: "1"}}
    for document in (node_pool(consolidate_after="10s"), asking, buffer(replicas=replicas)):
        shop.cluster.apply(document)
    shop.keep(60)
    assert shop.short() == 0
    return shop


def report_gpus(shop: KeptCluster, names: Collection[str], count: str, seconds: int = 1) -> None:
    """Time passes in which the kubelets of these nodes report so many."""

    def change(node: Document) -> None:
        node["status"] = {**node["status"], "allocatable": {**node["status"]["allocatable"], GPU: count}}

    for _ in range(seconds):
        for name in {node.name for node in shop.cluster.view().nodes}.intersection(names):
            shop.change(node_ref(name), change, "kubelet")
        shop.keep(1)


@pytest.mark.parametrize(("gone", "made"), [(40, 2), (90, 4)])
def test_chunks_wait_for_devices_whose_plugin_starts_anew(gone: int, made: int) -> None:
    """The kubelet reports none meanwhile. Within the grace of a minute no other node is made, and the nodes are not released."""
    shop = gpu_shop(2)
    nodes = [node.name for node in shop.cluster.view().nodes]
    report_gpus(shop, nodes, "0", gone)
    report_gpus(shop, nodes, "1")
    shop.keep(60)
    assert (len(asked_for(shop)), shop.short()) == (made, 0)


def test_chunks_of_a_suspended_buffer_wait_for_devices_without_end() -> None:
    shop = gpu_shop(2)
    nodes = {node.name for node in shop.cluster.view().nodes}
    suspended = buffer(replicas=2)
    suspended["metadata"]["annotations"] = {"headroom.dev/suspend": "true"}
    shop.cluster.apply(suspended)
    report_gpus(shop, nodes, "0", 90)
    assert {node.name for node in shop.cluster.view().nodes if node.is_held} == nodes


def test_no_new_chunk_comes_to_a_node_whose_devices_are_waited_for() -> None:
    shop = gpu_shop(1, gpus=2)
    nodes = [node.name for node in shop.cluster.view().nodes]
    report_gpus(shop, nodes, "0", 2)
    shop.cluster.apply(buffer(replicas=2))
    report_gpus(shop, nodes, "0", 5)
    assert len(asked_for(shop)) == 2


# A node may come up with less room than the catalogue says: the type is planned with what its nodes had.


def as_nodes_come_up(shop: KeptCluster, change: Callable[[Document], None], seconds: int) -> None:
    """Time passes in which each node that is ready is changed."""
    for _ in range(seconds):
        for node in shop.cluster.view().nodes:
            if node.ready:
                shop.change(node_ref(node.name), change, "policy")
        shop.keep(1)


def comes_up_with(shop: KeptCluster, cpu: str, seconds: int = 600) -> None:
    """Time passes in which the kubelet of each m-2x reports so much CPU."""

    def report(node: Document) -> None:
        if node["metadata"]["labels"]["node.kubernetes.io/instance-type"] == "m-2x":
            node["status"] = {**node["status"], "allocatable": {**node["status"]["allocatable"], "cpu": cpu}}

    as_nodes_come_up(shop, report, seconds)


def test_a_type_whose_nodes_come_up_smaller_than_the_catalogue_says_is_planned_with_what_they_have() -> None:
    shop = KeptCluster(instance_types_offered=1)
    for document in (node_pool(consolidate_after="10s"), workload(replicas=0, cpu="1900m"), buffer(replicas=2)):
        shop.cluster.apply(document)
    comes_up_with(shop, "1800m")
    assert asked_for(shop) == [("m-2x",), ("m-2x",), ("m-8x",)]
    assert shop.short() == 0
    assert [node.label("node.kubernetes.io/instance-type") for node in shop.cluster.view().nodes] == ["m-8x"]
    note = "nodes of m-2x came up with 1800m CPU for pods, less than their NodeClaims ask for: new ones are planned with that"
    assert note in shop.passes[-1].plan.notes
    shop.restart()
    shop.cluster.apply(workload("small", replicas=0, cpu="1800m"))
    shop.cluster.apply(buffer("small", of="small", replicas=5))
    comes_up_with(shop, "1800m", 60)
    assert asked_for(shop)[3:] == [("m-2x",)] * 3  # two are beside the first chunks


@pytest.mark.parametrize("daemon", ["static", "larger", "by a label"])
def test_what_a_node_could_not_be_planned_with_takes_room_on_every_node_of_its_type(daemon: str) -> None:
    """A static pod, daemon pods that admission makes larger than their template, and those that come for a label of nodes that are up."""
    shop = KeptCluster(instance_types_offered=1)
    documents = [node_pool(consolidate_after="10s"), workload(replicas=0, cpu="1800m"), buffer(replicas=1)]
    if daemon != "static":
        selector = {} if daemon == "larger" else {"feature": "found"}
        documents.insert(0, workload("agent", kind="DaemonSet", cpu="50m", nodeSelector=selector))
    for document in documents:
        shop.cluster.apply(document)
    kind = "Node" if daemon == "static" else "DaemonSet"
    container = {"name": "main", "resources": {"requests": {"cpu": "150m"}}}
    for _ in range(300):
        for node in shop.cluster.view().nodes:
            name = node.name if daemon == "static" else "agent"
            owner = {"apiVersion": "v1", "kind": kind, "name": name, "uid": name, "controller": True}
            pod = manifest("v1", "Pod", f"agent-{node.name}", "shop", metadata={"ownerReferences": [owner]})
            shop.cluster.apply({**pod, "spec": {"nodeName": node.name, "containers": [container]}})
        shop.keep(1)
    assert (asked_for(shop), shop.short()) == ([("m-2x",), ("m-8x",)], 0)


@pytest.mark.parametrize("change", ["smaller", "elsewhere", "deleted"])
def test_daemon_pods_of_an_earlier_template_say_nothing_of_new_nodes(change: str) -> None:
    """A node came up lately, and then its DaemonSet is rolled out or deleted: the old pod runs for a while."""
    shop = KeptCluster(instance_types_offered=1)
    agent = workload("agent", kind="DaemonSet", cpu="1")
    agent["spec"]["template"]["metadata"]["labels"]["pod-template-generation"] = "1"
    agent["metadata"]["annotations"] = {"deprecated.daemonset.template.generation": "1"}
    for document in (node_pool(consolidate_after="10s"), agent, workload(replicas=0, cpu="900m"), buffer(replicas=1)):
        shop.cluster.apply(document)
    shop.keep(60)
    if change == "deleted":
        shop.cluster.delete(ObjectRef("apps", "DaemonSet", "shop", "agent"))
    else:
        agent["metadata"]["annotations"]["deprecated.daemonset.template.generation"] = "2"
        spec = agent["spec"]["template"]["spec"]
        if change == "smaller":
            spec["containers"][0]["resources"] = {"requests": {"cpu": "100m"}}
        else:
            spec["nodeSelector"] = {"disk": "ssd"}
        shop.cluster.apply(agent)
    shop.keep(20)
    shop.keep(60, workload("other", replicas=0, cpu="1800m"), buffer("other", of="other", replicas=1))
    assert (asked_for(shop), shop.short()) == ([("m-2x",), ("m-2x",)], 0)


# A node may come up such that its chunks cannot be there at all: the same NodeClaim is not asked for again and again.


@pytest.mark.parametrize("change", ["a taint", "a label less"])
def test_nodes_that_somebody_changes_as_they_come_up_are_made_again_only_after_waits_that_double(change: str) -> None:
    shop = KeptCluster(instance_types_offered=1)
    pool = node_pool(consolidate_after="10s")
    pool["spec"]["template"]["metadata"] = {"labels": {"disk": "ssd"}}
    asking = workload(replicas=0, cpu="1900m", nodeSelector={"disk": "ssd"})
    for document in (pool, asking, buffer(replicas=2)):
        shop.cluster.apply(document)

    def changed(node: Document) -> None:
        if change == "a taint":
            node["spec"]["taints"] = [{"key": "agent", "effect": "NoSchedule"}]
        else:
            node["metadata"]["labels"].pop("disk", None)

    as_nodes_come_up(shop, changed, 300)
    shop.restart()
    as_nodes_come_up(shop, changed, 600)
    assert 4 <= len(asked_for(shop)) <= 9
    how = "has the taint agent" if change == "a taint" else "lacks the label disk=ssd"
    told = f"takes none of the chunks that it was made for, since it {how}; one more is made at"
    assert told in conditions(shop)["Provisioning"]

    shop.keep(3 * 3600, step=20)  # nobody changes nodes any more
    assert shop.short() == 0
    shop.cluster.apply(buffer(replicas=4))
    shop.keep(60)
    assert shop.short() == 0

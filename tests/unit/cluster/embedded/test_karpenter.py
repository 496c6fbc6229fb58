"""The life of NodeClaims in the embedded cluster, second by second."""

from __future__ import annotations

import pytest

from reconciler.model.changes import Delete
from reconciler.model.nodes import DO_NOT_DISRUPT, NODEPOOL_HASH, NodeClaim
from tests.fakes.embedded import (
    SMALL,
    Sandbox,
    apply,
    claim_ref,
    node_claim,
    node_pool,
    node_ref,
    pool_ref,
    release,
    workload,
    workload_ref,
)


def claim(sandbox: Sandbox, name: str = "a") -> NodeClaim:
    return next(claim for claim in sandbox.cluster.view().node_claims if claim.name == name)


def stages(sandbox: Sandbox) -> list[str]:
    return [kind for kind, status in claim(sandbox).conditions if status == "True"]


def test_a_node_claim_becomes_an_instance_and_then_a_ready_node() -> None:
    sandbox = Sandbox()
    sandbox.cluster.apply(node_pool())
    sandbox.write(apply(node_claim("a", "m-2x")))
    sandbox.wait(1)
    assert (stages(sandbox), sandbox.node_names()) == ([], [])
    sandbox.wait(1)
    assert (stages(sandbox), sandbox.node_names()) == (["Launched"], [])
    sandbox.wait(3)
    assert stages(sandbox) == ["Initialized", "Launched", "Ready", "Registered"]
    assert (sandbox.node_names(), claim(sandbox).node_name) == (["node-a"], "node-a")
    assert sandbox.node("node-a").ready


def test_a_clock_that_jumps_sees_each_step_at_its_own_time() -> None:
    sandbox = Sandbox()
    sandbox.write(apply(node_claim("a", "m-2x")))
    sandbox.wait(3600)
    body = sandbox.cluster.get(claim_ref("a"))
    assert body is not None
    times = {row["type"]: row["lastTransitionTime"][11:] for row in body["status"]["conditions"]}
    assert (times["Launched"], times["Registered"]) == ("09:00:02Z", "09:00:05Z")


@pytest.mark.parametrize(
    ("types", "zones", "chosen"),
    [
        (("m-8x", "m-2x"), (), ("m-2x", "zone-a", "on-demand")),
        (("m-2x",), ("zone-b",), ("m-2x", "zone-b", "on-demand")),
        (("m-8x",), (), ("m-8x", "zone-a", "spot")),
    ],
)
def test_the_cheapest_offering_that_is_allowed_is_taken(
    types: tuple[str, ...], zones: tuple[str, ...], chosen: tuple[str, str, str]
) -> None:
    sandbox = Sandbox()
    sandbox.add_node("a", *types, zones=zones)
    node = sandbox.node("node-a")
    labels = ("node.kubernetes.io/instance-type", "topology.kubernetes.io/zone", "karpenter.sh/capacity-type")
    assert tuple(node.label(label) for label in labels) == chosen


def test_labels_annotations_and_taints_of_the_claim_are_copied_to_the_node() -> None:
    sandbox = Sandbox()
    taint = {"key": "team", "value": "shop", "effect": "NoSchedule"}
    sandbox.add_node("a", held=True, labels={"headroom.dev/placeholder": "true"}, taints=[taint])
    node = sandbox.node("node-a")
    assert node.label("headroom.dev/placeholder") == "true"
    assert node.label("kubernetes.io/hostname") == "node-a"
    assert node.label("karpenter.sh/initialized") == "true"
    assert node.annotation(DO_NOT_DISRUPT) == "true"
    assert [(item.key, item.value, item.effect) for item in node.taints] == [("team", "shop", "NoSchedule")]
    assert node.allocatable == SMALL.allocatable


def test_a_launch_that_finds_nothing_ends_in_an_event_and_the_claim_is_gone() -> None:
    sandbox = Sandbox()
    for zone in ("zone-a", "zone-b"):
        sandbox.cluster.set_stock("m-2x", zone, "on-demand", available=False)
    sandbox.write(apply(node_claim("a", "m-2x")))
    view = sandbox.wait(2)
    assert view.node_claims == ()
    (recorded,) = sandbox.cluster.events
    assert recorded.event.reason == "InsufficientCapacityError"
    assert recorded.event.message == "NodeClaim a was not launched: out of stock: m-2x"
    sandbox.cluster.set_stock("m-2x", "zone-b", "on-demand", available=True)
    sandbox.add_node("a")
    assert sandbox.node_names() == ["node-a"]


def test_a_pool_gets_its_hash_its_readiness_and_its_usage() -> None:
    sandbox = Sandbox()
    sandbox.add_node("a", "m-2x")
    sandbox.add_node("b", "m-8x")
    body = sandbox.cluster.get(pool_ref())
    assert body is not None
    assert body["metadata"]["annotations"][NODEPOOL_HASH].isdigit()
    assert body["status"]["conditions"][0]["status"] == "True"
    assert (body["status"]["resources"]["cpu"], body["status"]["resources"]["nodes"]) == ("10", "2")


def test_a_claim_made_from_an_older_template_drifts_until_the_template_is_back() -> None:
    sandbox = Sandbox()
    pool = node_pool()
    sandbox.cluster.apply(pool)
    body = sandbox.cluster.get(pool_ref())
    assert body is not None
    made = node_claim("a", "m-2x")
    made["metadata"]["annotations"] = dict(body["metadata"]["annotations"])
    sandbox.cluster.apply(made)
    sandbox.wait(5)
    assert claim(sandbox).condition("Drifted") == "Unknown"
    changed = node_pool()
    changed["spec"]["template"]["metadata"] = {"labels": {"generation": "two"}}
    sandbox.cluster.apply(changed)
    assert claim(sandbox).condition("Drifted") == "True"
    sandbox.cluster.apply(pool)
    assert claim(sandbox).condition("Drifted") == "Unknown"


@pytest.mark.parametrize("annotations", [{}, {DO_NOT_DISRUPT: "true"}], ids=["ordinary", "not to be disrupted"])
def test_a_drifted_node_with_pods_is_replaced_unless_they_must_not_be_disrupted(annotations: dict[str, str]) -> None:
    sandbox = Sandbox(provisions_pending=True)
    pool = node_pool(consolidate_after="1h")
    sandbox.cluster.apply(pool)
    sandbox.cluster.apply(workload(annotations=annotations))
    sandbox.wait(120)
    (before,) = sandbox.node_names()
    pool["spec"]["template"]["metadata"] = {"labels": {"generation": "two"}}
    sandbox.cluster.apply(pool)
    sandbox.wait(300)
    (after,) = sandbox.node_names()
    assert set(sandbox.where().values()) == {after}
    assert (after == before) == bool(annotations)


def test_each_drifted_node_is_replaced_once_though_its_pods_must_be_spread_over_zones() -> None:
    sandbox = Sandbox(provisions_pending=True)
    pool = node_pool(consolidate_after="1h", disruption={"consolidateAfter": "1h", "budgets": [{"nodes": "1"}]})
    sandbox.cluster.apply(pool)
    spread = {"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule"}
    rule = {**spread, "labelSelector": {"matchLabels": {"app": "web"}}}
    sandbox.cluster.apply(workload(replicas=6, cpu="600m", topologySpreadConstraints=[rule]))
    sandbox.wait(60)
    before = set(sandbox.node_names())
    zones = sorted(str(sandbox.node(name).label("topology.kubernetes.io/zone")) for name in before)
    assert zones == ["zone-a", "zone-b"]
    pool["spec"]["template"]["metadata"] = {"labels": {"generation": "two"}}
    sandbox.cluster.apply(pool)
    seen = set(before)
    for _ in range(150):
        sandbox.wait(2)
        seen |= set(sandbox.node_names())
    assert len(seen) == 2 * len(before)
    assert before.isdisjoint(sandbox.node_names())
    assert None not in sandbox.where().values()


def test_a_change_of_requirements_alone_is_no_drift_by_hash() -> None:
    sandbox = Sandbox()
    sandbox.cluster.apply(node_pool())
    before = sandbox.cluster.get(pool_ref())
    changed = node_pool()
    changed["spec"]["template"]["spec"]["requirements"].append(
        {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["zone-a"]}
    )
    sandbox.cluster.apply(changed)
    after = sandbox.cluster.get(pool_ref())
    assert before is not None
    assert after is not None
    assert before["metadata"]["annotations"] == after["metadata"]["annotations"]


def test_deleting_a_claim_drains_its_node_first() -> None:
    sandbox = Sandbox()
    sandbox.add_node("a")
    sandbox.cluster.apply(workload(replicas=2))
    assert set(sandbox.where().values()) == {"node-a"}
    sandbox.write(Delete(claim_ref("a")))
    view = sandbox.cluster.view()
    assert claim(sandbox).deleting
    assert [taint.key for taint in view.nodes[0].taints] == ["karpenter.sh/disrupted"]
    assert set(sandbox.where().values()) == {None}
    view = sandbox.wait(1)
    assert (view.nodes, view.node_claims) == ((), ())
    assert len(view.pods) == 2


def test_an_expired_node_goes_even_when_it_is_held() -> None:
    sandbox = Sandbox()
    sandbox.add_node("a", held=True, expire_after="1h")
    sandbox.wait(3590)
    assert claim(sandbox).deleting is False
    assert sandbox.wait(10).nodes == ()


def test_an_interrupted_node_goes_even_when_it_is_held_and_its_pods_come_back() -> None:
    sandbox = Sandbox()
    sandbox.add_node("a", held=True)
    sandbox.cluster.apply(workload(replicas=1))
    sandbox.cluster.interrupt("node-a")
    assert claim(sandbox).deleting
    assert "SpotInterrupted" in sandbox.reasons()
    view = sandbox.wait(1)
    assert (view.nodes, [pod.node_name for pod in view.pods]) == ((), [None])


def test_a_lost_node_is_gone_at_once_with_its_pods() -> None:
    sandbox = Sandbox()
    sandbox.add_node("a")
    sandbox.cluster.apply(workload(replicas=1))
    sandbox.cluster.lose("node-a")
    view = sandbox.cluster.view()
    assert (view.nodes, view.node_claims, [pod.node_name for pod in view.pods]) == ((), (), [None])


def test_a_held_node_stays_and_goes_only_once_both_marks_are_taken_away() -> None:
    sandbox = Sandbox()
    sandbox.cluster.apply(node_pool(consolidate_after="0s"))
    sandbox.add_node("a", held=True)
    sandbox.wait(3600)
    sandbox.write(release(claim_ref("a")))
    sandbox.wait(3600)
    assert sandbox.node_names() == ["node-a"]
    sandbox.write(release(node_ref("node-a")))
    assert sandbox.wait(1).nodes == ()


def test_a_node_with_pods_stays_and_its_time_begins_when_the_last_one_goes() -> None:
    sandbox = Sandbox()
    sandbox.cluster.apply(node_pool(consolidate_after="30s"))
    sandbox.cluster.apply(workload(replicas=1))
    sandbox.add_node("a")
    sandbox.wait(3600)
    sandbox.cluster.scale(workload_ref(), 0)
    sandbox.wait(29)
    assert sandbox.node_names() == ["node-a"]
    assert sandbox.wait(2).nodes == ()


def test_pods_are_moved_to_a_node_only_once_it_has_been_there_for_a_while() -> None:
    sandbox = Sandbox()
    sandbox.cluster.apply(node_pool(consolidate_after="30s"))
    sandbox.add_node("a")
    sandbox.cluster.apply(workload(replicas=1))
    sandbox.wait(40)  # Karpenter looked ten seconds ago, and makes sure in five
    sandbox.cluster.apply(node_claim("b", "m-2x", held=True))
    sandbox.wait(10)
    assert sandbox.node_names() == ["node-a", "node-b"]
    assert set(sandbox.where().values()) == {"node-a"}
    sandbox.wait(30)
    assert sandbox.node_names() == ["node-b"]
    assert set(sandbox.where().values()) == {"node-b"}


def test_a_budget_of_one_lets_empty_nodes_go_one_after_the_other() -> None:
    sandbox = Sandbox()
    pool = node_pool(consolidate_after="Never")
    pool["spec"]["disruption"]["budgets"] = [{"nodes": "1"}]
    sandbox.cluster.apply(pool)
    for name in ("a", "b", "c"):
        sandbox.add_node(name)
    pool["spec"]["disruption"]["consolidateAfter"] = "0s"
    sandbox.cluster.apply(pool)
    left = [len([claim for claim in sandbox.wait(step).node_claims if not claim.deleting]) for step in (0, 10, 10)]
    assert left == [2, 1, 0]

"""The life of NodeClaims in the embedded cluster, second by second."""

from __future__ import annotations

import pytest

from reconciler.model.nodes import DO_NOT_DISRUPT, NodeClaim
from tests.fakes.embedded import (
    Sandbox,
    apply,
    node_claim,
    node_pool,
    pool_ref,
    workload,
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
    view = sandbox.wait(1)
    assert (view.nodes, [pod.node_name for pod in view.pods]) == ((), [None])


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


def test_a_claim_made_from_an_older_template_drifts_until_the_template_is_back() -> None:
    sandbox = Sandbox()
    pool = node_pool()
    sandbox.cluster.apply(pool)
    body = sandbox.cluster.live(pool_ref())
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

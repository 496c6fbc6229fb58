"""NodeClaims that the embedded Karpenter makes for pending pods, when it is asked to."""

from __future__ import annotations

from tests.fakes.embedded import Document, Sandbox, node_pool, workload, workload_ref

ZONE = "topology.kubernetes.io/zone"
INSTANCE_TYPE = "node.kubernetes.io/instance-type"


def provisioning() -> Sandbox:
    return Sandbox(provisions_pending=True)


def types(sandbox: Sandbox) -> list[str | None]:
    return [node.label(INSTANCE_TYPE) for node in sandbox.cluster.view().nodes]


def test_it_does_so_only_when_asked() -> None:
    sandbox = Sandbox()
    sandbox.cluster.apply(node_pool())
    sandbox.cluster.apply(workload())
    assert sandbox.wait(60).node_claims == ()


def test_a_pending_pod_gets_the_cheapest_node_that_holds_it() -> None:
    sandbox = provisioning()
    sandbox.cluster.apply(node_pool())
    sandbox.cluster.apply(workload(cpu="1"))
    sandbox.wait(5)
    assert types(sandbox) == ["m-2x"]
    assert None not in sandbox.where().values()


def test_pods_share_a_node_while_a_type_holds_them_all() -> None:
    sandbox = provisioning()
    sandbox.cluster.apply(node_pool())
    sandbox.cluster.apply(workload(replicas=10, cpu="1"))
    sandbox.wait(5)
    assert sorted(types(sandbox), key=str) == ["m-8x", "m-8x"]
    assert None not in sandbox.where().values()


def test_daemons_count() -> None:
    sandbox = provisioning()
    sandbox.cluster.apply(node_pool())
    sandbox.cluster.apply(workload("agent", kind="DaemonSet", cpu="1"))
    sandbox.cluster.apply(workload(cpu="1"))
    sandbox.wait(5)
    assert types(sandbox) == ["m-8x"]


def test_the_heaviest_pool_is_tried_first_and_then_the_next() -> None:
    sandbox = provisioning()
    sandbox.cluster.apply(node_pool("heavy", weight=50, limits={"cpu": "2"}))
    sandbox.cluster.apply(node_pool("light"))
    sandbox.cluster.apply(workload(cpu="1500m", replicas=2, **apart()))
    sandbox.wait(10)
    pools = sorted(claim.label("karpenter.sh/nodepool") or "" for claim in sandbox.cluster.view().node_claims)
    assert pools == ["heavy", "light"]


def apart() -> Document:
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}}}
    return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


def test_what_a_pod_selects_is_what_it_gets() -> None:
    sandbox = provisioning()
    sandbox.cluster.apply(node_pool())
    sandbox.cluster.apply(workload(nodeSelector={ZONE: "zone-b"}))
    sandbox.wait(5)
    assert [node.label(ZONE) for node in sandbox.cluster.view().nodes] == ["zone-b"]
    assert None not in sandbox.where().values()


def test_a_pod_that_no_pool_can_serve_gets_nothing() -> None:
    sandbox = provisioning()
    sandbox.cluster.apply(node_pool())
    sandbox.cluster.apply(workload("large", cpu="100"))
    sandbox.cluster.apply(workload("elsewhere", nodeSelector={ZONE: "zone-z"}))
    assert sandbox.wait(60).node_claims == ()


def test_limits_hold() -> None:
    sandbox = provisioning()
    sandbox.cluster.apply(node_pool(limits={"nodes": "1"}))
    sandbox.cluster.apply(workload(replicas=2, cpu="5"))
    assert len(sandbox.wait(60).node_claims) == 1


def test_a_sold_out_type_makes_it_take_another() -> None:
    sandbox = provisioning()
    for zone in ("zone-a", "zone-b"):
        sandbox.cluster.set_stock("m-2x", zone, "on-demand", available=False)
    sandbox.cluster.apply(node_pool())
    sandbox.cluster.apply(workload(cpu="1"))
    sandbox.wait(5)
    assert types(sandbox) == ["m-8x"]


def test_pods_that_no_new_node_helps_do_not_cause_nodes_for_ever() -> None:
    sandbox = provisioning()
    sandbox.cluster.apply(node_pool())
    never = {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": "nobody"}}}
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [never]}}
    sandbox.cluster.apply(workload(affinity=affinity))
    assert len(sandbox.wait(3600).nodes) == 3


def test_what_was_made_goes_again_when_its_pods_go() -> None:
    sandbox = provisioning()
    sandbox.cluster.apply(node_pool(consolidate_after="30s"))
    sandbox.cluster.apply(workload(replicas=3))
    sandbox.wait(60)
    assert len(sandbox.node_names()) == 1
    sandbox.cluster.scale(workload_ref(), 0)
    assert sandbox.wait(60).nodes == ()

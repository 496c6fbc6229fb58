"""The embedded cluster's pods that wait, its provisioner, and its static NodePools."""

from __future__ import annotations

from typing import Any

from reconciler.cluster.embedded.provisioner import RETRY
from tests.fakes.embedded import LARGE, SMALL, Document, Sandbox, node_pool, workload

ZONE = "topology.kubernetes.io/zone"


def provisioning() -> Sandbox:
    return Sandbox(provisions_pending=True)


def test_what_does_not_fit_stays_pending_and_is_bound_when_there_is_room() -> None:
    sandbox = Sandbox()
    for name in ("a", "b", "c"):
        sandbox.add_node(name)
    sandbox.cluster.apply(workload(replicas=4, cpu="1500m"))
    assert list(sandbox.where().values()).count(None) == 1
    sandbox.add_node("d")
    assert None not in sandbox.where().values()


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


def test_a_pod_that_no_pool_can_serve_gets_nothing() -> None:
    sandbox = provisioning()
    sandbox.cluster.apply(node_pool())
    sandbox.cluster.apply(workload("large", cpu="100"))
    sandbox.cluster.apply(workload("elsewhere", nodeSelector={ZONE: "zone-z"}))
    assert sandbox.wait(60).node_claims == ()


def test_pods_that_no_new_node_helps_do_not_cause_nodes_for_ever() -> None:
    sandbox = provisioning()
    sandbox.cluster.apply(node_pool())
    never = {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": "nobody"}}}
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [never]}}
    sandbox.cluster.apply(workload(affinity=affinity))
    assert len(sandbox.wait(3600).nodes) == 3


def static(replicas: int, **spec: Any) -> Document:
    return node_pool("reports", consolidate_after="0s", replicas=replicas, **spec)


def sized(replicas: int, **spec: Any) -> Sandbox:
    sandbox = Sandbox()
    sandbox.cluster.apply(static(replicas, **spec))
    sandbox.wait(5)
    return sandbox


def test_it_has_as_many_nodes_as_replicas_and_keeps_them_though_they_are_empty() -> None:
    sandbox = sized(2)
    assert len(sandbox.node_names()) == 2
    before = sandbox.node_names()
    sandbox.wait(3600)
    assert sandbox.node_names() == before


def test_the_empty_node_goes_first() -> None:
    sandbox = sized(2)
    sandbox.cluster.apply(workload(replicas=1, cpu="1"))
    sandbox.wait(5)
    (used,) = sandbox.where().values()
    sandbox.cluster.apply(static(1))
    sandbox.wait(5)
    assert sandbox.node_names() == [used]


def test_a_node_that_is_lost_is_made_again() -> None:
    sandbox = sized(1)
    (name,) = sandbox.node_names()
    sandbox.cluster.lose(name)
    sandbox.wait(RETRY.total_seconds() + 5)
    assert len(sandbox.node_names()) == 1
    assert sandbox.node_names() != [name]


def test_a_stock_out_is_tried_again_until_there_is_stock() -> None:
    sandbox = Sandbox(instance_types=(SMALL, LARGE))
    offers = [(item.name, offering) for item in (SMALL, LARGE) for offering in item.offerings]
    for name, offering in offers:
        sandbox.cluster.set_stock(name, offering.zone, offering.capacity_type, available=False)
    sandbox.cluster.apply(static(1))
    sandbox.wait(30)
    assert sandbox.node_names() == []
    for name, offering in offers:
        sandbox.cluster.set_stock(name, offering.zone, offering.capacity_type, available=True)
    sandbox.wait(RETRY.total_seconds() + 5)
    assert len(sandbox.node_names()) == 1

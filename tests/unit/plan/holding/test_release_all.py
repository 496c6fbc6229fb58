"""Every held node is handed back when headroom leaves, and nothing else is touched."""

from __future__ import annotations

from dataclasses import replace

from reconciler.model.changes import Outcome
from reconciler.model.nodes import DO_NOT_DISRUPT, HELD_ANNOTATION, HELD_TAINT, SCARCE_TAINT
from reconciler.model.provisioning_requests import reserved_taint
from reconciler.model.refs import ObjectRef
from reconciler.model.view import ClusterView
from reconciler.plan.holding.hold import releases
from tests.fakes.embedded import Sandbox, node_ref
from tests.unit.plan.worlds import HELD, pool_node, together, with_node

GONE = ((HELD_TAINT, False), (SCARCE_TAINT, False))


def test_placeholders_and_nodes_that_were_there_before_are_released() -> None:
    view = together(
        with_node("node-1", HELD),
        ClusterView(nodes=(pool_node("before", annotations=HELD),)),
        with_node("persons", {DO_NOT_DISRUPT: "true"}),
        with_node("free"),
    )
    found = releases(view)
    assert [str(write.ref) for write in found] == ["NodeClaim/claim-of-node-1", "Node/before", "Node/node-1"]
    assert [write.taints for write in found] == [(), GONE, GONE]
    assert {write.annotations for write in found} == {((DO_NOT_DISRUPT, None), (HELD_ANNOTATION, None))}


def test_a_reserved_node_is_everybodys_afterwards_also_one_that_is_not_held() -> None:
    taint = reserved_taint(ObjectRef("autoscaling.x-k8s.io", "ProvisioningRequest", "shop", "train"))
    reserved = pool_node("reserved", annotations=HELD)
    left = pool_node("left")
    view = ClusterView(nodes=tuple(replace(node, taints=(taint,)) for node in (reserved, left)))
    assert {write.ref.name: write.taints for write in releases(view)} == {
        "reserved": (*GONE, (taint, False)),
        "left": ((taint, False),),
    }


def test_a_cluster_that_was_released_has_nothing_left_to_release() -> None:
    sandbox = Sandbox()
    sandbox.add_node("general-1")
    (name,) = sandbox.node_names()
    for write in releases(with_node(name, HELD)):
        held = tuple((key, "true") for key, _ in write.annotations)
        sandbox.write(replace(write, annotations=held, taints=tuple((taint, True) for taint, _ in write.taints)))
    view = sandbox.wait()
    assert HELD_TAINT in sandbox.node(name).taints
    assert sandbox.node(name).annotation(DO_NOT_DISRUPT) == "true"
    results = [sandbox.write(write) for write in releases(view)]
    assert Outcome.APPLIED in {result.outcome for result in results}
    assert releases(sandbox.wait()) == ()
    assert HELD_TAINT not in sandbox.node(name).taints
    body = sandbox.cluster.get(node_ref(name))
    assert body is not None
    assert DO_NOT_DISRUPT not in body["metadata"].get("annotations", {})

"""The whole daemon is suspended and goes on while it runs, by an annotation of its inventory."""

from __future__ import annotations

from reconciler.catalog.observed import ClusterCatalog
from reconciler.cluster.inventory import InventoryParent
from reconciler.model.changes import Annotate
from reconciler.settings.settings import Settings
from reconciler.wiring.cycle import make_cycle
from tests.fakes.embedded import Sandbox, buffer, node_pool, workload
from tests.fakes.source import FakeSource

INVENTORY = InventoryParent()


def test_nothing_is_written_until_it_is_taken_back() -> None:
    sandbox = Sandbox()
    for document in (node_pool(), workload(replicas=0), buffer()):
        sandbox.cluster.apply(document)
    for kind, name in (("Namespace", INVENTORY.namespace), ("ConfigMap", INVENTORY.name)):
        namespace = {"namespace": INVENTORY.namespace} if kind == "ConfigMap" else {}
        sandbox.cluster.apply({"apiVersion": "v1", "kind": kind, "metadata": {"name": name, **namespace}})
    cycle = make_cycle(
        Settings(),
        source=FakeSource(),
        cluster=sandbox.cluster,
        catalog=ClusterCatalog("embedded"),
        clock=sandbox.clock,
    )
    sandbox.write(Annotate(INVENTORY.ref, (("headroom.dev/suspend", "true"),)))

    suspended = cycle.run("tick")

    assert suspended.change_set is None
    assert suspended.required_plan.has_changes
    assert "headroom is suspended: nothing of this is applied" in suspended.required_plan.notes
    assert sandbox.wait().node_claims == ()
    sandbox.write(Annotate(INVENTORY.ref, (("headroom.dev/suspend", None),)))
    assert cycle.run("change").change_set is not None
    assert sandbox.wait().node_claims
    # What headroom writes into its inventory leaves the annotation of others alone.
    sandbox.write(Annotate(INVENTORY.ref, (("headroom.dev/suspend", "true"),)))
    assert cycle.run("tick").change_set is None

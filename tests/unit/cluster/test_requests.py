"""What people write on the inventory to a daemon that runs."""

from __future__ import annotations

from reconciler.cluster.inventory import InventoryParent
from reconciler.cluster.resources import CONFIG_MAPS
from reconciler.cluster.view import ViewStore

PARENT = InventoryParent()


def test_a_request_and_a_suspension_are_seen_in_the_store_and_in_the_view() -> None:
    store = ViewStore(PARENT)
    assert store.requested_at == ""
    annotations = {"headroom.dev/requestedAt": "noon", "headroom.dev/suspend": "true"}
    metadata = {"name": PARENT.name, "namespace": PARENT.namespace, "annotations": annotations}
    changed = store.put(CONFIG_MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
    assert changed
    assert store.requested_at == "noon"
    inventory = store.view().inventory
    assert (inventory.requested_at, inventory.suspended) == ("noon", True)

"""Pods that are done: only what they used is still known of them."""

from __future__ import annotations

import pytest

from reconciler.cluster.inventory import InventoryParent
from reconciler.cluster.resources import PODS
from reconciler.cluster.view import ViewStore
from tests.unit.cluster.documents import pod

USED = {"autoscaling.x-k8s.io/consume-provisioning-request": "train"}
USED_OF_OLD = {"cluster-autoscaler.kubernetes.io/consume-provisioning-request": "train"}


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
@pytest.mark.parametrize("annotations", [USED, USED_OF_OLD])
def test_one_that_used_a_request_is_kept_apart(phase: str, annotations: dict[str, str]) -> None:
    store = ViewStore(InventoryParent())
    running, done = pod("web-1"), pod("train-1", phase=phase)
    done["metadata"]["annotations"] = annotations
    store.put(PODS, running)
    store.put(PODS, done)
    view = store.view()
    assert [item.name for item in view.pods] == ["web-1"]
    assert [(item.name, item.node_name) for item in view.finished_pods] == [("train-1", "node-1")]
    store.remove(PODS, "shop", "train-1")
    assert store.view().finished_pods == ()


def test_one_that_ends_leaves_the_pods_that_take_room() -> None:
    store = ViewStore(InventoryParent())
    document = pod("train-1")
    document["metadata"]["annotations"] = USED
    store.put(PODS, document)
    assert [item.name for item in store.view().pods] == ["train-1"]
    document["status"]["phase"] = "Succeeded"
    store.put(PODS, document)
    assert store.view().pods == ()
    assert [item.name for item in store.view().finished_pods] == ["train-1"]


@pytest.mark.parametrize(("node", "annotations"), [("node-1", {}), (None, USED)])
def test_any_other_is_forgotten(node: str | None, annotations: dict[str, str]) -> None:
    store = ViewStore(InventoryParent())
    document = pod("train-1", node=node, phase="Succeeded")
    document["metadata"]["annotations"] = annotations
    store.put(PODS, document)
    assert (store.view().pods, store.view().finished_pods) == ((), ())

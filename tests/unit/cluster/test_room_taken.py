"""Which changes of a cluster take room that is held."""

from __future__ import annotations

import pytest

from reconciler.cluster.resources import BY_KIND
from reconciler.cluster.view import ViewStore

HELD = {"karpenter.sh/do-not-disrupt": "true", "headroom.dev/held": "true"}


def node(annotations: dict[str, str] | None = None, **more: object) -> dict[str, object]:
    return {"metadata": {"name": "node-1", "annotations": annotations or {}, **more}, "spec": {}, "status": {}}


def pod(name: str, on: str = "", owner: str = "ReplicaSet", **metadata: object) -> dict[str, object]:
    owners = [{"kind": owner, "name": "web", "uid": "1", "controller": True, "apiVersion": "apps/v1"}]
    spec = {"containers": [{"name": "main"}], **({"nodeName": on} if on else {})}
    return {"metadata": {"name": name, "namespace": "shop", "ownerReferences": owners, **metadata}, "spec": spec}


class Store(ViewStore):
    def see(self, kind: str, body: object) -> int:
        """How often held room was taken with this change."""
        before = self.room_taken
        group = "karpenter.sh" if kind == "NodeClaim" else ""
        self.put(BY_KIND[group, kind], body)  # type: ignore[arg-type]
        return self.room_taken - before


@pytest.mark.parametrize(("annotations", "taken"), [(HELD, 1), ({}, 0)])
def test_a_pod_takes_room_where_it_is_bound(annotations: dict[str, str], taken: int) -> None:
    store = Store()
    store.see("Node", node(annotations))
    assert store.see("Pod", pod("web-1")) == 0
    assert store.see("Pod", pod("web-1", "node-1")) == taken
    assert store.see("Pod", pod("web-1", "node-1", labels={"a": "b"})) == 0
    assert store.see("Pod", pod("logs", "node-1", owner="DaemonSet")) == 0
    assert store.see("Pod", pod("elsewhere", "node-2")) == 0


def test_a_held_node_that_begins_to_go_takes_its_room_along() -> None:
    store = Store()
    store.see("Node", node(HELD))
    assert store.see("Node", node(HELD, deletionTimestamp="2026-11-23T09:00:00Z")) == 1
    assert store.see("Node", node(HELD, deletionTimestamp="2026-11-23T09:00:00Z", labels={"a": "b"})) == 0
    store.remove(BY_KIND["", "Node"], "", "node-1")
    assert store.room_taken == 2

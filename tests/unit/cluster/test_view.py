"""The store that makes views."""

from __future__ import annotations

import msgspec
import pytest

from reconciler.cluster.apply import InventoryParent, applyset_id, parent_manifest
from reconciler.cluster.resources import (
    BY_KIND,
    CAPACITY_BUFFERS,
    CONFIG_MAPS,
    NODE_POOLS,
    NODES,
    PODS,
    RESOURCES,
)
from reconciler.cluster.view import ViewStore
from reconciler.model.refs import ObjectRef
from reconciler.model.remembered import Inventory
from tests.unit.cluster.documents import Document, buffer, node, pod

PARENT = InventoryParent("headroom-system", "headroom")
BUFFER = ObjectRef("autoscaling.x-k8s.io", "CapacityBuffer", "shop", "web")


def test_json_text_and_plain_values_are_the_same() -> None:
    store = ViewStore()
    store.put(PODS, pod())
    assert store.put(PODS, msgspec.json.encode(pod())) is False


def test_what_a_list_leaves_out_is_gone() -> None:
    store = ViewStore()
    store.replace(PODS, [pod("a"), pod("b")])
    assert store.replace(PODS, [pod("b")]) is True
    assert [item.name for item in store.view().pods] == ["b"]
    assert store.replace(PODS, [pod("b")]) is False


@pytest.mark.parametrize("claims", [("data-a", "data-b"), ("", "data", "")], ids=str)
def test_siblings_have_their_own_claims_of_volumes(claims: tuple[str, ...]) -> None:
    documents = [pod(f"web-{number}") for number in range(len(claims))]
    for document, claim in zip(documents, claims, strict=True):
        if claim:
            document["spec"]["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]
    store = ViewStore()
    store.replace(PODS, documents)
    assert [item.shape.volume_claims for item in store.view().pods] == [(claim,) if claim else () for claim in claims]


def test_siblings_with_labels_of_their_own_differ() -> None:
    documents = [pod("db-0"), pod("db-1")]
    for document in documents:
        document["metadata"]["labels"] = {"statefulset.kubernetes.io/pod-name": document["metadata"]["name"]}
    store = ViewStore()
    store.replace(PODS, documents)
    assert [item.shape.labels[0][1] for item in store.view().pods] == ["db-0", "db-1"]


def test_an_object_that_cannot_be_read_is_a_gap_and_the_others_are_there() -> None:
    store = ViewStore()
    store.replace(PODS, [pod("bad", cpu="lots"), pod("good")])
    view = store.view()
    assert [item.name for item in view.pods] == ["good"]
    assert view.complete is False
    assert view.gaps == ("Pod/shop/bad cannot be read: resources of container main: 'lots' is not a quantity",)


def test_objects_of_one_kind_that_cannot_be_read_are_named_only_at_first() -> None:
    store = ViewStore()
    store.replace(PODS, [pod(f"bad-{number:03}", cpu="lots") for number in range(300)])
    store.set_gap(PODS, "cannot be read: busy")
    gaps = store.view().gaps
    assert len(gaps) == 7
    assert (gaps[0], gaps[-1]) == ("295 more of kind Pod cannot be read", "pods cannot be read: busy")
    assert [gap.split()[0] for gap in gaps[1:6]] == [f"Pod/shop/bad-00{number}" for number in range(5)]


def test_kinds_that_cannot_be_read_for_one_reason_are_told_together() -> None:
    """An API server that was away had one sentence for each of 27 kinds."""
    store = ViewStore()
    store.set_gap("the list of kinds", "cannot be read: no answer")
    for resource in RESOURCES:
        store.set_gap(resource, "cannot be read: no answer")
    store.set_gap(PODS, "cannot be watched: busy")
    named = "buffers.autoscaling.x-k8s.io, capacitybuffers.autoscaling.x-k8s.io, cronjobs.batch, daemonsets.apps"
    more = len(RESOURCES) - 4
    assert store.view().gaps == (f"{named} and {more} more cannot be read: no answer", "pods cannot be watched: busy")


POOL_SPEC: Document = {"template": {"spec": {"nodeClassRef": {"group": "g", "kind": "K", "name": "default"}}}}


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        (POOL_SPEC | {"limits": {"cpu": "abc"}}, "spec.limits.cpu: 'abc' is not a quantity"),
        ({"limits": {"cpu": "1"}}, "spec.template is missing"),
        ({"template": {"spec": {}}}, "nodeClassRef is missing"),
        ({"template": {"spec": {"nodeClassRef": "default"}}}, "it has another form than NodePools of v1 or v1beta1"),
    ],
)
def test_a_node_pool_that_cannot_be_read_is_a_gap_but_still_an_object_to_compare_with(spec: Document, why: str) -> None:
    store = ViewStore()
    store.replace(NODE_POOLS, [{"metadata": {"name": "general"}, "spec": spec}])
    view = store.view()
    assert view.gaps == (f"NodePool/general cannot be read: {why}",)
    assert [ref.name for ref in view.objects] == ["general"]
    store.replace(NODE_POOLS, [{"metadata": {"name": "general"}, "spec": POOL_SPEC}])
    assert store.view().complete


def test_an_object_that_became_unreadable_stays_as_it_was_last_understood() -> None:
    store = ViewStore()
    store.put(PODS, pod())
    store.put(PODS, pod(cpu="lots"))
    assert [item.name for item in store.view().pods] == ["web-1"]


@pytest.mark.parametrize("way", ["repaired", "removed", "listed without"])
def test_the_gap_closes_when_the_object_is_repaired_or_gone(way: str) -> None:
    store = ViewStore()
    store.put(PODS, pod(cpu="lots"))
    if way == "repaired":
        store.put(PODS, pod())
    elif way == "removed":
        store.remove(PODS, "shop", "web-1")
    else:
        store.replace(PODS, [])
    assert store.view().complete is True


def test_a_gap_in_a_whole_kind_outlives_a_list_of_it() -> None:
    store = ViewStore()
    store.set_gap(PODS, "cannot be read: the connection was lost")
    store.replace(PODS, [pod()])
    assert store.view().gaps == ("pods cannot be read: the connection was lost",)
    assert store.set_gap(PODS, "") is True
    assert store.view().complete is True


def test_the_id_of_an_applyset_is_the_one_kubectl_reckons() -> None:
    # The id that kubectl's own tests expect for Secret test/my-set.
    parent = ObjectRef("", "Secret", "test", "my-set")
    assert applyset_id(parent) == "applyset-0eFHV8ySqp7XoShsGvyWFQD3s96yqwHmzc4e0HR1dsY-v1"


def test_a_spoiled_memory_is_a_gap_and_not_forgotten() -> None:
    store = ViewStore(PARENT)
    document = dict(parent_manifest(PARENT, Inventory(records={"done": ["x"]})))
    store.put(CONFIG_MAPS, document)
    store.put(CONFIG_MAPS, document | {"data": {"memory.json": "{oops"}})
    view = store.view()
    assert view.inventory.records == {"done": ["x"]}
    assert view.complete is False


def test_the_uid_of_an_object() -> None:
    store = ViewStore()
    store.put(NODES, node())
    store.put(CAPACITY_BUFFERS, buffer())
    assert store.uid_of(ObjectRef("", "Node", "", "node-1")) == "uid-node-1"
    assert store.uid_of(BUFFER) == "uid-web"
    assert store.uid_of(ObjectRef("", "Node", "", "ghost")) == ""


HELD = {"karpenter.sh/do-not-disrupt": "true", "headroom.dev/held": "true"}


def a_node(annotations: dict[str, str] | None = None, **more: object) -> dict[str, object]:
    return {"metadata": {"name": "a_node-1", "annotations": annotations or {}, **more}, "spec": {}, "status": {}}


def a_pod(name: str, on: str = "", owner: str = "ReplicaSet", **metadata: object) -> dict[str, object]:
    owners = [{"kind": owner, "name": "web", "uid": "1", "controller": True, "apiVersion": "apps/v1"}]
    spec = {"containers": [{"name": "main"}], **({"nodeName": on} if on else {})}
    return {"metadata": {"name": name, "namespace": "shop", "ownerReferences": owners, **metadata}, "spec": spec}


class Store(ViewStore):
    def see(self, kind: str, body: object) -> int:
        """How often held room was taken with this change."""
        before = self.room_changes[0]
        group = "karpenter.sh" if kind == "NodeClaim" else ""
        self.put(BY_KIND[group, kind], body)
        return self.room_changes[0] - before


@pytest.mark.parametrize(("annotations", "taken"), [(HELD, 1), ({}, 0)])
def test_a_pod_takes_room_where_it_is_bound(annotations: dict[str, str], taken: int) -> None:
    store = Store()
    store.see("Node", a_node(annotations))
    assert store.see("Pod", a_pod("web-1")) == 0
    assert store.see("Pod", a_pod("web-1", "a_node-1")) == taken
    assert store.see("Pod", a_pod("web-1", "a_node-1", labels={"a": "b"})) == 0
    assert store.see("Pod", a_pod("logs", "a_node-1", owner="DaemonSet")) == 0
    assert store.see("Pod", a_pod("elsewhere", "a_node-2")) == 0


def test_a_held_node_that_begins_to_go_takes_its_room_along() -> None:
    store = Store()
    store.see("Node", a_node(HELD))
    assert store.see("Node", a_node(HELD, deletionTimestamp="2026-11-23T09:00:00Z")) == 1
    assert store.see("Node", a_node(HELD, deletionTimestamp="2026-11-23T09:00:00Z", labels={"a": "b"})) == 0
    store.remove(BY_KIND["", "Node"], "", "a_node-1")
    assert store.room_changes[0] == 2


def test_room_has_come_once_no_held_node_is_on_its_way() -> None:
    def claim(name: str, initialized: str, annotations: dict[str, str] = HELD) -> dict[str, object]:
        status = {"conditions": [{"type": "Initialized", "status": initialized}]}
        return {"metadata": {"name": name, "annotations": annotations}, "spec": {}, "status": status}

    store = Store()
    for name in ("first", "last"):
        store.see("NodeClaim", claim(name, "Unknown"))
    store.see("NodeClaim", claim("another", "Unknown", {}))
    store.see("NodeClaim", claim("first", "True"))
    assert store.room_changes[1] == 0
    store.see("NodeClaim", claim("last", "True"))
    assert store.room_changes == (0, 1)
    store.see("NodeClaim", claim("another", "True", {}))
    store.see("NodeClaim", claim("last", "True"))
    assert store.room_changes[1] == 1


def test_pods_of_the_first_list_take_no_room_but_those_of_a_later_one_do() -> None:
    store = ViewStore()
    store.put(NODES, a_node(HELD))
    there = a_pod("web-1", "a_node-1")
    assert store.replace(PODS, [there]) is True
    assert store.room_changes[0] == 0
    assert store.replace(PODS, [there]) is False
    assert store.replace(PODS, [there, a_pod("web-2", "a_node-1")]) is True
    assert store.room_changes[0] == 1
    assert [pod.name for pod in store.view().pods] == ["web-1", "web-2"]

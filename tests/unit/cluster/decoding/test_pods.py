"""Pods: the finished, and one that is resized."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from reconciler.cluster.apply import InventoryParent
from reconciler.cluster.connection import Answer
from reconciler.cluster.decoding.protobuf import page_of
from reconciler.cluster.resources import PODS, Resource
from reconciler.cluster.snapshot.files import snapshot_at
from reconciler.cluster.view import ViewStore
from reconciler.cluster.watch import pages_of
from reconciler.model.errors import Invalid
from tests.unit.cluster.documents import Document, capture, pod
from tests.unit.cluster.scripted_server import Reply, Script, serving

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


def test_one_that_is_resized_counts_for_what_it_asks_for_and_a_snapshot_keeps_that(tmp_path: Path) -> None:
    status = {"name": "main", "resources": {"requests": {"cpu": "3"}}, "allocatedResources": {"cpu": "2"}}
    document = pod(cpu="1", containerStatuses=[status])

    def read(resource: Resource) -> Iterable[Document]:
        return [document] if resource == PODS else []

    capture(read, tmp_path)
    assert snapshot_at(str(tmp_path)).view().pods[0].shape.requests.get("cpu") == 1000
    assert "Statuses" not in (tmp_path / "pods.json").read_text()


# Lists in protobuf. The recorded page is an API server's (1.36); tests/integration holds every field against a real one.

RECORDED = Path(__file__).with_name("pods.protobuf").read_bytes()
AS_JSON = Path(__file__).with_name("pods.json").read_bytes()
UNAUTHORIZED = (
    b"k8s\0\n\x0c\n\x02v1\x12\x06Status\x120\n\x06\n\x00\x12\x00\x1a\x00\x12\x07Failure"
    b'\x1a\x0cUnauthorized"\x0cUnauthorized0\x91\x03\x1a\x00"\x00'
)


def stored(body: bytes) -> ViewStore:
    store = ViewStore()
    with serving(Script([Reply(body=body)])) as connection:
        page = next(pages_of(connection, "/api/v1/pods", PODS))
        store.replace(PODS, page.items or ())
    return store


def test_a_recorded_page_is_what_its_json_is() -> None:
    view = stored(RECORDED).view()
    assert (view.complete, len(view.pods)) == (True, 1)
    assert view.pods == stored(AS_JSON).view().pods


@pytest.mark.parametrize(
    "data", [RECORDED[:-9], b"k8s\0\xff", RECORDED[:700]], ids=["cut", "not protobuf", "cut early"]
)
def test_a_damaged_page_is_no_list(data: bytes) -> None:
    with pytest.raises(Invalid, match="is not the protobuf of an API server"):
        page_of(PODS, data)


def test_a_pod_that_headroom_fails_on_is_a_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_arguments: object) -> None:
        raise ValueError("a planted fault")

    monkeypatch.setattr("reconciler.cluster.decoding.pods.object_of", broken)
    name = stored(AS_JSON).view().pods[0].name
    gap = f"Pod/team-0/{name} cannot be read: headroom failed on it (ValueError: a planted fault)"
    assert stored(RECORDED).view().gaps == (gap,)


def test_a_refusal_is_told_in_the_servers_words() -> None:
    refused = Answer(401, UNAUTHORIZED).failure()
    assert (refused.message, refused.reason, refused.code) == ("Unauthorized", "Unauthorized", 401)

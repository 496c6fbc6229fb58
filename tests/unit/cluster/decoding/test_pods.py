"""Pods: the finished, and those that are resized."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from reconciler.cluster.apply import InventoryParent
from reconciler.cluster.connection import Answer
from reconciler.cluster.decoding.protobuf import page_of
from reconciler.cluster.resources import PODS, Resource
from reconciler.cluster.snapshot.capture import capture
from reconciler.cluster.snapshot.files import snapshot_at
from reconciler.cluster.view import ViewStore
from reconciler.cluster.watch import pages_of
from reconciler.model.errors import Invalid
from tests.unit.cluster.documents import Document, pod
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


INFEASIBLE = [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}]
DEFERRED = [{"type": "PodResizePending", "status": "True", "reason": "Deferred"}]


def having(cpu: str | None, allocated: str | None = None, name: str = "main", **more: str) -> dict[str, Any]:
    """A container's status."""
    requests = {"memory": "512Mi", **({"cpu": cpu} if cpu else {}), **more}
    return {
        "name": name,
        "state": {"terminated": {"message": "hunter2"}},
        "resources": {"requests": requests},
        **({"allocatedResources": {"cpu": allocated, "memory": "512Mi"}} if allocated else {}),
    }


def with_sidecar(document: Document, restart_policy: str | None) -> Document:
    container = {"name": "proxy", "resources": {"requests": {"cpu": "1"}}}
    document["spec"]["initContainers"] = [container | ({"restartPolicy": restart_policy} if restart_policy else {})]
    document["status"]["initContainerStatuses"] = [having("3", name="proxy")]
    return document


def with_own_resources(document: Document, **status: Any) -> Document:
    document["spec"]["resources"] = {"requests": {"cpu": "2"}}
    document["status"] |= status
    return document


def cpu_of(document: Document) -> int:
    store = ViewStore()
    store.put(PODS, document)
    view = store.view()
    assert view.complete
    return view.pods[0].shape.requests.get("cpu")


CASES = {
    "shrinking, the container still has more": (pod(cpu="1", containerStatuses=[having("3")]), 3000),
    "shrinking, more is set aside": (pod(cpu="1", containerStatuses=[having("1", "3")]), 3000),
    "growing": (pod(cpu="3", containerStatuses=[having("1", "1")]), 3000),
    "growing, put off": (pod(cpu="3", containerStatuses=[having("1", "1")], conditions=DEFERRED), 3000),
    "growing, never to be granted": (pod(cpu="3", containerStatuses=[having("1", "2")], conditions=INFEASIBLE), 2000),
    "the same in other words": (pod(cpu="1", containerStatuses=[having("1000m")]), 1000),
    "a status without resources": (pod(cpu="1", containerStatuses=[{"name": "main", "allocatedResources": {"cpu": "3"}}]), 1000),
    "the status of another container": (pod(cpu="1", containerStatuses=[having("3", name="gone")]), 1000),
    "a sidecar": (with_sidecar(pod(cpu="1"), "Always"), 4000),
    "an init container that ends": (with_sidecar(pod(cpu="1"), None), 1000),
    "the pod's own resources": (
        with_own_resources(pod(cpu="1"), resources={"requests": {"cpu": "3"}}, allocatedResources={"cpu": "4"}), 4000,
    ),
    "the pod's own, never to be granted": (
        with_own_resources(pod(cpu="1"), resources={"requests": {"cpu": "1500m"}}, conditions=INFEASIBLE), 1500,
    ),
    "the pod's own in other words": (
        with_own_resources(pod(cpu="1"), resources={"requests": {"cpu": "2000m"}}, allocatedResources={"cpu": "2"}), 2000,
    ),
    "the pod's own in a status without resources": (
        with_own_resources(pod(cpu="1"), allocatedResources={"cpu": "4"}), 2000,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("document", "expected"), CASES.values(), ids=CASES)
def test_what_a_pod_counts_for_while_it_is_resized(document: Document, expected: int) -> None:
    assert cpu_of(document) == expected


def test_a_limit_is_the_request_where_there_is_none() -> None:
    document = pod(cpu="1", containerStatuses=[having("1", None, **{"example.com/gpu": "1"})])
    document["spec"]["containers"][0]["resources"] = {"requests": {"memory": "512Mi"}, "limits": {"cpu": "2"}}
    assert cpu_of(document) == 2000


def test_siblings_of_which_one_is_resized_differ() -> None:
    store = ViewStore()
    store.replace(PODS, [pod("a", cpu="1"), pod("b", cpu="1", containerStatuses=[having("3")]), pod("c", cpu="1")])
    assert [item.shape.requests.get("cpu") for item in store.view().pods] == [1000, 3000, 1000]


@pytest.mark.parametrize("case", CASES)
def test_a_snapshot_keeps_what_counts_and_nothing_else(tmp_path: Path, case: str) -> None:
    document, expected = CASES[case]

    def read(resource: Resource) -> Iterable[Document]:
        return [document] if resource == PODS else []

    capture(read, tmp_path)
    assert snapshot_at(str(tmp_path)).view().pods[0].shape.requests.get("cpu") == expected
    assert "hunter2" not in (tmp_path / "pods.json").read_text()


def test_a_snapshot_has_no_status_of_containers_that_have_what_they_ask_for(tmp_path: Path) -> None:
    def read(resource: Resource) -> Iterable[Document]:
        return [pod(cpu="1", containerStatuses=[having("1", "1")], conditions=[])] if resource == PODS else []

    capture(read, tmp_path)
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
        store.replace(PODS, page.items)
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


def test_a_refusal_is_told_in_the_servers_words() -> None:
    refused = Answer(401, UNAUTHORIZED).failure()
    assert (refused.message, refused.reason, refused.code) == ("Unauthorized", "Unauthorized", 401)

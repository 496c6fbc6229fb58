"""Snapshots: what is captured, what never is, and that planning on one reads what the cluster was."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import re
import tarfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import pytest

from reconciler.cluster.resources import (
    CAPACITY_BUFFERS,
    CONFIG_MAPS,
    DEPLOYMENTS,
    JOBS,
    NODES,
    POD_TEMPLATES,
    PODS,
    RESOURCES,
    Resource,
    scaled_kind,
)
from reconciler.cluster.scales import scale_document
from reconciler.cluster.snapshot.files import CATALOG_FILE, file_of, snapshot_at
from reconciler.cluster.view import ViewStore
from reconciler.model.changes import Delete, Outcome
from reconciler.model.errors import Invalid
from reconciler.model.findings import Severity
from reconciler.model.refs import ObjectRef
from tests import builders
from tests.unit.cluster.documents import Document, buffer, capture, deployment, managed, named, node, pod

SECRET = "hunter2"


def telling_pod(name: str = "web-1") -> Document:
    """A pod that has a secret everywhere one may be."""
    document = pod(name)
    document["apiVersion"], document["kind"] = "v1", "Pod"
    container = document["spec"]["containers"][0]
    container |= {
        "env": [{"name": "PASSWORD", "value": SECRET}],
        "args": [SECRET],
        "command": [SECRET],
        "image": SECRET,
    }
    document["spec"]["volumes"] = [
        {"name": "data", "persistentVolumeClaim": {"claimName": "data"}},
        {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"metadata": {"annotations": {"x": SECRET}}}}},
        {"name": "share", "csi": {"driver": "x", "volumeAttributes": {"password": SECRET}}},
    ]
    document["metadata"]["annotations"] = {
        "kubectl.kubernetes.io/last-applied-configuration": SECRET,
        "vault.example.com/token": SECRET,
        "karpenter.sh/do-not-disrupt": "true",
    }
    document["metadata"]["managedFields"] = [managed("kubectl", {"f:spec": {f'k:{{"x":"{SECRET}"}}': {}}})]
    document["status"]["containerStatuses"] = [{"lastState": {"terminated": {"message": SECRET}}}]
    return document


def telling_deployment() -> Document:
    document = deployment(
        managed_fields=[managed("hpa", {"f:spec": {"f:replicas": {}, f'v:"{SECRET}"': {}}}, subresource="scale")]
    )
    template = document["spec"]["template"]
    template["spec"]["containers"][0]["env"] = [{"name": "PASSWORD", "value": SECRET}]
    template["metadata"]["annotations"] = {"vault.example.com/token": SECRET}
    return document


def telling_template() -> Document:
    template = {"spec": {"initContainers": [{"name": "a", "args": [SECRET], "restartPolicy": "Always"}]}}
    return {"metadata": {"name": "t", "namespace": "shop", "annotations": {"note": SECRET}}, "template": template}


CLUSTER: Mapping[Resource, list[Document]] = {
    NODES: [node("node-2"), node()],
    PODS: [telling_pod("web-2"), telling_pod()],
    DEPLOYMENTS: [telling_deployment()],
    POD_TEMPLATES: [telling_template()],
    CAPACITY_BUFFERS: [buffer(managedFields=[managed("karpenter", {"f:status": {"f:replicas": {}}})])],
}


def read(resource: Resource) -> Iterable[Document]:
    return CLUSTER.get(resource, [])


def text_of(path: Path) -> str:
    return "".join(file.read_text() for file in sorted(path.iterdir()))


def packed(folder: Path) -> Path:
    """An archive that somebody made by hand, with a folder in it."""
    path = folder.with_name("by-hand.tgz")
    with tarfile.open(path, "w:gz") as archive:
        archive.add(folder, arcname="some/folder")
    return path


def test_nothing_secret_gets_in(tmp_path: Path) -> None:
    capture(read, tmp_path / "shot")
    text = text_of(tmp_path / "shot")
    assert SECRET not in text
    assert "Always" in text, "what scheduling looks at stays"


@pytest.mark.parametrize("name", ["shot", "shot.tar.gz"])
def test_a_snapshot_reads_as_the_cluster_did(tmp_path: Path, name: str) -> None:
    catalog = (builders.instance_type(),)
    counts = capture(read, tmp_path / name, catalog)
    store = ViewStore(catalog=catalog)
    for resource, items in CLUSTER.items():
        store.replace(resource, items)
    live, captured = store.view(), snapshot_at(str(tmp_path / name)).view()
    assert counts["pods"] == 2
    assert captured.pods == live.pods
    assert captured.nodes == live.nodes
    assert captured.workloads == live.workloads
    assert captured.workloads[0].replicas_manager == "hpa"
    assert {ref: item.managers for ref, item in captured.objects.items()} == {
        ref: item.managers for ref, item in live.objects.items()
    }
    assert captured.catalog == catalog
    assert captured.complete


@pytest.mark.parametrize("name", ["shot", "shot.tar.gz"])
def test_the_same_cluster_in_another_order_gives_the_same_bytes(tmp_path: Path, name: str) -> None:
    def backwards(resource: Resource) -> Iterable[Document]:
        return reversed(CLUSTER.get(resource, []))

    capture(read, tmp_path / "one" / name)
    capture(backwards, tmp_path / "two" / name)
    one, two = tmp_path / "one" / name, tmp_path / "two" / name
    assert text_of(one) == text_of(two) if one.is_dir() else one.read_bytes() == two.read_bytes()


def test_the_node_chosen_for_a_waiting_pod_is_captured_and_read(tmp_path: Path) -> None:
    """Of a pod that is on a node it says nothing any more."""
    documents = [
        pod("waiting", node=None, phase="Pending", nominatedNodeName="node-7"),
        pod("bound", node="node-8", nominatedNodeName="node-7"),
    ]
    capture(lambda resource: documents if resource is PODS else [], tmp_path)

    chosen = {item.name: item.nominated_node for item in snapshot_at(str(tmp_path)).view().pods}

    assert chosen == {"waiting": "node-7", "bound": ""}


def test_files_are_named_by_plural_and_hold_lists_as_kubectl_prints_them(tmp_path: Path) -> None:
    capture(read, tmp_path)
    assert sorted(file.name for file in tmp_path.iterdir()) == [
        "capacitybuffers.json",
        "nodes.json",
        "pods.json",
        "podtemplates.json",
        "workloads.json",
    ]
    workloads = json.loads((tmp_path / "workloads.json").read_text())
    assert workloads["kind"] == "List"
    assert [item["kind"] for item in workloads["items"]] == ["Deployment"]


def test_an_archive_may_have_a_folder_in_it_and_other_files(tmp_path: Path) -> None:
    capture(read, tmp_path / "shot")
    (tmp_path / "shot" / "notes.txt").write_text("mine")
    assert len(snapshot_at(str(packed(tmp_path / "shot"))).view().pods) == 2


@pytest.mark.parametrize("archived", [False, True])
def test_a_list_under_another_name_is_not_passed_over_in_silence(tmp_path: Path, archived: bool) -> None:  # noqa: FBT001 - a plain choice
    folder = tmp_path / "shot"
    capture(read, folder)
    for name in ("objects.json", "deployments.yaml", ".pods.json", "notes.txt"):
        (folder / name).write_text("{}")
    path = packed(folder) if archived else folder
    (finding,) = snapshot_at(str(path)).view().findings
    assert (finding.code, finding.severity) == ("unread-file", Severity.WARNING)
    assert finding.message == f"{path}: deployments.yaml, objects.json are not read: no file of a snapshot is called so"
    assert "instance_types.json" in finding.hint
    assert "workloads.json is for Deployment" in finding.hint


def test_files_that_an_older_headroom_captured_are_passed_over(tmp_path: Path) -> None:
    capture(read, tmp_path)
    for name in ("csinodes", "resourceslices", "deviceclasses", "resourceclaims", "resourceclaimtemplates"):
        (tmp_path / f"{name}.json").write_text(kubectl_list({"apiVersion": "resource.k8s.io/v1", "kind": "Any"}))
    view = snapshot_at(str(tmp_path)).view()
    assert (len(view.pods), view.findings, view.complete) == (2, (), True)


CLONE_SETS = scaled_kind("apps.kruise.io", "CloneSet", "clonesets", ("v1alpha1", "v1beta1"))


def clone_set(name: str = "web", *, version: str = "v1alpha1") -> Document:
    """As kubectl prints one, with everything that is none of headroom's business."""
    document = deployment(name)
    document["status"] |= {"labelSelector": f"app={name}", "expectedUpdatedReplicas": 3}
    return document | {"apiVersion": f"apps.kruise.io/{version}", "kind": "CloneSet"}


def kubectl_list(*items: Document) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": ""}, "items": list(items)})


@pytest.mark.parametrize("archived", [False, True])
def test_any_kind_with_a_scale_is_read(tmp_path: Path, archived: bool) -> None:  # noqa: FBT001 - a plain choice
    folder = tmp_path / "shot"
    folder.mkdir()
    (folder / "workloads.json").write_text(kubectl_list(clone_set(), clone_set("api", version="v1beta1")))
    view = snapshot_at(str(packed(folder) if archived else folder)).view()
    assert view.findings == ()
    assert [str(item.ref) for item in view.workloads] == ["CloneSet/shop/api", "CloneSet/shop/web"]
    web = view.workloads[1]
    assert (web.replicas, web.observed_replicas, web.shape) == (3, 2, None)
    assert web.selector is not None
    assert web.selector.matches({"app": "web"})


def test_kubernetes_own_workloads_may_have_a_file_each(tmp_path: Path) -> None:
    (tmp_path / "deployments.json").write_text(
        kubectl_list(deployment() | {"apiVersion": "apps/v1", "kind": "Deployment"})
    )
    capture(read, tmp_path)  # which has the same Deployment in workloads.json
    view = snapshot_at(str(tmp_path)).view()
    assert view.findings == ()
    assert [str(item.ref) for item in view.workloads] == ["Deployment/shop/web"]


@pytest.mark.parametrize(
    ("name", "items"),
    [
        ("certificates.json", [{"apiVersion": "cert-manager.io/v1", "kind": "Certificate", "metadata": {"name": "x"}}]),
        ("services.json", [{"apiVersion": "v1", "kind": "Service", "spec": {"replicas": 1}}]),
        ("clonesets.json", [clone_set()]),
    ],
)
def test_a_file_of_other_things_is_not_read_and_that_is_said(tmp_path: Path, name: str, items: list[Document]) -> None:
    (tmp_path / name).write_text(kubectl_list(*items))
    view = snapshot_at(str(tmp_path)).view()
    assert [finding.code for finding in view.findings] == ["unread-file"]
    assert view.workloads == ()


def test_objects_of_kinds_with_a_scale_are_captured_among_the_workloads(tmp_path: Path) -> None:
    scaled = [
        (CLONE_SETS, scale_document(CLONE_SETS, ObjectRef(*CLONE_SETS.key, "shop", name), 5, 4, f"app={name}"))
        for name in ("web", "api")
    ]
    for order, name in ((scaled, "one"), (scaled[::-1], "two")):
        assert capture(read, tmp_path / name, scaled=order)["clonesets"] == 2
    assert text_of(tmp_path / "one") == text_of(tmp_path / "two")
    store = ViewStore()
    for resource, document in scaled:
        store.put(resource, document)
    captured = snapshot_at(str(tmp_path / "one")).view().workloads
    assert tuple(item for item in captured if item.ref.kind == "CloneSet") == store.view().workloads


def test_how_far_a_job_has_come_is_captured(tmp_path: Path) -> None:
    spec = {"parallelism": 5, "completions": 8, "template": deployment()["spec"]["template"]}
    ended = {"type": "Complete", "status": "True", "message": SECRET}
    states: dict[str, Document] = {"half": {"succeeded": 6, "active": 2}, "over": {"conditions": [ended]}}
    jobs = [named(name, spec=spec, status={**status, "startTime": "x"}) for name, status in states.items()]
    capture(lambda resource: jobs if resource is JOBS else [], tmp_path)
    assert SECRET not in text_of(tmp_path)
    assert [item.replicas for item in snapshot_at(str(tmp_path)).view().workloads] == [2, 0]


def test_the_commands_page_lists_every_file_that_is_read() -> None:
    page = Path(__file__).parents[4] / "docs" / "commands" / "snapshot.md"
    listed = re.findall(r"`(\w+\.json)`", page.read_text(encoding="utf-8"))
    assert sorted(listed) == sorted({CATALOG_FILE, *(file_of(resource) for resource in (*RESOURCES, CONFIG_MAPS))})


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("pods.json", "{", "pods.json is not a Kubernetes List: input data was truncated"),
        ("pods.json", '{"kind": "Pod"}', "pods.json is not a Kubernetes List but Pod"),
        (
            "workloads.json",
            '{"kind": "List", "items": [{"kind": "Secret"}]}',
            "workloads.json has an item of another kind",
        ),
        ("instance_types.json", "[", "instance_types.json is not JSON"),
    ],
)
def test_a_broken_file_is_named(tmp_path: Path, name: str, text: str, message: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(Invalid) as refused:
        snapshot_at(str(tmp_path)).view()
    assert message in refused.value.message


def test_a_snapshot_over_an_earlier_one_has_nothing_of_that(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("the user's own")
    capture(read, tmp_path, (builders.instance_type(),))
    capture(lambda _resource: (), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["README.md"]


def test_a_path_without_a_snapshot_says_how_to_make_one(tmp_path: Path) -> None:
    (tmp_path / "above" / "snapshot").mkdir(parents=True)
    said = {"nowhere": "there is no such snapshot", "above": "no file of a snapshot is in this folder"}
    for name, words in said.items():
        with pytest.raises(Invalid, match=words) as refused:
            snapshot_at(str(tmp_path / name)).view()
        assert "headroom snapshot -o" in refused.value.hint


def test_a_file_that_is_no_archive(tmp_path: Path) -> None:
    (tmp_path / "shot.tar.gz").write_text("text")
    with pytest.raises(Invalid, match=r"is no \.tar\.gz archive"):
        snapshot_at(str(tmp_path / "shot.tar.gz")).view()


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress, bz2.compress])
def test_an_archive_with_a_damaged_part(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    capture(read, tmp_path / "shot.tar.gz")
    packed = pack(gzip.decompress((tmp_path / "shot.tar.gz").read_bytes()))
    refused = 0
    for at in range(40, len(packed) - 1, 11):
        damaged = bytearray(packed)
        damaged[at : at + 2] = bytes(255 - each for each in packed[at : at + 2])
        (tmp_path / "shot.tar.gz").write_bytes(damaged)
        try:
            snapshot_at(str(tmp_path / "shot.tar.gz")).view()
        except Invalid:
            refused += 1
    assert refused, "no other failure; a few damages go unnoticed, such as one of the padding"


def test_every_write_is_refused(tmp_path: Path) -> None:
    result = snapshot_at(str(tmp_path)).write(Delete(ObjectRef("", "Node", "", "node-1")))
    assert result.outcome is Outcome.REFUSED
    assert str(tmp_path) in result.message


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(Invalid, match="cannot be written"):
        capture(read, tmp_path / "file" / "shot")

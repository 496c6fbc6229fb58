"""What the files of a tree declare, and that only changed files are read again."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler.manifests.documents.document import Document
from reconciler.manifests.repository import declared
from reconciler.manifests.repository.declared import KnownFiles, live_declared, read, read_live, with_last_good
from reconciler.manifests.repository.in_force import InForce, in_force, served_form
from reconciler.manifests.repository.reading import ReadDocument, read_document
from reconciler.model.declared import Declared
from reconciler.model.findings import Severity
from reconciler.model.refs import ObjectRef
from reconciler.model.view import ClusterView, LiveObject, Manifest
from reconciler.source.selection import TreeLimits
from tests import manifests
from tests.manifests import node_pool, pod_template, request


def buffer(name: str, replicas: object = 1, version: str = "v1beta1") -> str:
    return manifests.buffer(name, f"replicas: {replicas}").replace("v1beta1", version)


def pool(name: str, weight: object = 1) -> str:
    return node_pool(name, f"weight: {weight}")


def repository(**files: str) -> Declared:
    return read({f"{name}.yaml": text.encode() for name, text in files.items()})


def names(declared: Declared) -> list[str]:
    return [item.ref.name for item in declared.buffers]


def test_kinds_are_sorted_whatever_the_files_are_called() -> None:
    declared = repository(z=buffer("a"), a=buffer("c") + buffer("b"))
    assert names(declared) == ["a", "b", "c"]
    assert [manifest.ref.name for manifest in declared.manifests] == ["a", "b", "c"]


def test_the_same_object_twice_is_applied_in_neither_form() -> None:
    declared = repository(a=buffer("x"), b=buffer("xx") + buffer("x", 2, "v1alpha1"))
    (finding,) = [finding for finding in declared.findings if finding.code == "duplicate-object"]
    assert str(finding.position) == "b.yaml:9:12"
    assert "a.yaml:2:1" in finding.message
    assert names(declared) == ["xx"]
    assert {ref.name for ref in declared.broken} == {"x"}


def test_two_clusters_in_one_repository_may_use_the_same_names() -> None:
    files = {"clusters/a/pool.yaml": pool("p").encode(), "clusters/b/pool.yaml": pool("p").encode()}
    assert read(files).broken
    assert not read(files, one_cluster=False).findings


def test_references_out_of_the_repository_are_notes() -> None:
    declared = repository(a=buffer("x"))
    (finding,) = declared.findings
    assert (finding.code, finding.severity, finding.path) == ("not-in-repository", "info", "spec.podTemplateRef.name")
    assert repository(a=buffer("x"), b=pod_template()).findings == ()


@pytest.mark.parametrize(
    ("where", "hint"), [("shop", 'did you mean "trainer"? If not, ignore this if'), ("elsewhere", "ignore this if")]
)
def test_a_reference_to_a_name_that_is_nearly_there_asks_whether_that_one_is_meant(where: str, hint: str) -> None:
    asking = manifests.buffer(size="replicas: 1", of="podTemplateRef: {name: trainr}")
    (finding,) = repository(a=asking, b=pod_template("trainer", namespace=where)).findings
    assert finding.hint == f"{hint} something else deploys it"


def test_an_invalid_document_keeps_its_last_good_version_in_force() -> None:
    before = repository(a=buffer("x", 1) + buffer("xx", 1), p=pool("p", 1))
    after = repository(a=buffer("x", "many") + buffer("xx", 2), p=pool("p", 1000))
    kept = with_last_good(after, before)
    assert [(item.ref.name, item.replicas) for item in kept.buffers] == [("x", 1), ("xx", 2)]
    assert [item.weight for item in kept.node_pools] == [1]
    assert [manifest.manifest["spec"].get("replicas") for manifest in kept.manifests] == [1, 2, None]
    assert kept.findings == after.findings
    assert kept.broken == after.broken


def test_documents_that_a_broken_file_hides_stay_in_force() -> None:
    before = repository(a=buffer("x", 1) + buffer("xx", 1), b=buffer("z", 1))
    after = repository(a=buffer("x", 2) + "---\nkind: [\n", b="")
    kept = with_last_good(after, before)
    assert [(item.ref.name, item.replicas) for item in kept.buffers] == [("x", 2), ("xx", 1)]
    assert after.broken_files == {"a.yaml"}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("name: x,", "name: X,"),
        ("name: x,", ""),
        ("namespace: shop", "namespace: S"),
        ("CapacityBuffer", "CapacityBuffr"),
    ],
)
def test_a_mistake_in_the_identity_takes_nothing_out_of_force(old: str, new: str) -> None:
    before = repository(a=buffer("x", 1))
    after = with_last_good(repository(a=buffer("x", 1).replace(old, new)), before)
    assert names(after) == ["x"]
    assert after.broken_files == {"a.yaml"}


@pytest.mark.parametrize("broken", [buffer("x", "many"), buffer("x").replace("Buffer", "Bufer"), "kind: [\nname: 'x'"])
def test_what_moves_to_a_file_with_an_error_stays_in_force(broken: str) -> None:
    before = repository(a=buffer("x", 1) + buffer("xx", 1))
    after = with_last_good(repository(b=broken), before)
    assert names(after) == ["x"]
    assert after.named_in_broken["x"] == "b.yaml"


def test_what_is_gone_from_sound_files_is_gone() -> None:
    before = repository(a=buffer("x"), b=buffer("xx"))
    after = repository(b=buffer("xx"))
    assert with_last_good(after, before) == after
    assert with_last_good(after, None) == after


def test_a_broken_document_that_never_was_good_has_nothing_in_force() -> None:
    after = repository(a=buffer("x", "many"))
    assert with_last_good(after, repository(b=buffer("xx"))).buffers == ()


def test_a_broken_document_stays_in_force_over_many_commits() -> None:
    first = repository(a=buffer("x", 1))
    second = with_last_good(repository(a=buffer("x", "bad")), first)
    third = with_last_good(repository(a="kind: [\n"), second)
    assert names(third) == ["x"]


def live(kind: str, spec: object, *, group: str = "autoscaling.x-k8s.io", **more: object) -> LiveObject:
    ref = ObjectRef(group, kind, "shop", "web")
    metadata = {
        "name": "web",
        "namespace": "shop",
        "generation": 4,
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "uid": "u1",
        "annotations": {"karpenter.sh/nodepool-hash": "1", "karpenter.sh/nodepool-hash-version": "v3"},
    }
    return LiveObject(ref, {"kind": kind, "metadata": metadata, "spec": spec, **more})


@pytest.mark.parametrize("spec", [None, [], {"template": {"spec": {}}}, {"template": 5}])
def test_live_objects_that_cannot_be_read_are_left_out_with_a_finding(spec: object) -> None:
    items = [
        live("NodePool", spec, group="karpenter.sh"),
        live("ProvisioningRequest", spec),
        live("Secret", spec, group=""),
    ]
    found = read_live(items)
    assert replace(found, findings=()) == Declared()
    kinds = [finding.ref.kind for finding in found.findings if finding.ref is not None]
    # A NodePool without a template is a partial one, which is read.
    assert kinds == (["ProvisioningRequest"] if spec is None else ["NodePool", "ProvisioningRequest"])


def test_the_form_that_the_cluster_serves() -> None:
    text = buffer("x", version="v1alpha1").replace(", namespace: shop", "")
    (manifest,) = repository(a=text).manifests
    served = served_form(manifest, ("v1beta1",))
    assert served is not None
    assert (served["apiVersion"], served["metadata"]) == (
        "autoscaling.x-k8s.io/v1beta1",
        {"name": "x", "namespace": "default"},
    )
    assert served["spec"] == manifest.manifest["spec"]
    written = served_form(manifest, ())
    assert written is not None
    assert written["apiVersion"] == "autoscaling.x-k8s.io/v1alpha1"
    assert served_form(manifest, ("v2",)) is None


def test_node_pools_are_applied_as_v1_or_not_at_all() -> None:
    (manifest,) = repository(a=pool("p").replace("/v1", "/v1beta1")).manifests
    served = served_form(manifest, ("v1",))
    assert served is not None
    assert (served["apiVersion"], served["metadata"]) == ("karpenter.sh/v1", {"name": "p"})
    assert served_form(manifest, ("v1beta1",)) is None


def test_a_file_that_the_source_left_out_is_an_error() -> None:
    (finding,) = read({}, skipped=[("big.yaml", "it has 2 MiB")]).findings
    assert (finding.code, finding.severity) == ("left-out", Severity.ERROR)
    assert str(finding.position) == "big.yaml:1:1"
    assert finding.message == "not read: it has 2 MiB"
    assert ".sourceignore" in finding.hint


def test_a_file_is_too_large_wherever_it_comes_from() -> None:
    (finding,) = read({"big.yaml": b"#" * (TreeLimits().file_bytes + 1)}).findings
    assert (finding.code, finding.severity) == ("file-too-large", Severity.ERROR)
    assert read({"big.yaml": b"#" * TreeLimits().file_bytes}).findings == ()


def test_documents_of_other_kinds_are_counted_in_one_note() -> None:
    service, claim = (f"apiVersion: v1\nkind: {kind}\nmetadata: {{name: x}}\n" for kind in ("Service", "Secret"))
    found = repository(a=f"{service}---\n{claim}{buffer('web')}", b=service).findings
    (note,) = [item for item in found if item.code == "other-kinds"]
    assert note.message == "3 documents are of kinds that headroom does not read, and ignored: Secret, Service"
    assert note.severity is Severity.INFO


def files(**names: str) -> dict[str, bytes]:
    return {f"{path}.yaml": pod_template(name).encode() for path, name in names.items()}


def test_only_what_changed_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    def counted(document: Document) -> ReadDocument:
        seen.append(document.file)
        return read_document(document)

    monkeypatch.setattr(declared, "read_document", counted)
    known = KnownFiles()
    read(files(a="one", b="two"), known=known)
    seen.clear()
    after = read(files(a="one", b="three", c="four"), known=known)
    assert seen == ["b.yaml", "c.yaml"]
    assert after == read(files(a="one", b="three", c="four"))


def test_findings_between_files_are_found_anew() -> None:
    known = KnownFiles()
    assert not read(files(a="one"), known=known).findings
    assert [item.code for item in read(files(a="one", b="one"), known=known).findings]
    assert not read(files(a="one"), known=known).findings


# What a pass works with, of what is declared and what the cluster has.


def forms(text: str, *live: tuple[ObjectRef, Manifest], **served: tuple[str, ...]) -> InForce:
    objects = {ref: LiveObject(ref, body) for ref, body in live}
    groups = {"NodePool": "karpenter.sh"}
    apis = {(groups.get(kind, "autoscaling.x-k8s.io"), kind): versions for kind, versions in served.items()}
    return in_force(repository(a=text), live_declared(ClusterView(objects=objects)), objects, apis)


def test_a_version_that_the_cluster_does_not_serve_is_converted() -> None:
    found = forms(buffer("web", version="v1alpha1"), CapacityBuffer=("v1beta1",))
    assert [item.manifest["apiVersion"] for item in found.repository.manifests] == ["autoscaling.x-k8s.io/v1beta1"]
    assert found.findings == ()


def test_a_kind_that_the_cluster_does_not_serve_still_counts_but_is_not_applied() -> None:
    found = forms(buffer("web"), NodePool=("v1",))
    assert found.repository.manifests == ()
    assert [buffer.ref.name for buffer in found.effective.buffers] == ["web"]
    (finding,) = found.findings
    assert finding.code == "not-served"
    assert finding.message.startswith("the cluster does not serve CapacityBuffer of autoscaling.x-k8s.io, so")
    assert "it comes with the autoscaler" in finding.hint


def test_an_edited_request_is_a_finding_and_stays_as_it_is() -> None:
    ref = ObjectRef("autoscaling.x-k8s.io", "ProvisioningRequest", "shop", "train")
    found = forms(request(count=2), (ref, manifests.document(request(count=1))))
    (finding,) = found.findings
    assert (finding.code, finding.path) == ("immutable-field", "spec.podSets[0].count")
    assert "new name" in finding.hint
    assert found.repository.manifests == ()
    assert ref in found.repository.broken

"""What headroom fails on in one object of the cluster, when it is decoded or written, concerns that object alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from reconciler.cluster.apply import carry_out
from reconciler.cluster.decoding import decode
from reconciler.cluster.resources import BY_KIND, NODES, RESOURCES
from reconciler.cluster.view import ViewStore
from reconciler.manifests.repository.declared import read
from reconciler.model.changes import Apply, Outcome, Write, WriteResult
from reconciler.model.refs import ObjectRef
from reconciler.model.view import ClusterView
from tests.fakes.cluster import PARENT, FakeCluster


def template(name: str) -> Apply:
    ref = ObjectRef("", "PodTemplate", "shop", name)
    return Apply(ref, {"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": name, "namespace": "shop"}})


@dataclass
class FaultyCluster(FakeCluster):
    """Headroom fails to write the object `bad`: in the dry run, or only for real."""

    in_dry_run: bool = True

    def write(self, write: Write, *, dry_run: bool = False) -> WriteResult:
        if write.ref.name == "bad" and dry_run is self.in_dry_run:
            raise TypeError("a planted fault")
        return super().write(write, dry_run=dry_run)


@pytest.mark.parametrize("in_dry_run", [True, False], ids=["in the dry run", "for real"])
def test_a_write_that_headroom_fails_on_stops_no_other(in_dry_run: bool) -> None:  # noqa: FBT001 - a case
    cluster = FaultyCluster(in_dry_run=in_dry_run)
    writes = [template(name) for name in ("a", "bad", "c")]

    done = carry_out(cluster, writes, parent=PARENT, view=ClusterView(), memory={})

    outcomes = {result.write.ref.name: result for result in done.results if isinstance(result.write, Apply)}
    assert (outcomes["a"].outcome, outcomes["c"].outcome) == (Outcome.APPLIED, Outcome.APPLIED)
    assert outcomes["bad"].outcome is Outcome.REFUSED
    assert "a planted fault" in outcomes["bad"].message


@pytest.mark.parametrize("kind", sorted({resource.key for resource in RESOURCES}))
def test_an_object_that_headroom_fails_to_decode_is_a_gap(
    kind: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    resource = BY_KIND[kind]
    store = ViewStore(PARENT)
    store.put(NODES, {"metadata": {"name": "healthy"}})

    def broken(*_arguments: Any) -> Any:
        raise ValueError("a planted fault")

    known = decode._READERS.get(kind, decode._OTHERS[resource.declared, resource.builtin])
    readers = {**decode._READERS, kind: (known[0], broken)}
    monkeypatch.setattr("reconciler.cluster.decoding.decode._READERS", readers)

    assert store.put(resource, {"metadata": {"name": "bad", "namespace": "shop"}, "spec": {}})

    view = store.view()
    assert not view.complete
    assert any("bad cannot be read: headroom failed on it (ValueError: a planted fault)" in gap for gap in view.gaps)
    assert [node.name for node in view.nodes] == ["healthy"]


def test_a_reference_that_headroom_fails_on_concerns_its_document(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_document: Any, buffer: Any, _known: Any) -> Any:
        if buffer.ref.name == "bad":
            raise ValueError("a planted fault")
        return []

    monkeypatch.setattr("reconciler.manifests.repository.validate._of_buffer", broken)
    text = "apiVersion: autoscaling.x-k8s.io/v1beta1\nkind: CapacityBuffer\nmetadata: {name: NAME}\nspec: {podTemplateRef: {name: x}, replicas: 1}\n"
    found = read({f"{name}.yaml": text.replace("NAME", name).encode() for name in ("bad", "good")})

    assert [(str(item.position), item.code) for item in found.findings] == [("bad.yaml:1:1", "not-read")]
    assert [item.ref.name for item in found.buffers] == ["bad", "good"]

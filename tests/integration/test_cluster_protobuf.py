"""Pods and nodes of a real API server are the same whether they are read as JSON or as protobuf.

The objects have every field that headroom reads, since they are drawn from the wire structs. They are written to etcd, so that
nothing is refused.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from datetime import datetime
from itertools import count
from random import Random
from types import UnionType
from typing import Annotated, Any, get_args, get_origin

import msgspec
import pytest
import urllib3

from reconciler.cluster import watch
from reconciler.cluster.access import kubeconfig_access
from reconciler.cluster.connection import JSON, Connection
from reconciler.cluster.decoding.decode import decode
from reconciler.cluster.decoding.pods import ShapePool
from reconciler.cluster.decoding.protobuf import PROTOBUF, object_of, page_of
from reconciler.cluster.decoding.wire import NodeWire, PodWire, Texts
from reconciler.cluster.resources import NODES, PODS, Resource
from reconciler.manifests.pods.pod_spec_wire import Quantities, Wire
from tests.controlplane import ControlPlane, eventually

pytestmark = pytest.mark.e2e

OBJECTS = 60
KINDS: dict[tuple[str, str], type[Wire]] = {PODS.key: PodWire, NODES.key: NodeWire}
CHOICES = {
    "operator": ("In", "NotIn", "Exists", "DoesNotExist"),
    "phase": ("Pending", "Running", "Succeeded", "Failed"),
    "restartPolicy": ("Always", "Never"),
    "protocol": ("TCP", "UDP"),
    "effect": ("NoSchedule", "NoExecute"),
}


class Drawing:
    """Documents of a wire struct. share: of the fields that may be absent, which are there."""

    def __init__(self, seed: int, share: float) -> None:
        self._random = Random(seed)
        self._share = share
        self._numbers = count(1)

    def document(self, kind: type[msgspec.Struct]) -> dict[str, Any]:
        return {
            field.encode_name: self._value(field.type, field.encode_name)
            for field in msgspec.structs.fields(kind)
            if field.required or self._random.random() < self._share
        }

    def _value(self, kind: Any, name: str) -> Any:  # noqa: PLR0911 - one for each type
        while get_origin(kind) is Annotated or isinstance(kind, UnionType):
            kind = get_args(kind)[0]
        number = next(self._numbers)
        if kind == Quantities:
            return {each: f"{self._random.randint(1, 9)}{unit}" for each, unit in (("cpu", ""), ("memory", "Gi"))}
        if kind == Texts:
            return {f"example.com/{each}": f"text-{number}" for each in ("b", "a")}
        if get_origin(kind) is tuple:
            return [self._value(get_args(kind)[0], name) for _ in range(self._random.randint(1, 2))]
        if kind is str:
            return self._random.choice(CHOICES.get(name, (f"{name.lower()}-{number}",)))
        if kind is datetime:
            return f"2026-03-01T12:{number % 60:02}:00Z"
        if kind in {int, bool}:
            return kind(1 + number % 90)
        return self.document(kind)


def drawn(resource: Resource) -> Iterator[tuple[str, dict[str, Any]]]:
    """Objects by their key in etcd; the first has every field. From the third on, two and two are replicas on nodes."""
    for number in range(OBJECTS):
        seed = number // 2
        document = Drawing(seed, Random(seed).random() if number else 1.0).document(KINDS[resource.key])
        name, namespace = f"drawn-{number:03}", "default" if resource.namespaced else ""
        own: dict[str, Any] = {"name": name, "namespace": namespace}
        if number > 1:
            document["metadata"].pop("deletionTimestamp", None)
            own |= {"uid": f"uid-{number}", "creationTimestamp": f"2026-03-02T12:00:{number:02}Z"}
            if number % 8 < 4:
                own["annotations"] = {"example.com/address": f"10.0.0.{number}"}
            if resource == PODS:
                volumes = [{"name": f"token-{number}", "projected": {}}]
                document["spec"] = document.get("spec", {}) | {"nodeName": f"node-{number}", "volumes": volumes}
        document["metadata"] |= own
        folder = {"pods": f"pods/{namespace}", "nodes": "minions"}[resource.plural]
        yield f"/registry/{folder}/{name}", {"apiVersion": "v1", "kind": resource.kind, **document}


def absent(found: msgspec.Struct) -> Iterator[str]:
    """Fields without a value, at any depth."""
    for field in msgspec.structs.fields(found):
        value = getattr(found, field.name)
        if not value and get_origin(field.type) is Annotated:
            yield f"{type(found).__name__}.{field.name}"
        for inner in value if isinstance(value, tuple) else [value]:
            if isinstance(inner, Wire):
                yield from absent(inner)


@pytest.mark.parametrize("resource", [PODS, NODES], ids=str)
def test_an_object_is_the_same_in_both_encodings(
    plane: ControlPlane, resource: Resource, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "PAGE", 25)
    pool = urllib3.PoolManager()
    for key, document in drawn(resource):
        texts = (base64.b64encode(text.encode()).decode() for text in (key, json.dumps(document)))
        written = pool.request(
            "POST", f"{plane.etcd_url}/v3/kv/put", json=dict(zip(("key", "value"), texts, strict=True))
        )
        assert written.status == 200, written.data
    connection = Connection(lambda: kubeconfig_access(path=str(plane.kubeconfig())))
    path = f"/api/v1/{resource.plural}"

    def listed(accept: str) -> list[Any]:
        return [item for page in watch.pages_of(connection, path, resource, accept=accept) for item in page.items or ()]

    eventually(lambda: len(listed(JSON)) == OBJECTS, within=20, what="the API server knows what was written to etcd")
    ours, theirs = listed(f"{PROTOBUF}, {JSON}"), listed(JSON)
    answer = connection.request("GET", path, headers={"Accept": PROTOBUF})
    structs = [object_of(resource, item) for item in page_of(resource, answer.data).items or ()]
    assert structs[0] == msgspec.json.decode(theirs[0], type=KINDS[resource.key])
    assert list(absent(structs[0])) == ([] if resource.namespaced else ["MetadataWire.namespace"])
    of_protobuf, of_json = ShapePool(), ShapePool()
    for item, expected in zip(ours, theirs, strict=True):
        decoded = decode(resource, item, of_protobuf)
        assert decoded == decode(resource, expected, of_json)
        assert decoded.problem == ""
    connection.close()

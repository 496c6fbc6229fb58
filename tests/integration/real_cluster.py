"""Headroom's adapter on a real API server, opened and closed for one test, and its commands over a folder."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from reconciler.cluster.access import kubeconfig_access
from reconciler.cluster.apply import InventoryParent
from reconciler.cluster.kubernetes import KubernetesCluster
from reconciler.model.marks import PART_OF_LABEL
from reconciler.model.refs import ObjectRef
from reconciler.model.view import ClusterView
from tests.builders import manifest
from tests.controlplane import ControlPlane, eventually
from tests.controlplane.rest import ApiError, Document, Rest
from tests.headroom_command import headroom

PARENT = InventoryParent("headroom-system", "headroom")
SECONDS = 20.0
"""How long a test waits for what should take milliseconds."""


@contextmanager
def opened(
    kubeconfig: Path,
    *,
    changed: Callable[[], None] = lambda: None,
    discovery_interval: float = 0.2,
    sync_timeout: float = SECONDS,
) -> Iterator[KubernetesCluster]:
    cluster = KubernetesCluster(
        "kubeconfig:test",
        lambda: kubeconfig_access(path=str(kubeconfig)),
        inventory=PARENT,
        discovery_interval=discovery_interval,
        sync_timeout=sync_timeout,
    )
    try:
        cluster.start(changed)
        yield cluster
    finally:
        cluster.close()


def view_where(cluster: KubernetesCluster, holds: Callable[[ClusterView], bool], *, what: str) -> ClusterView:
    """The first view of which it holds."""

    def look() -> list[ClusterView]:
        view = cluster.view()
        assert holds(view), f"gaps: {view.gaps}"
        return [view]

    return eventually(look, within=SECONDS, what=what)[0]


class Folder:
    """A repository without Git, with one document, and the API server that it is for."""

    def __init__(self, plane: ControlPlane, folder: Path) -> None:
        self.plane, self._folder = plane, folder
        folder.mkdir()

    def declare(self, document: Document) -> None:
        (self._folder / "document.yaml").write_text(json.dumps(document))

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """`headroom COMMAND …` over the folder, with the kubeconfig of the API server."""
        environment = os.environ | {"KUBECONFIG": str(self.plane.kubeconfig()), "NO_COLOR": "1"}
        words = (*arguments, "--repo", str(self._folder), "--cluster", "kubeconfig")
        return headroom(*words, folder=self._folder, environment=environment)


def refusal(api: Rest, document: Mapping[str, Any]) -> str:
    """What the API server says against creating it, or "" when it admits it."""
    path = api.path(document["apiVersion"], document["kind"], document["metadata"].get("namespace"))
    return said_against(api, "POST", path, document)


def said_against(api: Rest, method: str, path: str, document: Mapping[str, Any]) -> str:
    """As `refusal`, of any write."""
    try:
        api.document(method, path, body=dict(document), query={"dryRun": "All"})
    except ApiError as error:
        if error.code in {400, 422}:
            return str(error)
        raise
    return ""


def definition(group: str, kind: str, version: str, **subresources: Any) -> Document:
    """A CustomResourceDefinition whose objects may have any fields."""
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    singular = kind.lower()
    served = {"name": version, "served": True, "storage": True, "schema": schema, "subresources": subresources}
    return manifest(
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        f"{singular}s.{group}",
        spec={
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": f"{singular}s", "singular": singular, "listKind": f"{kind}List"},
            "versions": [served],
        },
    )


def template_ref(name: str = "web") -> ObjectRef:
    return ObjectRef("", "PodTemplate", "default", name)


def buffer_ref(name: str = "web", namespace: str = "default") -> ObjectRef:
    return ObjectRef("autoscaling.x-k8s.io", "CapacityBuffer", namespace, name)


def pod_template(name: str = "web", *, cpu: str = "1", member: bool = False, **metadata: Any) -> dict[str, Any]:
    container = {"name": "main", "image": "pause", "resources": {"requests": {"cpu": cpu}}}
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container]}}
    own = _metadata(metadata, member=member)
    return manifest("v1", "PodTemplate", name, "default", metadata=own, template=template)


def capacity_buffer(name: str = "web", *, replicas: int = 3, member: bool = False, **metadata: Any) -> dict[str, Any]:
    own, spec = _metadata(metadata, member=member), {"replicas": replicas, "podTemplateRef": {"name": name}}
    return manifest("autoscaling.x-k8s.io/v1beta1", "CapacityBuffer", name, "default", metadata=own, spec=spec)


def _metadata(more: dict[str, Any], *, member: bool) -> dict[str, Any]:
    return {**({"labels": {PART_OF_LABEL: PARENT.id}} if member else {}), **more}

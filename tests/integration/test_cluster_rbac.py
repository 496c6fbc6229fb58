"""The RBAC that ships is enough for everything the adapter does, and for nothing more."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from reconciler.cluster.apply import carry_out
from reconciler.cluster.kubernetes import KubernetesCluster
from reconciler.model.changes import Annotate, Apply, ApplyStatus, Delete, Write
from reconciler.model.refs import ObjectRef
from reconciler.ports import Event
from tests.builders import manifest
from tests.controlplane import ControlPlane, eventually
from tests.controlplane.documents import deployment, node_class, node_pool
from tests.controlplane.rest import ApiError, Rest
from tests.integration.real_cluster import (
    PARENT,
    buffer_ref,
    capacity_buffer,
    opened,
    pod_template,
    template_ref,
    view_where,
)
from tests.integration.test_cluster_events import GROUP, KIND, crd
from tests.kubeconfigs import token_of
from tests.programs import kustomized

pytestmark = pytest.mark.e2e

CONFIG = Path(__file__).resolve().parents[2] / "config"
ACCOUNT = "system:serviceaccount:headroom-system:headroom"
POOL = ObjectRef("karpenter.sh", "NodePool", "", "general")
NODE = ObjectRef("", "Node", "", "node-1")


def shipped(folder: str) -> list[dict[str, Any]]:
    listed = yaml.safe_load((CONFIG / folder / "kustomization.yaml").read_text())["resources"]
    files = [CONFIG / folder / name for name in listed if name.endswith(".yaml")]
    return [document for file in files for document in yaml.safe_load_all(file.read_text())]


@pytest.fixture
def kubeconfig(plane: ControlPlane) -> Iterator[Path]:
    """Headroom's own account with the roles that ship."""
    for document in shipped("rbac"):
        plane.api.apply(document)
    yield plane.service_account_kubeconfig("headroom-system", "headroom")
    for kind, name in (("ClusterRoleBinding", "headroom:headroom-system"), ("ClusterRole", "headroom")):
        plane.api.delete("rbac.authorization.k8s.io/v1", kind, name)


def whole(cluster: KubernetesCluster) -> None:
    """The authorizer learns of new roles through a watch of its own."""
    eventually(lambda: cluster.view().complete, within=60, what="everything may be read")


def test_everything_is_read_written_and_told_with_the_shipped_roles(plane: ControlPlane, kubeconfig: Path) -> None:
    plane.api.create(node_class())
    plane.api.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-1"}})
    plane.api.create(deployment("web", replicas=2, cpu="1"))
    mark = plane.audit_mark()
    with opened(kubeconfig) as cluster:
        whole(cluster)
        writes: list[Write] = [
            Apply(POOL, node_pool("general")),
            Apply(template_ref(), pod_template(member=True)),
            Apply(buffer_ref(), capacity_buffer(member=True)),
            Annotate(NODE, (("karpenter.sh/do-not-disrupt", "true"),)),
        ]
        done = carry_out(cluster, writes, parent=PARENT, view=cluster.view(), records={"seen": 1})
        assert [result.message for result in done.failures] == []
        pool = view_where(cluster, lambda view: POOL in view.objects, what="the pool is seen").objects[POOL]
        later: list[Write] = [
            Apply(*_placeholder(str(pool.body["metadata"]["uid"]))),
            ApplyStatus(buffer_ref(), {"replicas": 3}),
            Delete(buffer_ref(), cluster.view().objects[buffer_ref()].body["metadata"]["uid"]),
        ]
        done = carry_out(cluster, later, parent=PARENT, view=cluster.view(), records={"seen": 2})
        assert [result.message for result in done.failures] == []
        cluster.record(Event(NODE, "Normal", "Held", "it holds chunks"))
        election = cluster.election("replica-1")
        election.step()
        assert election.is_leader()
        election.close()
    assert len(plane.api.list("karpenter.sh/v1", "NodeClaim")) == 1
    # Events outlive what they are about: those of earlier tests on this server are still there.
    events = [
        item
        for item in plane.api.list("v1", "Event", namespace="default")
        if item["involvedObject"]["name"] == "node-1"
    ]
    assert [item["reason"] for item in events] == ["Held"]
    denied = [
        (event.verb, event.resource)
        for event in plane.audit_events(since=mark)
        if event.user == ACCOUNT and event.code == 403
    ]
    assert denied == []


def _placeholder(pool_uid: str) -> tuple[ObjectRef, dict[str, Any]]:
    """As the packaged template renders one: with an owner whose deletion it blocks."""
    owner = {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "name": "general",
        "uid": pool_uid,
        "blockOwnerDeletion": True,
    }
    template = node_pool()["spec"]["template"]["spec"]
    document = manifest(
        "karpenter.sh/v1",
        "NodeClaim",
        "general-headroom-1",
        metadata={"ownerReferences": [owner]},
        spec={"nodeClassRef": template["nodeClassRef"], "requirements": template["requirements"]},
    )
    return ObjectRef("karpenter.sh", "NodeClaim", "", "general-headroom-1"), document


@pytest.mark.parametrize(
    ("verb", "path"),
    [
        ("GET", "/api/v1/secrets"),
        ("GET", "/api/v1/configmaps"),
        ("GET", "/api/v1/namespaces/headroom-system/configmaps/other"),
        ("DELETE", "/api/v1/namespaces/default/pods/web"),
        ("DELETE", "/api/v1/nodes/node-1"),
        ("PATCH", "/apis/apps/v1/namespaces/default/deployments/web"),
        ("PATCH", "/apis/rbac.authorization.k8s.io/v1/clusterroles/headroom"),
    ],
)
def test_the_shipped_roles_allow_nothing_else(plane: ControlPlane, kubeconfig: Path, verb: str, path: str) -> None:
    certificate = plane.folder / "certs" / "apiserver.crt"
    account = Rest(plane.url, token=token_of(kubeconfig), ca_file=certificate)
    eventually(lambda: [account.list("v1", "Node")], within=60, what="the role is in force")
    with pytest.raises(ApiError) as refused:
        account.request(verb, path, body={} if verb == "PATCH" else None)
    assert refused.value.code == 403


def test_a_right_that_is_missing_is_a_gap_in_words_and_closes_when_it_is_granted(
    plane: ControlPlane, kubeconfig: Path
) -> None:
    role = plane.api.get("rbac.authorization.k8s.io/v1", "ClusterRole", "headroom")
    assert role is not None
    rules = [dict(rule, resources=[name for name in rule["resources"] if name != "nodes"]) for rule in role["rules"]]
    plane.api.patch(
        "rbac.authorization.k8s.io/v1",
        "ClusterRole",
        "headroom",
        {"rules": [rule for rule in rules if rule["resources"]]},
    )
    with opened(kubeconfig) as cluster:
        view = view_where(cluster, lambda view: len(view.gaps) == 1, what="all else may be read")
    assert not view.complete
    assert view.gaps[0].startswith(f'nodes cannot be read: User "{ACCOUNT}" may not list them (config/rbac ')


def test_of_kinds_that_may_not_be_listed_a_snapshot_has_what_buffers_point_to(
    plane: ControlPlane, kubeconfig: Path
) -> None:
    plane.api.apply(crd())
    for name in ("web", "api"):
        rollout = {"apiVersion": f"{GROUP}/v1", "kind": KIND, "metadata": {"name": name, "namespace": "default"}}
        eventually(partial(plane.api.apply, rollout | {"spec": {"size": 3}}), within=60, what="the kind is served")
    buffer = capacity_buffer()
    buffer["spec"] = {"percentage": 10, "scalableRef": {"apiGroup": GROUP, "kind": KIND, "name": "web"}}
    plane.api.apply(buffer)
    with opened(kubeconfig) as cluster:
        whole(cluster)
        found = [(resource.plural, document["metadata"]["name"]) for resource, document in cluster.read_scaled()]
    assert found == [("rollouts", "web")]


def test_the_api_server_takes_every_document_of_the_deployment(plane: ControlPlane) -> None:
    """Its namespace enforces the Pod Security Standard `restricted`: what the Deployment's pods are is checked there too."""
    documents = list(yaml.safe_load_all(kustomized(CONFIG / "deploy")))
    try:
        for document in documents:
            plane.api.apply(document)
        (daemon,) = (each for each in documents if each["kind"] == "Deployment")
        template = daemon["spec"]["template"]
        pod = manifest("v1", "Pod", "a", metadata={**template["metadata"]}, spec=template["spec"])
        path = plane.api.path("v1", "Pod", "headroom-system")
        plane.api.document("POST", path, body=pod, query={"dryRun": "All"})
    finally:
        for document in documents:
            if document["kind"] != "Namespace":
                metadata = document["metadata"]
                named = {"namespace": metadata["namespace"]} if "namespace" in metadata else {}
                plane.api.delete(document["apiVersion"], document["kind"], metadata["name"], **named)

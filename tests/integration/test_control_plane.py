"""The control plane that other tests rely on, tried for what they rely on."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import kubernetes
import pytest
import urllib3
import yaml

from tests.controlplane import ControlPlane, KarpenterOptions, eventually
from tests.controlplane.documents import INSTANCE_TYPE, deployment, namespace, node_claim, node_class, node_pool
from tests.controlplane.go_modules import KUBERNETES
from tests.controlplane.programs import find_data
from tests.controlplane.rest import ApiError, ApiUnreachableError, Document, Rest, condition

pytestmark = pytest.mark.e2e

CLAIM = ("karpenter.sh/v1", "NodeClaim")
POOL = ("karpenter.sh/v1", "NodePool")


def test_the_server_reports_the_version_that_was_pinned(api_server: ControlPlane) -> None:
    pinned = re.search(r"k8s\.io/kubernetes (v\S+)", (KUBERNETES.folder / "go.mod").read_text())
    assert pinned is not None
    assert api_server.api.document("GET", "/version")["gitVersion"] == pinned.group(1)


def test_the_kubernetes_client_works_with_the_kubeconfig(api_server: ControlPlane) -> None:
    configuration = kubernetes.client.Configuration()
    kubernetes.config.load_kube_config(  # type: ignore[no-untyped-call]  # its types do not cover it
        str(api_server.kubeconfig()), client_configuration=configuration
    )
    with kubernetes.client.ApiClient(configuration) as client:
        version = kubernetes.client.VersionApi(client).get_code()
    assert version.git_version == api_server.api.document("GET", "/version")["gitVersion"]


@pytest.mark.parametrize("kind", ["NodePool", "NodeClaim"])
def test_karpenters_kinds_are_served(api_server: ControlPlane, kind: str) -> None:
    assert api_server.api.list("karpenter.sh/v1", kind) == []


def test_a_service_account_may_do_what_rbac_says_and_no_more(empty_api_server: ControlPlane) -> None:
    plane = empty_api_server
    account = _as_service_account(plane, "rbac", "reader")
    with pytest.raises(ApiError) as refused:
        account.list("v1", "Node")
    assert refused.value.code == 403
    _grant(plane, "rbac", "reader", [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["list"]}])
    # The authorizer learns of new roles through a watch.
    nodes = eventually(lambda: [account.list("v1", "Node")], within=60, what="the role is in force")
    assert nodes == [[]]
    with pytest.raises(ApiError) as refused:
        account.list("v1", "Secret")
    assert refused.value.code == 403


def test_writes_are_counted_by_user(empty_api_server: ControlPlane) -> None:
    plane = empty_api_server
    account = _as_service_account(plane, "audited", "writer")
    rules = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["*"]}]
    _grant(plane, "audited", "writer", rules)
    eventually(lambda: [account.list("v1", "ConfigMap")], within=60, what="the role is in force")
    mark = plane.audit_mark()
    settings = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings", "namespace": "audited"}}

    account.apply(settings, dry_run=True)
    account.apply(settings)
    account.list("v1", "ConfigMap")
    with pytest.raises(ApiError):
        account.delete("v1", "Namespace", "audited")
    plane.api.patch("v1", "ConfigMap", "settings", {"data": {"a": "b"}}, namespace="audited")

    user = "system:serviceaccount:audited:writer"
    written = [(e.verb, e.resource, e.name, e.code) for e in plane.writes_by(user, since=mark)]
    assert written == [("patch", "configmaps", "settings", 201), ("delete", "namespaces", "audited", 403)]
    assert [e.verb for e in plane.writes_by("admin", since=mark)] == ["patch"]
    dry_runs = [e for e in plane.audit_events(since=mark) if e.dry_run]
    assert [(e.user, e.is_write) for e in dry_runs] == [(user, False)]


def test_a_lost_api_server_comes_back_as_it_was(empty_api_server: ControlPlane) -> None:
    plane = empty_api_server
    plane.api.apply(namespace("before"))
    kubeconfig = plane.kubeconfig().read_text()
    mark = plane.audit_mark()
    plane.stop_api_server()
    try:
        with pytest.raises(ApiUnreachableError):
            plane.api.list("v1", "Namespace")
        assert plane.writes_by("admin", since=mark) == []
    finally:
        plane.start_api_server()
    assert plane.api.get("v1", "Namespace", "before") is not None
    assert plane.kubeconfig().read_text() == kubeconfig


def test_what_was_asked_for_by_name_has_to_be_there(api_server: ControlPlane) -> None:
    with pytest.raises(KeyError, match="no user 'nobody'"):
        api_server.kubeconfig("nobody")
    with pytest.raises(RuntimeError, match="runs without Karpenter"):
        api_server.restart_karpenter()
    with pytest.raises(RuntimeError, match="has not been started"):
        _ = ControlPlane().url


@pytest.mark.usefixtures("control_plane_programs")
def test_nothing_is_left_running_when_the_test_process_is_killed(tmp_path: Path) -> None:
    script = """
import pathlib, sys
from tests.controlplane import ControlPlane
plane = ControlPlane.api_only(state_dir=pathlib.Path(sys.argv[1]))
plane.start()
print(plane.url, flush=True)
sys.stdin.read()
"""
    with subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)],
        cwd=Path(__file__).parents[2],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        process.send_signal(signal.SIGKILL)
    eventually(partial(_refuses, url), within=60, what="the orphaned API server has ended")


def test_a_pending_pod_gets_a_node_and_runs(empty_control_plane: ControlPlane) -> None:
    api = empty_control_plane.api
    _make_pool(api)
    api.apply(namespace("shop"))
    eventually(
        lambda: api.get("v1", "ServiceAccount", "default", namespace="shop"),
        within=60,
        what="pods can be made in the namespace",
    )
    api.apply(deployment("web", replicas=3, cpu="1", namespace="shop"))

    def all_run() -> bool:
        pods = api.list("v1", "Pod", namespace="shop")
        phases = [pod["status"]["phase"] for pod in pods]
        assert phases == ["Running"] * 3
        return True

    eventually(all_run, within=60, what="the deployment's pods run")
    nodes = {node["metadata"]["name"]: node for node in api.list("v1", "Node")}
    used = {pod["spec"]["nodeName"] for pod in api.list("v1", "Pod", namespace="shop")}
    assert used <= nodes.keys()
    assert {condition(nodes[name], "Ready") for name in used} == {"True"}
    # Karpenter may make one node more than it needs, which registers a little later.
    eventually(
        lambda: {claim["status"]["nodeName"] for claim in api.list(*CLAIM)} >= used,
        within=30,
        what="each used node belongs to a claim",
    )


def test_a_node_claim_made_by_hand_is_launched(empty_control_plane: ControlPlane) -> None:
    api = empty_control_plane.api
    pool = _make_pool(api, disruption={"consolidateAfter": "Never"})
    api.create(node_claim("by-hand", pool, "c-2x-amd64-linux", "c-4x-amd64-linux"))

    claim = _initialized(api, "by-hand")
    assert condition(claim, "Ready") == "True"
    node = api.get("v1", "Node", claim["status"]["nodeName"])
    assert node is not None
    # The cheaper of the two.
    assert node["metadata"]["labels"][INSTANCE_TYPE] == "c-2x-amd64-linux"
    assert node["spec"].get("taints", []) == []

    def counted() -> bool:
        counts = (api.get(*POOL, "default") or {})["status"]["resources"]["nodes"]
        assert counts == "1"
        return True

    eventually(counted, within=30, what="the pool counts the node as its own")
    metrics = urllib3.request("GET", empty_control_plane.karpenter_metrics_url).data.decode()
    assert "karpenter_nodepools_usage" in metrics


def test_karpenter_restarts_with_another_catalog(empty_control_plane: ControlPlane, tmp_path: Path) -> None:
    plane = empty_control_plane
    catalog = json.loads(find_data("instance_types.json").read_text())
    only = [{**item, "name": "solo.large"} for item in catalog if item["name"] == "c-2x-amd64-linux"]
    path = tmp_path / "catalog.json"
    path.write_text(json.dumps(only))
    plane.restart_karpenter(KarpenterOptions(instance_types=path))
    try:
        pool = _make_pool(plane.api, disruption={"consolidateAfter": "Never"})
        plane.api.create(node_claim("solo", pool, "solo.large"))
        claim = _initialized(plane.api, "solo")
        assert claim["metadata"]["labels"][INSTANCE_TYPE] == "solo.large"
        plane.sweep()
    finally:
        plane.restart_karpenter()


def _make_pool(api: Rest, **spec: Any) -> Document:
    api.apply(node_class())
    return api.apply(node_pool(**spec))


def _initialized(api: Rest, name: str) -> Document:
    def check() -> Document:
        claim = api.get(*CLAIM, name)
        conditions = (claim or {}).get("status", {}).get("conditions", [])
        assert condition(claim, "Initialized") == "True", conditions
        assert claim is not None
        return claim

    return eventually(check, within=60, what=f"NodeClaim {name} is initialized")


def _as_service_account(plane: ControlPlane, space: str, name: str) -> Rest:
    config = yaml.safe_load(plane.service_account_kubeconfig(space, name).read_text())
    return Rest(plane.url, token=config["users"][0]["user"]["token"], ca_file=plane.folder / "certs" / "apiserver.crt")


def _grant(plane: ControlPlane, space: str, name: str, rules: list[Document]) -> None:
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": f"{space}-{name}"},
        "rules": rules,
    }
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": f"{space}-{name}"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": f"{space}-{name}"},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": space}],
    }
    plane.api.apply(role)
    plane.api.apply(binding)


def _refuses(url: str) -> bool:
    parts = urlsplit(url)
    try:
        with socket.create_connection((parts.hostname, parts.port or 0), timeout=1):
            return False
    except ConnectionRefusedError:
        return True

"""The control plane that other tests rely on, tried for what they rely on."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml

from tests.builders import manifest
from tests.controlplane import ControlPlane, eventually
from tests.controlplane.rest import ApiError, Document, Rest

pytestmark = pytest.mark.e2e


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


def _as_service_account(plane: ControlPlane, space: str, name: str) -> Rest:
    config = yaml.safe_load(plane.service_account_kubeconfig(space, name).read_text())
    return Rest(plane.url, token=config["users"][0]["user"]["token"], ca_file=plane.folder / "certs" / "apiserver.crt")


def _grant(plane: ControlPlane, space: str, name: str, rules: list[Document]) -> None:
    role = manifest("rbac.authorization.k8s.io/v1", "ClusterRole", f"{space}-{name}", rules=rules)
    binding = manifest(
        "rbac.authorization.k8s.io/v1",
        "ClusterRoleBinding",
        f"{space}-{name}",
        roleRef={"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": f"{space}-{name}"},
        subjects=[{"kind": "ServiceAccount", "name": name, "namespace": space}],
    )
    plane.api.apply(role)
    plane.api.apply(binding)


def _refuses(url: str) -> bool:
    parts = urlsplit(url)
    try:
        with socket.create_connection((parts.hostname, parts.port or 0), timeout=1):
            return False
    except ConnectionRefusedError:
        return True

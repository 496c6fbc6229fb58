"""What is taken from the `kubernetes` package: ways to log in, without its models (docs/adr/0021)."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

SCRIPT = """
import json, sys
from reconciler.cluster.access import current_context, kubeconfig_access
access = kubeconfig_access(path=sys.argv[1])
print(json.dumps({
    "context": current_context(sys.argv[1]),
    "host": access.host,
    "headers": dict(access.authorization()),
    "models": [name for name in sys.modules if name.startswith(("kubernetes.client.models", "kubernetes.client.api"))],
}))
"""


def told(folder: Path, user: dict[str, Any]) -> dict[str, Any]:
    """By a process of its own: in this one a test may have imported the whole package."""
    file = folder / "kubeconfig"
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "here", "user": "me"}}],
        "clusters": [{"name": "here", "cluster": {"server": "http://127.0.0.1:6443"}}],
        "users": [{"name": "me", "user": user}],
    }
    file.write_text(json.dumps(config))
    command = [sys.executable, "-c", SCRIPT, str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    assert isinstance(found, dict)
    return found


def test_a_kubeconfig_is_read_without_the_models(tmp_path: Path) -> None:
    assert told(tmp_path, {"token": "of-mine"}) == {
        "context": "here",
        "host": "http://127.0.0.1:6443",
        "headers": {"authorization": "Bearer of-mine"},
        "models": [],
    }


def test_an_exec_plugin_is_asked_for_the_token(tmp_path: Path) -> None:
    credential = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "kind": "ExecCredential",
        "status": {"token": "of-the-plugin"},
    }
    plugin = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": "echo",
        "args": [json.dumps(credential)],
        "interactiveMode": "Never",
    }
    assert told(tmp_path, {"exec": plugin})["headers"] == {"authorization": "Bearer of-the-plugin"}


class Issuer(BaseHTTPRequestHandler):
    """Of OpenID Connect: where tokens are, and a new one."""

    def do_GET(self) -> None:
        self._answer({"token_endpoint": f"http://{self.headers['Host']}/token"})

    def do_POST(self) -> None:
        self._answer({"id_token": "a-new-one", "refresh_token": "b", "access_token": "c", "token_type": "bearer"})

    def _answer(self, document: dict[str, str]) -> None:
        body = json.dumps(document).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def issuer() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Issuer)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_a_token_of_openid_connect_that_has_expired_is_renewed(
    tmp_path: Path, issuer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OAUTHLIB_INSECURE_TRANSPORT", "1")  # an issuer on loopback, without TLS

    def part(document: dict[str, Any]) -> str:
        return base64.urlsafe_b64encode(json.dumps(document).encode()).decode().rstrip("=")

    expired = f"{part({'alg': 'none'})}.{part({'exp': 1})}.{part({})}"
    provider = {
        "name": "oidc",
        "config": {
            "client-id": "headroom",
            "client-secret": "of-headroom",
            "id-token": expired,
            "idp-issuer-url": issuer,
            "refresh-token": "a",
        },
    }
    assert told(tmp_path, {"auth-provider": provider})["headers"] == {"authorization": "Bearer a-new-one"}

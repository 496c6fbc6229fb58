"""Kubeconfig files: of the control plane, of servers that tests make up, and of what stands between headroom and a server."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml


def write_kubeconfig(
    path: Path,
    server: str,
    user: str | Mapping[str, Any] = "none",
    *,
    namespace: str = "default",
    **cluster: str | bool,
) -> Path:
    """Write one with a single context, readable by the owner only, and return its path. JSON is YAML.

    `user`: a token, or what the file says of its user. `cluster`: more fields of the cluster, such as a certificate: inside the
    file, that works wherever it is mounted.
    """
    context = {"cluster": "controlplane", "user": "it", "namespace": namespace}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "controlplane",
        "contexts": [{"name": "controlplane", "context": context}],
        "clusters": [{"name": "controlplane", "cluster": {"server": server, **cluster}}],
        "users": [{"name": "it", "user": {"token": user} if isinstance(user, str) else user}],
    }
    path.touch(mode=0o600)
    path.write_text(json.dumps(document, indent=2) + "\n")
    return path


def cluster_of(kubeconfig: Path) -> dict[str, Any]:
    """What the file says of its only cluster."""
    (named,) = yaml.safe_load(kubeconfig.read_text())["clusters"]
    return dict(named["cluster"])


def token_of(kubeconfig: Path) -> str:
    """The token of its only user."""
    (named,) = yaml.safe_load(kubeconfig.read_text())["users"]
    return str(named["user"]["token"])

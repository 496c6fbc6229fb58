"""Writes kubeconfig files.

Called by the API server for its users' tokens and for service account tokens.
"""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def write_kubeconfig(
    path: Path, *, server: str, ca_file: Path, user: str, token: str, namespace: str = "default"
) -> Path:
    """Write one with a single context, readable by the owner only, and return its path.

    The certificate is inside the file, so that it works wherever it is mounted. JSON is YAML.
    """
    authority = base64.b64encode(ca_file.read_bytes()).decode()
    context = {"cluster": "controlplane", "user": user, "namespace": namespace}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "controlplane",
        "contexts": [{"name": "controlplane", "context": context}],
        "clusters": [{"name": "controlplane", "cluster": {"server": server, "certificate-authority-data": authority}}],
        "users": [{"name": user, "user": {"token": token}}],
    }
    path.touch(mode=0o600)
    path.write_text(json.dumps(document, indent=2) + "\n")
    return path

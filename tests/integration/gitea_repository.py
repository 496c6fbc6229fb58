"""A capacity repository on a real Gitea, with its clone: branches are pushed, and pull requests opened."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from tests import manifests
from tests.controlplane.gitea import ADMIN, Gitea
from tests.git_repository import Files, GitRepository

ROOT = Path(__file__).resolve().parents[2]
NODE_POOL = (ROOT / "config" / "scaffold" / "nodepools.yaml").read_text()


def buffer(name: str, replicas: int) -> str:
    """Chunks of one CPU each."""
    size = f"replicas: {replicas}, provisioningStrategy: buffer.x-k8s.io/active-capacity"
    of = f"podTemplateRef: {{name: {name}}}"
    return manifests.buffer(name, size, of=of, namespace="") + manifests.pod_template(name, namespace="")


class GiteaRepository(GitRepository):
    """Made on the forge with a first commit on `main`: a NodePool, and a buffer of three chunks. The clone's remote `origin` is the forge."""

    def __init__(self, gitea: Gitea, folder: Path) -> None:
        super().__init__(folder)
        name = re.sub(r"\W+", "-", folder.name)
        self.gitea = gitea
        self.name = f"{ADMIN}/{name}"
        gitea.api("POST", "/user/repos", {"name": name, "default_branch": "main", "private": True})
        self.git("remote", "add", "origin", gitea.git_url(self.name, token=gitea.token))
        self.publish("main", {"pools.yaml": NODE_POOL, "web.yaml": buffer("web", 3)})

    def publish(self, branch: str, files: Files, *, start: str = "", to: str = "origin") -> str:
        """Commits the files on a branch, made at `start` where that is given, and pushes it. to: a remote or a URL."""
        if start:
            self.git("checkout", "--quiet", "-b", branch, start)
        else:
            self.git("checkout", "--quiet", "-B", branch)
        commit = self.commit(files)
        self.git("push", "--quiet", to, branch)
        return commit

    def open_pull_request(self, branch: str, *, head: str = "", token: str | None = None) -> int:
        body = {"title": f"Change from {branch}", "head": head or branch, "base": "main"}
        made = self.gitea.api("POST", f"/repos/{self.name}/pulls", body, token=token)
        return int(made["number"])

    def fork(self, user: str) -> str:
        """A fork of the user's, by its URL for the administrator to push to."""
        self.gitea.api("POST", f"/repos/{self.name}/forks?sudo={user}", {"name": "fork"})
        return self.gitea.git_url(f"{user}/fork", token=self.gitea.token)

    def comments(self, number: int) -> list[dict[str, Any]]:
        found = self.gitea.api("GET", f"/repos/{self.name}/issues/{number}/comments")
        return list(found or [])

    def pull_requests(self) -> list[dict[str, Any]]:
        return list(self.gitea.api("GET", f"/repos/{self.name}/pulls?state=all") or [])

    def statuses(self, commit: str) -> dict[str, dict[str, Any]]:
        """The last status of each context."""
        found = self.gitea.api("GET", f"/repos/{self.name}/commits/{commit}/status")
        return {status["context"]: status for status in found["statuses"] or []}

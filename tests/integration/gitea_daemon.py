"""`headroom run` as a process on the embedded cluster and a repository on Gitea."""

from __future__ import annotations

from pathlib import Path
from typing import Self

from tests.integration.gitea_repository import GiteaRepository
from tests.running_daemon import RunningDaemon


class GiteaDaemon(RunningDaemon):
    """It polls once an hour: what happens sooner was announced."""

    def __init__(self, repository: GiteaRepository, work: Path, **settings: str) -> None:
        gitea = repository.gitea
        usual = {
            "git_interval": "1h",
            "git_token": gitea.token,
            "git_state": str(work / "state"),
            "forge_kind": "gitea",
            "forge_repository": repository.name,
            "forge_api": f"{gitea.url}/api/v1",
            "forge_token": gitea.token,
            "forge_interval": "1h",
            "passes_quiet": "200ms",
        }
        self._token = gitea.token
        url = gitea.git_url(repository.name)
        super().__init__(work, f"--repo={url}", "--cluster=embedded", environment={}, **{**usual, **settings})

    def __enter__(self) -> Self:
        super().__enter__()
        self.wait_until_ready()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        super().__exit__(kind)
        assert self._token not in self.log()

    def metric(self, line: str) -> bool:
        return line in self.fetch("/metrics").splitlines()

    def passes(self) -> float:
        lines = self.fetch("/metrics").splitlines()
        return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith("headroom_reconcile_total{"))

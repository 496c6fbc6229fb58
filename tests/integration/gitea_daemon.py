"""`headroom run` as a process on the embedded cluster and a repository on Gitea."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.controlplane import eventually
from tests.controlplane.ports import free_port
from tests.integration.gitea_repository import ROOT, GiteaRepository


class GiteaDaemon:
    """Runs in the `with` block. It polls once an hour: what happens sooner was announced. settings: by variable, without
    HEADROOM_."""

    def __init__(self, repository: GiteaRepository, work: Path, **settings: str) -> None:
        self._log = work / "daemon.log"
        self._listen = f"127.0.0.1:{free_port()}"
        self._settings = {
            "GIT_INTERVAL": "1h",
            "GIT_TOKEN": repository.gitea.token,
            "GIT_STATE": str(work / "state"),
            "FORGE_KIND": "gitea",
            "FORGE_REPOSITORY": repository.name,
            "FORGE_API": f"{repository.gitea.url}/api/v1",
            "FORGE_TOKEN": repository.gitea.token,
            "FORGE_INTERVAL": "1h",
            "PASSES_QUIET": "200ms",
            "LOGS_FORM": "json",
            "LISTEN": self._listen,
            **settings,
        }
        self._token = repository.gitea.token
        self._url = repository.gitea.git_url(repository.name)
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        command = [sys.executable, "-m", "reconciler", "run", f"--repo={self._url}", "--cluster=embedded"]
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("HEADROOM_")},
            **{f"HEADROOM_{name}": value for name, value in self._settings.items()},
        }
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=log, stderr=log)
        eventually(lambda: self.fetch("/readyz"), within=60, what="the daemon is ready")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(timeout=30)
        finally:
            self._process.kill()
        if kind is not None:
            sys.stderr.write(f"--- the daemon's log ends with\n{self.log()[-6000:]}\n")
        assert self._token not in self.log()

    def log(self) -> str:
        return self._log.read_text(errors="replace")

    def status(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(self.fetch("/status"))
        return document

    def metric(self, line: str) -> bool:
        return line in self.fetch("/metrics").splitlines()

    def passes(self) -> float:
        lines = self.fetch("/metrics").splitlines()
        return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith("headroom_reconcile_total{"))

    def fetch(self, path: str) -> str:
        with urllib.request.urlopen(f"http://{self._listen}{path}", timeout=10) as response:
            text: str = response.read().decode()
            return text

"""`headroom run` as a process of its own, for tests of what it serves, logs and writes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from tests.controlplane.ports import free_port
from tests.controlplane.waiting import eventually

ROOT = Path(__file__).resolve().parents[1]


class RunningDaemon:
    """Starts in the `with` block and ends with it. words: beside `run`; settings: by variable, without HEADROOM_."""

    def __init__(self, work: Path, *words: str, environment: Mapping[str, str] | None = None, **settings: str) -> None:
        self.address = f"127.0.0.1:{free_port()}"
        self._log = work / "daemon.log"
        self._words = words
        given = {"LOGS_FORM": "json", "LISTEN": self.address, **settings}
        self._environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("HEADROOM_")},
            "PYTHONPATH": str(ROOT),
            **(environment or {}),
            **{f"HEADROOM_{name.upper()}": value for name, value in given.items()},
        }
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self.stop()
        if kind is not None:
            sys.stderr.write(f"--- the daemon's log ends with\n{self.log()[-6000:]}\n")

    def start(self) -> None:
        command = [sys.executable, "-m", "reconciler", "run", *self._words]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(command, env=self._environment, stdout=log, stderr=log)

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def send(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def stop(self) -> int:
        """End it as a cluster would, and return its exit code."""
        assert self._process is not None
        self.send(signal.SIGTERM)
        try:
            return self._process.wait(timeout=40)
        except subprocess.TimeoutExpired:
            self.kill()
            raise

    def kill(self) -> None:
        """As a lost machine would: no warning."""
        assert self._process is not None
        self._process.kill()
        self._process.wait(timeout=30)

    def log(self) -> str:
        return self._log.read_text(errors="replace")

    def logged(self, event: str) -> list[dict[str, Any]]:
        rows = [json.loads(line) for line in self.log().splitlines() if line.startswith("{")]
        return [row for row in rows if row["event"] == event]

    def fetch(self, path: str) -> str:
        with urllib.request.urlopen(f"http://{self.address}{path}", timeout=10) as response:
            text: str = response.read().decode()
            return text

    def status(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(self.fetch("/status"))
        return document

    def wait_until_ready(self) -> None:
        eventually(lambda: self.fetch("/readyz"), within=60, what="the daemon is ready")

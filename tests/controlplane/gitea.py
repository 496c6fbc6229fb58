"""Gitea as a process: a real forge with pull requests, comments, statuses, webhooks and git over HTTP.

Started by the `gitea` fixture for the tests that ask for it. State is SQLite in a folder of its own.
"""

from __future__ import annotations

import getpass
import json
import os
import subprocess
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Self
from uuid import uuid4

import urllib3

from tests.controlplane.ports import LOOPBACK, free_port
from tests.controlplane.process import Process
from tests.controlplane.programs import find_data

if TYPE_CHECKING:
    from pathlib import Path

ADMIN = "platform"
"""The user whom tests act as. `pull_request_author` makes others."""
_SETTINGS = """\
RUN_MODE = prod
RUN_USER = {user}
WORK_PATH = {folder}
I_AM_BEING_UNSAFE_RUNNING_AS_ROOT = true
[server]
HTTP_ADDR = {host}
HTTP_PORT = {port}
ROOT_URL = {url}/
STATIC_ROOT_PATH = {static}
DISABLE_SSH = true
OFFLINE_MODE = true
[database]
DB_TYPE = sqlite3
PATH = {folder}/gitea.db
[security]
INSTALL_LOCK = true
SECRET_KEY = of-a-test
PASSWORD_HASH_ALGO = pbkdf2$1000$50
PASSWORD_COMPLEXITY = off
[service]
DISABLE_REGISTRATION = true
[webhook]
ALLOWED_HOST_LIST = loopback
[repository]
DEFAULT_BRANCH = main
[indexer]
ISSUE_INDEXER_TYPE = db
[queue]
TYPE = channel
[actions]
ENABLED = false
[log]
MODE = console
LEVEL = warn
"""


class ForgeError(OSError):
    """Gitea's answer to a request was an error."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(f"{status}: {text}")
        self.status = status


class Gitea:
    """Runs in the `with` block. url: its address; token: of ADMIN, for everything."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        port = free_port()
        self.url = f"http://{LOOPBACK}:{port}"
        self.token = ""
        self._pool = urllib3.PoolManager(timeout=30.0)
        self._config = folder / "app.ini"
        self._config.write_text(
            _SETTINGS.format(
                user=getpass.getuser(),
                folder=folder,
                host=LOOPBACK,
                port=port,
                url=self.url,
                static=find_data("gitea-static"),
            )
        )
        self._process = Process(
            "gitea",
            ["web", f"--config={self._config}"],
            folder=folder,
            environment=_ENVIRONMENT,
            ready=f"{self.url}/api/healthz",
        )

    def __enter__(self) -> Self:
        self._admin("migrate")
        with ExitStack() as started:
            started.enter_context(self._process)
            self.token = self.add_user(ADMIN, "--admin")
            started.pop_all()
        return self

    def __exit__(self, *exception: object) -> None:
        self._process.stop()

    def add_user(self, name: str, *flags: str, scopes: str = "all") -> str:
        """A user and a token of theirs for everything, or for these scopes."""
        mail = f"--email={name}@example.invalid"
        words = ("admin", "user", "create", f"--username={name}", mail, "--password=of-a-test")
        self._admin(*words, "--must-change-password=false", *flags)
        return self.add_token(name, scopes)

    def add_token(self, name: str, scopes: str) -> str:
        """One more token of a user's."""
        words = (f"--username={name}", f"--scopes={scopes}", f"--token-name={uuid4()}", "--raw")
        return self._admin("admin", "user", "generate-access-token", *words).strip().splitlines()[-1]

    def api(self, method: str, path: str, body: dict[str, Any] | None = None, *, token: str | None = None) -> Any:
        """One request to /api/v1; ForgeError for an error status."""
        response = self._pool.request(
            method,
            f"{self.url}/api/v1{path}",
            body=None if body is None else json.dumps(body),
            headers={"Authorization": f"token {token or self.token}", "Content-Type": "application/json"},
        )
        if response.status >= 300:
            raise ForgeError(response.status, response.data.decode(errors="replace")[:500])
        return json.loads(response.data) if response.data.strip() else None

    def git_url(self, repository: str, *, token: str | None = None) -> str:
        """Where git clones and pushes; with a token for who may push."""
        sign_in = f"{ADMIN}:{token}@" if token else ""
        return f"{self.url.replace('://', f'://{sign_in}')}/{repository}.git"

    def _admin(self, *words: str) -> str:
        done = subprocess.run(
            [self._process.command[0], f"--config={self._config}", *words],
            cwd=self._folder,
            env={"PATH": os.environ["PATH"], "HOME": str(self._folder), **_ENVIRONMENT},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise RuntimeError(f"gitea {' '.join(words)}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
        return done.stdout


_ENVIRONMENT = {"GIT_CONFIG_NOSYSTEM": "1"}

"""`make demo`: makes a Git repository from examples-repo/ and runs the daemon on it and the embedded cluster.

python -m tests.demo FOLDER [--until-settled]
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
IDENTITY = ["-c", "user.name=demo", "-c", "user.email=demo@example.invalid", "-c", "commit.gpgsign=false"]

WELCOME = """\
A capacity repository stands in {repository}; the embedded cluster starts with three workloads and no nodes.

  Change the capacity:   edit {repository}/clusters/production/buffers/shop.yaml, then
                         git -C {repository} commit -am "More web capacity"
                         (the next poll is at most 5 seconds away)
  See what the daemon did:  .venv/bin/headroom status
  See the week ahead:       http://127.0.0.1:8080/capacity
  Metrics and health:       http://127.0.0.1:8080/metrics, /readyz
"""


def make_repository(folder: Path) -> None:
    """A fresh repository each time: what was tried in an earlier demo is kept beside it, not built upon."""
    if folder.exists():
        old = folder.with_name(f"{folder.name}.previous")
        shutil.rmtree(old, ignore_errors=True)
        folder.rename(old)
    shutil.copytree(ROOT / "examples-repo", folder)

    def git(*words: str) -> None:
        subprocess.run(["git", "-C", str(folder), *IDENTITY, *words], check=True, stdout=subprocess.DEVNULL)

    git("init", "--quiet", "--initial-branch=main")
    git("add", "--all")
    git("commit", "--quiet", "--message", "The capacity of our clusters")


def main(arguments: list[str]) -> None:
    folder = Path(arguments[0])
    repository = folder / "repository"
    make_repository(repository)
    sys.stdout.write(WELCOME.format(repository=os.path.relpath(repository)) + "\n")
    sys.stdout.flush()
    command = [
        str(Path(sys.executable).with_name("headroom")),
        "run",
        f"--repo={repository}",
        "--revision=main",
        "--path=clusters/production",
        f"--cluster=embedded:{ROOT / 'examples-repo' / 'snapshots' / 'production'}",
        *arguments[1:],
    ]
    if "--until-settled" in arguments:
        command.append("--at-most=120")
    environment = {"HEADROOM_GIT_INTERVAL": "5s", **os.environ}
    os.execve(command[0], command, environment)


if __name__ == "__main__":
    main(sys.argv[1:])

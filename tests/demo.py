"""`make demo`: makes a Git repository from examples-repo/ and runs the daemon on it and the embedded cluster.

python -m tests.demo FOLDER [--until-settled]
"""

from __future__ import annotations

import fcntl
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
IDENTITY = ["-c", "user.name=demo", "-c", "user.email=demo@example.invalid", "-c", "commit.gpgsign=false"]

WELCOME = """\
A capacity repository is in {repository}; the embedded cluster starts with three workloads and no nodes.

  Change the capacity:   edit {repository}/clusters/production/buffers/shop.yaml, then
                         git -C {repository} commit -am "More web capacity"
                         (the next poll is at most 5 seconds away)
  See what the daemon did:  {status}
  See it all:               http://{address}/
  Metrics and health:       http://{address}/metrics, /readyz
"""


WELCOME_ONCE = """\
A capacity repository is in {repository}; the embedded cluster starts with three workloads and no nodes, and ends with the daemon,
as soon as the cluster is as declared. `make demo` keeps both running. What stays is the repository:

  See what would be done:   {headroom} plan --repo {repository} --path clusters/production --cluster embedded:{snapshot}
  Check what you change:    {headroom} validate {repository}
"""

LISTEN = "127.0.0.1:8080"
"""The daemon's own default."""


def address_for(wanted: str | None) -> str:
    """Where the daemon will listen, known before it starts: as wanted, with a free port for port 0 or a default that is taken."""
    host, _, port = (wanted or LISTEN).rpartition(":")
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host or "127.0.0.1", int(port)))
        except OSError:
            if wanted is not None:
                return wanted  # the daemon says what is wrong with it
            probe.bind((host, 0))
        return f"{host or '127.0.0.1'}:{probe.getsockname()[1]}"


def claim(folder: Path) -> None:
    """Ends this process where another demo works in the folder: it would lose its repository. The daemon keeps the claim by having the
    file open."""
    folder.mkdir(parents=True, exist_ok=True)
    file = os.open(folder / "running", os.O_RDWR | os.O_CREAT)
    os.set_inheritable(file, True)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        sys.exit(f"A demo is running in {os.path.relpath(folder)}: end it first, with Ctrl-C where it runs.")


def make_repository(folder: Path) -> None:
    """A fresh repository each time: what was tried in an earlier demo is kept beside it, not built upon."""
    if folder.exists():
        old = folder.with_name(f"{folder.name}.previous")
        shutil.rmtree(old, ignore_errors=True)
        folder.rename(old)
        sys.stdout.write(f"The repository of the last demo is kept in {os.path.relpath(old)}.\n\n")
    shutil.copytree(ROOT / "examples-repo", folder)

    def git(*words: str) -> None:
        subprocess.run(["git", "-C", str(folder), *IDENTITY, *words], check=True, stdout=subprocess.DEVNULL)

    git("init", "--quiet", "--initial-branch=main")
    git("add", "--all")
    git("commit", "--quiet", "--message", "The capacity of our clusters")


def main(arguments: list[str]) -> None:
    folder = Path(arguments[0])
    repository = folder / "repository"
    claim(folder)
    make_repository(repository)
    address = address_for(os.environ.get("HEADROOM_LISTEN"))
    headroom = Path(sys.executable).with_name("headroom")
    snapshot = ROOT / "examples-repo" / "snapshots" / "production"
    shown, program = os.path.relpath(repository), os.path.relpath(headroom)
    if "--until-settled" in arguments:
        welcome = WELCOME_ONCE.format(repository=shown, headroom=program, snapshot=os.path.relpath(snapshot))
    else:
        status = f"{program} status" + ("" if address == LISTEN else f" --address {address}")
        welcome = WELCOME.format(repository=shown, status=status, address=address)
    sys.stdout.write(welcome + "\n")
    sys.stdout.flush()
    command = [
        str(headroom),
        "run",
        f"--repo={repository}",
        "--revision=main",
        "--path=clusters/production",
        f"--cluster=embedded:{snapshot}",
        *arguments[1:],
    ]
    if "--until-settled" in arguments:
        command.append("--at-most=120")
    environment = {"HEADROOM_GIT_INTERVAL": "5s", **os.environ, "HEADROOM_LISTEN": address}
    os.execve(command[0], command, environment)


if __name__ == "__main__":
    main(sys.argv[1:])

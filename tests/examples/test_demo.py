"""`make demo`: what its banner says works, whatever port the daemon has."""

from __future__ import annotations

import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urljoin

from tests.controlplane.waiting import eventually
from tests.demo import LISTEN, address_for

ROOT = Path(__file__).resolve().parents[2]


@contextmanager
def demo(folder: Path, **environment: str) -> Iterator[str]:
    """The banner of a running demo."""
    command = [sys.executable, "-m", "tests.demo", str(folder)]
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    try:
        banner = ""
        while "/readyz" not in banner:
            line = process.stdout.readline()
            assert line, "the demo ended"
            banner += line
        yield banner
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)


def test_the_status_command_and_the_pages_of_the_banner_work_with_port_0(tmp_path: Path) -> None:
    with demo(tmp_path / "demo", HEADROOM_LISTEN="127.0.0.1:0") as banner:
        found = re.search(r"See what the daemon did:  (.+)", banner)
        page = re.search(r"See it all: +(http://\S+/)\n", banner)
        assert found is not None
        assert page is not None

        def answers() -> bool:
            with urllib.request.urlopen(urljoin(page[1], "/status"), timeout=10) as answer:
                return bool(answer.status == 200)

        eventually(answers, within=60, what="the daemon answers at the address in the banner")
        subprocess.run(shlex.split(found[1]), cwd=ROOT, capture_output=True, check=True)
        with urllib.request.urlopen(page[1], timeout=10) as answer:
            assert answer.status == 200


def test_a_second_demo_beside_a_running_one_is_refused_and_a_later_one_keeps_what_the_first_had(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    with demo(folder, HEADROOM_LISTEN="127.0.0.1:0"):
        command = [sys.executable, "-m", "tests.demo", str(folder)]
        second = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert (second.returncode, second.stdout) == (1, "")
        assert "end it first" in second.stderr
        (folder / "repository" / "mine").write_text("tried in the first demo")
    with demo(folder, HEADROOM_LISTEN="127.0.0.1:0") as banner:
        assert "repository.previous" in banner
        assert (folder / "repository.previous" / "mine").exists()


def test_what_the_banner_of_a_demo_that_ends_names_works_afterwards(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.demo", str(tmp_path / "demo"), "--until-settled"]
    environment = {**os.environ, "HEADROOM_LISTEN": "127.0.0.1:0"}
    banner = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True).stdout
    commands = [shlex.split(line.split(":   ", 1)[1]) for line in banner.splitlines() if ":   " in line]
    assert [command[1] for command in commands] == ["plan", "validate"]
    for command in commands:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode in {0, 1}
        assert "headroom: " not in done.stderr, "a busy machine may show progress there, but there is no failure"
    assert "127.0.0.1" not in banner


def test_a_default_port_that_is_taken_is_left_to_whoever_has_it() -> None:
    host, port = LISTEN.split(":")
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            taken.bind((host, int(port)))
        except OSError:
            pass  # somebody has it already
        else:
            taken.listen()
        assert address_for(None) != LISTEN
    assert address_for("127.0.0.1:9999") == "127.0.0.1:9999"

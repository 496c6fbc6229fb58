"""The process that renders, as if a template had left Jinja2's sandbox: what it tries, the kernel refuses."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from reconciler.files import packaged_texts
from reconciler.render.templates import RenderProcess

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() not in ("x86_64", "aarch64"),
    reason="the kernel's filter is not there",
)
ROOT = Path(__file__).resolve().parents[3]


def refused(what: str, *, before: str = "") -> str:
    """The error of a statement in a process that is confined."""
    script = (
        "import ctypes, os, signal, socket, subprocess, sys, threading\n"
        "from reconciler.render.worker import confine\n"
        f"{before}\n"
        "print('confined', confine(), flush=True)\n"
        f"try:\n    {what}\n"
        "except (OSError, RuntimeError) as error:\n    print(type(error).__name__, getattr(error, 'errno', ''))\n"
        "else:\n    print('done')\n"
        "sys.stdout.flush()\nos._exit(0)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False)
    confined, _, answer = done.stdout.partition("\n")
    assert confined == "confined True", done.stderr
    return answer.strip()


@pytest.mark.parametrize(
    "what",
    [
        "open('/etc/hostname')",
        "open('/tmp/headroom-confined', 'w')",
        "os.listdir('/')",
        "os.stat('/')",
        "os.readlink('/proc/self/exe')",
        "os.chdir('/')",
        "os.unlink('/tmp/headroom-confined')",
        "socket.socket(socket.AF_INET, socket.SOCK_STREAM)",
        "socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)",
        "socket.socket(socket.AF_UNIX)",
        "socket.socketpair()",
        "os.fork()",
        "os.posix_spawn('/bin/true', ['true'], {})",
        "subprocess.run(['true'])",
        "os.execv('/bin/true', ['true'])",
        "threading.Thread(target=print).start()",
        "os.kill(os.getppid(), 0)",
        "os.kill(-1, 0)",
        "os.setuid(0)",
        "os.memfd_create('a')",
        "os.pidfd_open(os.getppid())",
        "os.pipe()",
        "os.dup(1)",
        "os.uname()",
    ],
)
def test_whoever_leaves_the_sandbox_gets_no_further(what: str) -> None:
    assert refused(what).split()[0] in ("PermissionError", "RuntimeError"), what


@pytest.mark.parametrize("number", ["310", "101", "425", "434", "272", "308"])
@pytest.mark.skipif(platform.machine() != "x86_64", reason="numbers of x86-64")
def test_a_system_call_by_its_number_is_refused_too(number: str) -> None:
    """process_vm_readv, ptrace, io_uring_setup, pidfd_open, unshare, setns."""
    libc = "libc = ctypes.CDLL(None, use_errno=True)"
    assert refused(f"print(libc.syscall({number}, 0, 0, 0, 0, 0, 0), ctypes.get_errno())", before=libc) == "-1 1\ndone"


def test_it_signals_itself_and_nobody_else() -> None:
    libc = "libc = ctypes.CDLL(None, use_errno=True); parent = os.getppid(); number = 234 if os.uname().machine == 'x86_64' else 131"
    assert refused("print(libc.syscall(number, parent, parent, 0))", before=libc) == "-1\ndone"
    assert refused("print(libc.syscall(number, os.getpid(), os.getpid(), 0))", before=libc) == "0\ndone"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may become another user")
def test_it_needs_no_privileges() -> None:
    """As in a pod that runs as another user, may gain no privileges, and has no capabilities."""
    # Another user may not read the interpreter's files here; in the image it may.
    imported = (
        "import jinja2.debug, pprint, textwrap, unicodedata, random, traceback, linecache, encodings.unicode_escape; "
    )
    unprivileged = "os.setgroups([]); os.setgid(65532); os.setuid(65532); ctypes.CDLL(None).prctl(38, 1, 0, 0, 0)"
    assert refused("open('/etc/hostname')", before=imported + unprivileged).startswith("PermissionError 1")


def test_the_process_that_renders_is_confined() -> None:
    process = RenderProcess()
    try:
        sources = packaged_texts("templates", suffix=".j2") | {
            "a": "{{ b | pprint }}{{ c | wordwrap(3) }}{{ 'é' | urlencode }}"
        }
        answer = process.ask(sources, {"render": "a", "context": {"b": [1], "c": "a b c d"}, "most": 99})
        status = Path(f"/proc/{process.pid}/status").read_text()
    finally:
        process.close()
    assert answer["text"] == "[1]a b\nc d%C3%A9"
    assert {"Seccomp:\t2", "NoNewPrivs:\t1", "Threads:\t1"} <= set(status.splitlines())

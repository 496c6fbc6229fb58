"""The process that renders documents, started by templates.py, and confined to memory, its clock and the files that it has open.

Jinja2's sandbox has been left before. Whoever leaves it here opens no file, no socket and no process, so there is no token to read and
nobody to send it to. The kernel's filter of system calls (seccomp) needs no privileges, and a container with the profile
`RuntimeDefault` allows it. It lists what is allowed, so a new system call is refused. Linux on x86-64 and arm64 has it; elsewhere the
sandbox, the empty environment and the limits stand alone.

The process is `python -m reconciler.render.worker SECONDS`. It reads and writes JSON, a message a line: only plain data crosses, so that
a template that takes over this process cannot reach the other. A template may take that many seconds of processor time.

The kernel enforces its limits whatever a template does, even inside one endless operation that Python code cannot interrupt.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import platform
import resource
import signal
import struct
import sys
from collections.abc import Mapping
from contextlib import suppress
from importlib import import_module
from typing import Any

from jinja2 import TemplateError, UndefinedError
from jinja2.exceptions import SecurityError

from reconciler.render.environment import Sandbox, TooLongError, bounded, place_of

_ARCHITECTURES = {
    # By machine: the number of the architecture in Linux's audit.h, of tgkill, and of all other system calls that are allowed.
    "x86_64": (0xC000003E, 234, {
        "read": 0, "write": 1, "close": 3, "fstat": 5, "poll": 7, "lseek": 8, "mmap": 9, "mprotect": 10, "munmap": 11, "brk": 12,
        "rt_sigaction": 13, "rt_sigprocmask": 14, "rt_sigreturn": 15, "sched_yield": 24, "mremap": 25, "madvise": 28, "getitimer": 36,
        "setitimer": 38, "getpid": 39, "exit": 60, "gettimeofday": 96, "getrusage": 98, "sigaltstack": 131,
        "gettid": 186, "time": 201, "futex": 202, "restart_syscall": 219, "clock_gettime": 228, "clock_nanosleep": 230, "exit_group": 231,
        "ppoll": 271, "getrandom": 318, "rseq": 334,
    }),
    "aarch64": (0xC00000B7, 131, {
        "close": 57, "lseek": 62, "read": 63, "write": 64, "ppoll": 73, "fstat": 80, "exit": 93, "exit_group": 94, "futex": 98,
        "getitimer": 102, "setitimer": 103, "clock_gettime": 113, "clock_nanosleep": 115, "sched_yield": 124, "restart_syscall": 128,
        "sigaltstack": 132, "rt_sigaction": 134, "rt_sigprocmask": 135, "rt_sigreturn": 139, "getrusage": 165, "gettimeofday": 169,
        "getpid": 172, "gettid": 178, "brk": 214, "munmap": 215, "mremap": 216, "mmap": 222,
        "mprotect": 226, "madvise": 233, "getrandom": 278, "rseq": 293,
    }),
}  # fmt: skip
_LATE_IMPORTS = (
    "jinja2.debug",
    "pprint",
    "textwrap",
    "unicodedata",
    "random",
    "traceback",
    "linecache",
    "encodings.unicode_escape",
)
"""What Jinja2 and Python import only when a template needs it: no file can be opened any more by then."""
_NO_NEW_PRIVILEGES, _SET_SECCOMP, _WITH_FILTER = 38, 22, 2
_LOAD, _IF_EQUAL, _RETURN = 0x20, 0x15, 0x06
_ALLOW, _END_PROCESS, _REFUSE = 0x7FFF0000, 0x80000000, 0x00050000 | errno.EPERM
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16
"""Where the filter finds these in what it is given about a system call."""


def confine() -> bool:
    """Whether this process, which has one thread, is confined from now on. Opened files stay open."""
    architecture = _ARCHITECTURES.get(platform.machine()) if sys.platform == "linux" and sys.maxsize > 2**32 else None
    if architecture is None:
        return False
    for name in _LATE_IMPORTS:
        import_module(name)
    instructions = _filter(*architecture, os.getpid())
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *each) for each in instructions))
    program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(instructions), ctypes.addressof(code)))
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    prctl.argtypes = [ctypes.c_int, *[ctypes.c_ulong] * 4]
    if prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) != 0:
        return False
    return bool(prctl(_SET_SECCOMP, _WITH_FILTER, ctypes.addressof(program), 0, 0) == 0)


def _filter(architecture: int, tgkill: int, allowed: dict[str, int], own: int) -> list[tuple[int, int, int, int]]:
    """Instructions of the filter: operation, steps to skip if equal and if not, value. The process may signal itself alone, by which it
    ends when its time is over."""
    instructions = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_IF_EQUAL, 1, 0, architecture),
        (_RETURN, 0, 0, _END_PROCESS),
        (_LOAD, 0, 0, _NUMBER),
    ]
    for number in sorted(allowed.values()):
        instructions += [(_IF_EQUAL, 0, 1, number), (_RETURN, 0, 0, _ALLOW)]
    return [
        *instructions,
        (_IF_EQUAL, 0, 3, tgkill),
        (_LOAD, 0, 0, _FIRST_ARGUMENT),
        (_IF_EQUAL, 0, 1, own),
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, _REFUSE),
    ]


MEMORY = 256 * 2**20
"""The limit of address space in bytes. Python and Jinja2 take some 40 MiB of it."""


def main() -> None:
    """Answers requests until the other side closes standard input, which happens at the latest when it ends."""
    seconds = float(sys.argv[1])
    _bind_limits()
    confine()
    sandbox = Sandbox({})
    for line in sys.stdin.buffer:
        request = json.loads(line)
        if "sources" in request:
            sandbox = Sandbox(request["sources"])
            continue
        # The first timer stops the template where it is, the second ends this process, even inside one endless operation.
        signal.setitimer(signal.ITIMER_PROF, seconds)
        signal.setitimer(signal.ITIMER_VIRTUAL, 2 * seconds)
        answer = _answer(sandbox, request)
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        sys.stdout.write(f"{json.dumps(answer)}\n")
        sys.stdout.flush()


class TimeIsUpError(BaseException):
    """Not an Exception, which a template's own code might catch."""


def _stop(_number: int, _frame: object) -> None:
    raise TimeIsUpError


def _bind_limits() -> None:
    signal.signal(signal.SIGPROF, _stop)
    # A terminal's Ctrl-C is meant for headroom, which closes standard input when it is done.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for limit, wanted in ((resource.RLIMIT_AS, MEMORY), (resource.RLIMIT_CORE, 0), (resource.RLIMIT_FSIZE, 0)):
        _, hard = resource.getrlimit(limit)
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        with suppress(ValueError):  # macOS has RLIMIT_AS but refuses it
            resource.setrlimit(limit, (most, most))


def _answer(sandbox: Sandbox, request: Mapping[str, Any]) -> dict[str, Any]:
    try:
        try:
            text = bounded(sandbox, request["render"], request["context"], request["most"])
            text.encode()
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
    except TimeIsUpError as error:
        template, line = place_of(error) or (request["render"], 1)
        return {"late": True, "template": template, "line": line}
    except Exception as error:  # noqa: BLE001 - whatever a template raises is a finding on that template
        return _failure(error, request["render"])
    return {"text": text}


def _failure(error: Exception, asked: str) -> dict[str, Any]:
    name, line = place_of(error) or (asked, 1)
    if isinstance(error, TooLongError):
        line = error.line
    hint = ""
    match error:
        case MemoryError():
            message = f"it needs more than {MEMORY // 2**20} MiB of memory"
        case RecursionError() | SyntaxError():  # Python has limits of its own: 20 nested loops, 100 nested levels
            message = "it includes or calls itself without end, or is nested too deep"
        case UnicodeEncodeError():
            message = "it writes half of a surrogate pair, which is not text"
        case UndefinedError():
            message, hint = str(error.message), "docs/templates.md lists what a template is given"
        case SecurityError():
            message = f"it asks for what the sandbox refuses: {error}"
        case TemplateError():
            message = str(error.message or type(error).__name__)
        case TooLongError():
            message = str(error)
        case _:
            message = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return {"failed": message[:300], "hint": hint, "template": name, "line": line}


if __name__ == "__main__":
    main()

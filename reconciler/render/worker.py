"""The process that renders documents, started by process.py: `python -m reconciler.render.worker SECONDS`.

Its standard input is a socket. A template may take that many seconds of processor time.

The kernel enforces its limits whatever a template does, even inside one endless operation that Python code cannot interrupt.
"""

from __future__ import annotations

import faulthandler
import resource
import signal
import socket
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from jinja2 import TemplateError, UndefinedError, meta
from jinja2.exceptions import SecurityError

from reconciler.render.channel import encoded, receive
from reconciler.render.confinement import confine
from reconciler.render.environment import Sandbox, TooLongError, bounded, place_of

MEMORY = 256 * 2**20
"""The limit of address space in bytes. Python and Jinja2 take some 40 MiB of it."""
_LAST_WORDS = 2**16
"""The limit of bytes written to a file, enough for the traceback."""


def main() -> None:
    """Answers requests until the other side closes the socket, which happens at the latest when it ends."""
    seconds = float(sys.argv[1])
    _bind_limits()
    with socket.socket(fileno=sys.stdin.fileno()) as channel:
        confine()
        sandbox = Sandbox({})
        names: list[str] = []
        while (request := receive(channel)) is not None:
            if "sources" in request:
                names = list(request["sources"])
                sandbox = Sandbox(request["sources"])
                continue
            # Unless it is stopped first, the timer ends this process after a traceback.
            signal.setitimer(signal.ITIMER_PROF, seconds)
            answer = _answer(sandbox, names, request)
            left, _ = signal.setitimer(signal.ITIMER_PROF, 0)
            channel.sendall(encoded(answer | {"seconds": seconds - left}))


def _bind_limits() -> None:
    """Sets the limits. From the traceback on standard error the parent learns the line at which a template used up its time."""
    faulthandler.enable(all_threads=False)
    faulthandler.register(signal.SIGPROF, all_threads=False, chain=True)
    # A terminal's Ctrl-C is meant for headroom, which closes the socket when it is done.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    limits = (
        (resource.RLIMIT_AS, MEMORY),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, _LAST_WORDS),
    )
    for limit, wanted in limits:
        _, hard = resource.getrlimit(limit)
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        with suppress(ValueError):  # macOS has RLIMIT_AS but refuses it
            resource.setrlimit(limit, (most, most))


def _answer(sandbox: Sandbox, names: list[str], request: Mapping[str, Any]) -> dict[str, Any]:
    try:
        if "compile" in request:
            return {"references": _compiled(sandbox, request["compile"])}
        text = bounded(sandbox, request["render"], request["context"], request["most"])
        text.encode()
    except Exception as error:  # noqa: BLE001 - whatever a template raises is a finding on that template
        return _failure(error, names)
    return {"text": text}


def _compiled(sandbox: Sandbox, name: str) -> list[str]:
    """Compiles a template; returns the templates that it names, with "" for one that an expression names."""
    sandbox.get_template(name)
    source = sandbox.loader.get_source(sandbox, name)[0] if sandbox.loader else ""
    return sorted({found or "" for found in meta.find_referenced_templates(sandbox.parse(source))})


def _failure(error: Exception, names: list[str]) -> dict[str, Any]:
    name, line = place_of(error, names) or (None, 1)
    if isinstance(error, TooLongError):
        line = error.line
    hint = ""
    match error:
        case MemoryError():
            message = f"it needs more than {MEMORY // 2**20} MiB of memory"
        case RecursionError():
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

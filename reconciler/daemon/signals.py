"""SIGTERM and SIGINT as a request to stop, from the first moment on."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def stopped_by_signals(stop: Callable[[], None]) -> Iterator[None]:
    """While it lasts, either signal calls `stop`, which must be safe in a signal handler. Outside the main thread it does nothing."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    for number in before:
        signal.signal(number, lambda _number, _frame: stop())
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def ended_by_signals(code: int) -> Iterator[None]:
    """For the time before and after the daemon runs: either signal ends the process cleanly with this exit code.

    Without it a signal in the first second would cause an error, and process 1 of a container would ignore it.
    """
    with stopped_by_signals(lambda: sys.exit(code)):
        yield

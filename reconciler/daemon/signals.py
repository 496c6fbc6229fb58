"""SIGTERM and SIGINT as a request to stop."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def stopped_by_signals(stop: Callable[[], None]) -> Iterator[None]:
    """While it lasts, either signal calls `stop`, which must be safe in a signal handler. Nothing but in the main thread."""
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

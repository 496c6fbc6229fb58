"""A daemon with real threads, a clock that the test moves, and passes that are prepared."""

from __future__ import annotations

import threading
from datetime import timedelta
from queue import Queue
from typing import Any, Self

from reconciler.daemon.daemon import Daemon, Listeners, Timing
from reconciler.ports import PassResult
from reconciler.timetable.agenda import Pacing, Trigger
from tests.fakes.clock import ManualClock

PATIENCE = 120.0
"""Seconds until a test that hangs fails; no test that passes waits for it."""
LONG = timedelta(hours=1)


class Passes:
    """Makes prepared passes (then ones with nothing to do) and says when each has begun."""

    def __init__(self, *results: PassResult | Exception) -> None:
        self.results = list(results)
        self.begun: Queue[Trigger] = Queue()
        self.gate = threading.Event()
        self.gate.set()

    def __call__(self, trigger: Trigger) -> PassResult:
        self.begun.put(trigger)
        assert self.gate.wait(PATIENCE)
        result = self.results.pop(0) if self.results else PassResult()
        if isinstance(result, Exception):
            raise result
        return result

    def next(self) -> Trigger:
        return self.begun.get(timeout=PATIENCE)


class Told:
    """A log that keeps what it is told, from informational lines on."""

    def __init__(self) -> None:
        self.told = Queue[str]()

    def debug(self, event: str, **facts: Any) -> None:
        """Not kept."""

    def info(self, event: str, **_facts: Any) -> None:
        self.told.put(event)

    warning = error = info


class Running:
    """A daemon in a thread of its own, with a clock that only the test moves."""

    def __init__(self, passes: Passes, run: dict[str, Any] | None = None, **arguments: Any) -> None:
        self.clock = ManualClock()
        self.passes = passes
        settings: dict[str, Any] = {"run_pass": passes, "poll_source": lambda: False, "clock": self.clock}
        timing: dict[str, Any] = {"poll": LONG, "tick": LONG, "pacing": Pacing(quiet=timedelta(0))}
        timing |= {name: arguments.pop(name) for name in ("poll", "tick", "pacing", "grace") if name in arguments}
        heard = Listeners(
            **{name: arguments.pop(name) for name in ("on_result", "on_poll", "log") if name in arguments}
        )
        self.daemon = Daemon(timing=Timing(**timing), listeners=heard, **(settings | arguments))
        self.code: list[int] = []
        self._thread = threading.Thread(target=lambda: self.code.append(self.daemon.run(**(run or {}))))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.passes.gate.set()
        self.daemon.stop()
        self.ended()

    def ended(self) -> int:
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()
        return self.code[0]

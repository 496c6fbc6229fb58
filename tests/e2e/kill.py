"""A daemon that is killed at one of its writes, as a lost machine would end it."""

from __future__ import annotations

from tests.controlplane import eventually
from tests.e2e.daemon_process import DaemonProcess
from tests.e2e.fault_proxy import FaultProxy


class Kill:
    """Ends the daemon once, at the write of that number from now on: `before` it reaches the API server, or `after` it was done."""

    def __init__(self, proxy: FaultProxy, daemon: DaemonProcess, number: int, moment: str) -> None:
        self._daemon = daemon
        self._number = number
        self._at = (proxy.writes + number, moment)
        self._begun = self._done = False
        proxy.fault = self._fault

    def wait(self) -> None:
        eventually(lambda: self._done, within=90, what=f"write {self._number} is reached")

    def _fault(self, write: int, moment: str) -> int | None:
        if (write, moment) != self._at or self._begun:
            return None
        self._begun = True
        self._daemon.kill()
        self._done = True
        return 503

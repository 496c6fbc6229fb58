"""Runs a command as a process and says what it cost, by the operating system's own account."""

from __future__ import annotations

import os
import statistics
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Figures:
    """Seconds and MiB over several runs. wall and cpu are medians; least_* the best run, which noise cannot flatter."""

    wall: float
    cpu: float
    least_wall: float
    least_cpu: float
    peak: float


def measure(command: Sequence[str], *, runs: int = 5, expected: Sequence[int] = (0,)) -> Figures:
    """One run to warm the caches, then `runs` that count."""
    samples = [_once(command, expected) for _ in range(runs + 1)][1:]
    return Figures(
        wall=statistics.median(wall for wall, _, _ in samples),
        cpu=statistics.median(cpu for _, cpu, _ in samples),
        least_wall=min(wall for wall, _, _ in samples),
        least_cpu=min(cpu for _, cpu, _ in samples),
        peak=max(peak for _, _, peak in samples),
    )


def _once(command: Sequence[str], expected: Sequence[int]) -> tuple[float, float, float]:
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert process.stderr is not None
    errors = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in expected:
        message = f"{' '.join(command)} exited {process.returncode}: {errors.decode()[-2000:]}"
        raise RuntimeError(message)
    return wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024

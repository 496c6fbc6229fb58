"""How long a pass takes over many buffers when one workload changes: `python -m tests.perf.many_buffers`."""

from __future__ import annotations

import sys
import time
from statistics import median

from reconciler.__main__ import collect_rarely
from tests.fakes.embedded import LARGE, SMALL, Sandbox, buffer, node_claim, node_pool, workload, workload_ref

BUFFERS, WORKLOADS, NODES = 500, 300, 60
TURNS = 10
LEAST_SECONDS = 0.15
"""Of CPU, that the quickest pass may take: nearly twice what was measured, so that a pass of twice the cost fails."""


def seconds_of_a_pass(*, consolidate_after: str) -> list[tuple[float, dict[str, float]]]:
    """CPU seconds of each pass after one workload of many was scaled, with wall seconds by phase."""
    collect_rarely()
    sandbox = Sandbox(instance_types=(SMALL, LARGE))
    sandbox.cluster.apply(node_pool(consolidate_after=consolidate_after))
    for number in range(NODES):
        sandbox.cluster.apply(node_claim_of(number))
    sandbox.wait(10)
    for number in range(WORKLOADS):
        sandbox.cluster.apply(workload(f"app-{number}", replicas=1, cpu="100m"))
    for number in range(BUFFERS):
        of = f"app-{number % WORKLOADS}"
        sandbox.cluster.apply(buffer(f"buffer-{number}", of=of, replicas=1, percentage=20))
    cycle = sandbox.new_cycle()
    for _ in range(4):
        cycle.run("warm-up")
        sandbox.wait(30)
    found = []
    for turn in range(TURNS):
        sandbox.cluster.scale(workload_ref(f"app-{turn}"), 2)
        sandbox.wait(5)
        began = time.process_time()
        result = cycle.run("change")
        found.append((time.process_time() - began, dict(result.timings)))
        assert result.failure is None
    return found


def node_claim_of(number: int) -> dict[str, object]:
    return node_claim(f"n-{number}", "m-8x", cpu="7")


def held_buffers() -> bool:
    """Prints what a pass takes, where nodes are consolidated and where not; whether that is more than it may."""
    over = [consolidate_after for consolidate_after in ("Never", "30s") if _is_over(consolidate_after)]
    return bool(over)


def _is_over(consolidate_after: str) -> bool:
    found = seconds_of_a_pass(consolidate_after=consolidate_after)
    phases = {name: median(timings.get(name, 0.0) for _, timings in found) for name in found[0][1]}
    words = ", ".join(f"{name} {seconds * 1000:.0f}" for name, seconds in phases.items())
    times = [seconds for seconds, _ in found]
    over = min(times) > LEAST_SECONDS
    print(
        f"{BUFFERS} buffers over {WORKLOADS} workloads, one of them scaled, consolidateAfter {consolidate_after}: {min(times) * 1000:.0f} ms of CPU a pass at least, "
        f"{median(times) * 1000:.0f} at the median (ms by phase: {words}); held {LEAST_SECONDS * 1000:.0f} ms"
        f"{'  EXCEEDED' if over else ''}"
    )
    return over


if __name__ == "__main__":
    sys.exit(held_buffers())

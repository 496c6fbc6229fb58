"""The benchmark command: whole processes on inputs that are always the same, against recorded limits.

python -m tests.perf
python -m tests.perf --only-placement --large

For a placement of any other size, beside Karpenter's if wanted: `python -m tests.perf.placement mix 3000` (see there).
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.git_repository import GitRepository
from tests.perf import provisioning_requests
from tests.perf.large_cluster import write_buffers, write_documents, write_snapshot
from tests.perf.many_buffers import held_buffers
from tests.perf.measure import Figures, measure
from tests.perf.placement_limits import held_placement
from tests.perf.status_page import held_page
from tests.perf.surge_time import held_rehearsal

HEADROOM = str(Path(sys.executable).with_name("headroom"))
DOCUMENTS = 1000
BUFFERS, NODES, PODS = 50, 1000, 10_000


@dataclass(frozen=True, slots=True)
class Benchmark:
    """limit: seconds that the best run may take, about twice what was measured unless the product promises less;
    of: which figure it is held against; memory: MiB at most."""

    name: str
    run: Callable[[Path], Figures]
    limit: float
    of: str
    memory: float | None = None


def _help(_work: Path) -> Figures:
    return measure([HEADROOM, "--help"], runs=9)


def _validate(work: Path) -> Figures:
    write_documents(work / "documents", count=DOCUMENTS)
    return measure([HEADROOM, "validate", str(work / "documents")])


def _diff(work: Path) -> Figures:
    """A pull request that edits a hundredth of the documents."""
    write_snapshot(work / "snapshot", nodes=NODES, pods=PODS)
    compared = GitRepository(work / "compared")
    write_documents(compared.work, count=DOCUMENTS)
    compared.commit()
    for path in sorted(compared.work.glob("*.yaml"))[:10]:
        path.write_text(path.read_text().replace("replicas: 3\n", "replicas: 5\n"))
    command = [
        HEADROOM,
        "diff",
        "main..",
        f"--repo={compared.work}",
        f"--cluster=snapshot:{work / 'snapshot'}",
        "-o",
        "markdown",
    ]
    return measure(command, runs=3, expected=(0, 1))


def _plan(work: Path) -> Figures:
    write_snapshot(work / "snapshot", nodes=NODES, pods=PODS)
    write_buffers(work / "repository", count=BUFFERS)
    command = [
        HEADROOM,
        "plan",
        f"--repo={work / 'repository'}",
        f"--cluster=snapshot:{work / 'snapshot'}",
        "-o",
        "json",
    ]
    return measure(command, runs=3, expected=(0, 1))


def _of_module(name: str, *words: str, runs: int = 3) -> Callable[[Path], Figures]:
    """Runs a benchmark that is a module of its own."""
    return lambda _work: measure([sys.executable, "-m", f"tests.perf.{name}", *words], runs=runs)


def _of_requests(which: str) -> Callable[[Path], Figures]:
    return lambda _work: provisioning_requests.measured(which)


BENCHMARKS = (
    Benchmark("headroom --help", _help, limit=0.25, of="least_wall"),
    Benchmark(f"headroom validate, {DOCUMENTS:,} documents", _validate, limit=1.5, of="least_cpu"),
    Benchmark(
        f"headroom plan, {NODES:,} nodes, {PODS:,} pods, {BUFFERS} buffers, 144 instance types",
        _plan,
        limit=6.0,
        of="least_wall",
        memory=600,
    ),
    Benchmark(f"headroom diff, {DOCUMENTS:,} documents, {NODES:,} nodes", _diff, limit=5.5, of="least_cpu"),
    Benchmark(
        "a year of budgets hour by hour, 200 NodePools, 4 reasons, 50 budgets each",
        _of_module("budget_year"),
        limit=4.0,
        of="least_cpu",
    ),
    Benchmark(
        "the same as JSON, every change",
        _of_module("budget_year", "json", runs=1),
        limit=12.0,
        of="least_cpu",
        memory=200,
    ),
    Benchmark(
        "200 NodePools with budgets in local time, compiled for a month",
        _of_module("local_budgets"),
        limit=3.0,
        of="least_cpu",
    ),
    Benchmark("a pass that decides 1,000 provisioning requests", _of_requests("burst"), limit=4.0, of="least_cpu"),
    Benchmark(
        "a pass that plans a request of 4 × 16,384 pods, 500 nodes at a time",
        _of_requests("large"),
        limit=9.0,
        of="least_cpu",
    ),
)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.perf", epilog="For placements of any size: python -m tests.perf.placement mix PODS"
    )
    parser.add_argument("--only-placement", action="store_true", help="leave out the commands")
    parser.add_argument("--large", action="store_true", help="more pods than CI has time for")
    asked = parser.parse_args()
    failed = 0 if asked.only_placement else held_commands()
    failed += held_placement(large=asked.large)
    return int(failed > 0)


def held_commands() -> int:
    """How many limits were exceeded."""
    failed = 0
    print(f"{'':78} {'wall':>8} {'cpu':>8} {'peak':>9}  limit")
    for benchmark in BENCHMARKS:
        with tempfile.TemporaryDirectory() as work:
            figures = benchmark.run(Path(work))
        best = getattr(figures, benchmark.of)
        over = best > benchmark.limit or (benchmark.memory is not None and figures.peak > benchmark.memory)
        failed += over
        held = f"{benchmark.of.removeprefix('least_')} {benchmark.limit:g} s"
        memory = f", {benchmark.memory:g} MiB" if benchmark.memory else ""
        print(
            f"{benchmark.name:78} {figures.wall:6.3f} s {figures.cpu:6.3f} s {figures.peak:5.0f} MiB  "
            f"{held}{memory}{'  EXCEEDED' if over else ''}"
        )
    return failed + held_buffers() + held_rehearsal() + held_page()


if __name__ == "__main__":
    sys.exit(main())

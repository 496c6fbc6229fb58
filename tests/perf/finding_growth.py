"""CPU time by finding code, for n documents and for 2n that all have the problem: it must grow by less than 2.5.

python -m tests.perf.finding_growth           every code, 1,000 documents and 2,000; some minutes
python -m tests.perf.finding_growth CODE …    these codes alone
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial

import yaml

from reconciler.manifests.local_budgets import in_utc
from reconciler.manifests.repository.declared import read
from reconciler.manifests.schedule_findings import schedule_findings
from reconciler.model.findings import Finding
from tests.fakes.embedded import Sandbox
from tests.fakes.source import FakeSource
from tests.perf.finding_repositories import PLACE, PLANNED, REPOSITORIES, Files

DOCUMENTS = 1_000
MOST_GROWTH = 2.5
LEAST_SECONDS = 0.1
"""What takes less with twice the documents is not judged: its ratio is noise."""
NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
Run = Callable[[], tuple[Finding, ...]]


def of_documents(files: Files) -> tuple[Finding, ...]:
    """What `validate` and the reading stages of a pass find."""
    declared = read(files)
    local = in_utc(declared, NOW)
    return (*declared.findings, *local.findings, *schedule_findings(declared.schedules, NOW))


def prepared(name: str, count: int) -> Run:
    """What to measure, with everything made that is not to be measured."""
    if name in REPOSITORIES:
        return partial(of_documents, REPOSITORIES[name](count))
    of_git, of_cluster = PLANNED[name]
    sandbox = Sandbox()
    for number in range(count if of_cluster else 0):
        sandbox.cluster.apply(yaml.load(of_cluster.replace(PLACE, str(number)), Loader=yaml.CSafeLoader))
    files = {f"{number:06}.yaml": of_git.replace(PLACE, str(number)) for number in range(count if of_git else 0)}
    cycle = sandbox.new_cycle(FakeSource(files))
    sandbox.cluster.view()

    def planned() -> tuple[Finding, ...]:
        result = cycle.plan()
        assert result.failure is None, result.failure
        return result.required_plan.findings

    return planned


def seconds(name: str, count: int) -> float:
    """The least of two runs. Collections of garbage come now and then, and would be part of one run and not of another."""
    taken = []
    for _ in range(2):
        run = prepared(name, count)
        gc.collect()
        gc.disable()
        before = time.process_time()
        found = run()
        taken.append(time.process_time() - before)
        gc.enable()
        assert any(finding.code == name.partition(",")[0] for finding in found), name
    return min(taken)


def main(names: list[str]) -> int:
    too_much = []
    for name in names or [*REPOSITORIES, *PLANNED]:
        one, two = seconds(name, DOCUMENTS), seconds(name, 2 * DOCUMENTS)
        bad = two >= LEAST_SECONDS and two / one >= MOST_GROWTH
        too_much += [name] if bad else []
        sys.stdout.write(f"{name:40} {one:7.2f} s {two:7.2f} s  {two / one:4.2f}{'  too much' if bad else ''}\n")
        sys.stdout.flush()
    return int(bool(too_much))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

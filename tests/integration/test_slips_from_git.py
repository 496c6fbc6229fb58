"""Slips committed to a repository that a daemon follows: none of them releases a node or deletes an object.

`HEADROOM_SLIPS=0` commits all of them, one a file in each commit, which takes some minutes.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path

import pytest

from reconciler.model.changes import Action
from reconciler.model.findings import Severity
from reconciler.source.credentials import GitOptions
from reconciler.source.git import GitSource
from reconciler.stages.state import PassResult
from tests.fakes.embedded import Sandbox, workload
from tests.fakes.rendering import one_render_process
from tests.git_repository import GitRepository
from tests.properties.slips import SAMPLES, Slip, some_slips
from tests.properties.test_slips import outcome

__all__ = ["one_render_process"]

COUNT = int(os.environ.get("HEADROOM_SLIPS", "30"))
RESTARTED_EVERY = 10
FILES = {f"{index}.yaml": json.dumps(sample) for index, sample in enumerate(SAMPLES)}


class Daemon:
    """Passes over a real repository and the embedded cluster, until everything is as declared."""

    def __init__(self, folder: Path) -> None:
        self.sandbox = Sandbox()
        self.sandbox.cluster.apply(workload("web", replicas=3))
        self.repository = GitRepository(folder / "repository")
        self.repository.push(FILES)
        self._state = folder / "state"
        self.restart()
        self.passes(3, wait=60)
        self.passes(3, wait=320)  # until the room that a request has booked for ten minutes is given back

    def restart(self) -> None:
        """Another process takes over, which knows nothing but the cluster and the newest commit."""
        source = GitSource(self.repository.url, clock=self.sandbox.clock, options=GitOptions(state=self._state))
        self.cycle = self.sandbox.new_cycle(source)

    def passes(self, count: int, *, wait: float = 1) -> PassResult:
        for _ in range(count):
            self.sandbox.wait(wait)
            result = self.cycle.run("commit")
            assert result.failure is None, result.failure
        return result

    def kept(self) -> tuple[frozenset[str], frozenset[str]]:
        """The nodes that are held, and the objects of the inventory."""
        view = self.sandbox.cluster.view()
        held = frozenset(machine.name for machine in view.machines if machine.is_held)
        return held, frozenset(str(ref) for ref in view.inventory.members if ref in view.objects)


@pytest.fixture
def daemon(tmp_path: Path) -> Daemon:
    return Daemon(tmp_path)


def commits(slips: Sequence[Slip]) -> Iterator[list[Slip]]:
    """The slips, at most one in each file of a commit."""
    by_file = [[slip for slip in slips if slip.sample == index] for index in range(len(SAMPLES))]
    for row in zip_longest(*by_file):
        yield [slip for slip in row if slip is not None]


def taken(result: PassResult) -> list[str]:
    """What the plan takes away, now or later."""
    plan = result.required_plan
    deleted = [f"deletes {change.ref}" for change in plan.objects if change.action is Action.DELETE]
    gone = [
        f"takes {item.node or item.node_claim}: {item.reason}"
        for item in (*plan.node_claims.delete, *plan.node_claims.release)
    ]
    return [*deleted, *gone, *(f"deletes {ref} later" for ref in plan.waiting.refs)]


def test_no_slip_takes_a_node_or_an_object_away(daemon: Daemon) -> None:
    before = daemon.kept()
    assert len(before[0]) >= 3
    assert len(before[1]) >= 12
    slips = [slip for slip in some_slips(COUNT) if not slip.may_be_meant or outcome(slip) == "error"]
    always = {("dropped", ("metadata", "namespace"))}
    slips += [slip for slip in some_slips(0) if (slip.what, slip.path) in always or slip.is_about_a_reference]
    counts: Counter[str] = Counter()
    for number, row in enumerate(commits(slips)):
        daemon.repository.push(FILES | {f"{slip.sample}.yaml": slip.text for slip in row})
        if number % RESTARTED_EVERY == RESTARTED_EVERY - 1:
            daemon.restart()
        result = daemon.passes(1)
        about = [slip.name for slip in row]
        assert taken(result) == [], about
        counts.update(slip.what for slip in row)
        wrong = {
            item.position.file
            for item in result.required_plan.findings
            if item.position and item.severity is Severity.ERROR
        }
        assert wrong >= {f"{slip.sample}.yaml" for slip in row if outcome(slip) == "error"}, about
        assert daemon.kept() == before, about
    assert sum(counts.values()) == len(slips)

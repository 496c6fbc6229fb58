"""A commit whose passes end the process is skipped by the next process, which keeps what the last good commit declares."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from reconciler.model.declared import SourceTree
from reconciler.source.credentials import GitOptions
from reconciler.source.git import NEVER_ENDED, GitSource
from reconciler.source.state import LatestTree
from tests.fakes.clock import ManualClock
from tests.git_repository import GitRepository

GOOD, BAD, NEWER = {"pool.yaml": "good"}, {"pool.yaml": "bad"}, {"pool.yaml": "newer"}


class Killed(BaseException):
    """The process ended in the middle of a pass."""


class Machine:
    """Runs one process after the other, on one disk."""

    def __init__(self, folder: Path) -> None:
        self.repository = GitRepository(folder)
        self.clock = ManualClock()
        self._options = GitOptions(state=folder / "state")
        self.restart()

    def restart(self) -> None:
        source = GitSource(self.repository.url, clock=self.clock, options=self._options)
        self.source = LatestTree(source, passes=source.passes)

    def passes(self, *, killed: bool = False, stuck: bool = False) -> SourceTree:
        """Polls, and makes a pass."""
        self.clock.advance(5)
        self.source.poll()
        seen: list[SourceTree] = []

        def one_pass() -> None:
            seen.append(self.source.read())
            if stuck:
                self.source.stuck()
            if killed or stuck:
                raise Killed

        if killed or stuck:
            with pytest.raises(Killed):
                self._without_its_end(one_pass)
            self.restart()
        else:
            self.source.during(one_pass)
        return seen[0]

    @staticmethod
    def _without_its_end(one_pass: object) -> None:
        assert callable(one_pass)
        one_pass()


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    machine = Machine(tmp_path)
    machine.repository.push(GOOD)
    machine.passes()
    machine.repository.push(BAD)
    return machine


def content(tree: SourceTree) -> str:
    return tree.files["pool.yaml"].decode() if tree.files else ""


def reason(tree: SourceTree) -> str:
    return "" if tree.stalled is None else tree.stalled[0]


def test_what_the_watchdog_ended_is_skipped_by_the_next_process(machine: Machine) -> None:
    assert content(machine.passes(stuck=True)) == "bad"

    for _ in range(3):
        tree = machine.passes()
        assert (content(tree), reason(tree)) == ("good", NEVER_ENDED)
        machine.restart()
    assert tree.stalled is not None
    assert "until the watchdog ended the process" in tree.stalled[1]
    assert tree.reasons_to_keep, "nothing is deleted or released meanwhile"


def test_one_killed_process_is_tried_again_and_two_are_not(machine: Machine) -> None:
    """A machine may be switched off in the middle of any pass."""
    assert content(machine.passes(killed=True)) == "bad"
    assert content(machine.passes(killed=True)) == "bad"
    tree = machine.passes()
    assert (content(tree), reason(tree)) == ("good", NEVER_ENDED)
    assert tree.stalled is not None
    assert "killed 2 times" in tree.stalled[1]


def test_a_process_that_is_asked_to_stop_counts_for_nothing(machine: Machine) -> None:
    for _ in range(4):
        machine.source.poll()
        assert content(machine.source.read()) == "bad"
        machine.source.close()
        machine.restart()
    assert content(machine.passes()) == "bad"


def test_a_newer_commit_is_taken_at_once(machine: Machine) -> None:
    machine.passes(stuck=True)
    machine.passes()
    machine.repository.push(NEWER)

    tree = machine.passes()

    assert (content(tree), reason(tree)) == ("newer", "")


def test_a_copy_that_was_lost_keeps_no_newer_commit_from_being_taken(machine: Machine, tmp_path: Path) -> None:
    """The new copy lacks the last good commit, and noting that its pass had ended failed at each poll, over restarts too."""
    machine.passes()
    (copy,) = (tmp_path / "state").glob("*/repository.git")
    shutil.rmtree(copy)
    machine.repository.push(NEWER)
    machine.restart()
    tree = machine.passes()
    assert (content(tree), reason(tree)) == ("newer", "")


def test_a_person_may_ask_for_another_try_and_waits_longer_each_time(machine: Machine) -> None:
    machine.passes(stuck=True)
    for minutes in (1, 2, 4):
        machine.source.hasten()
        assert content(machine.passes()) == "good", "too early"
        machine.clock.advance(60 * minutes)
        machine.source.hasten()
        assert content(machine.passes(stuck=True)) == "bad"

    machine.clock.advance(3600)
    machine.source.hasten()
    tree = machine.passes()
    assert (content(tree), reason(tree)) == ("bad", ""), "this time it ends"
    machine.restart()
    assert content(machine.passes()) == "bad"


def test_without_an_earlier_commit_the_cluster_stays_as_it_is(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.repository.push(BAD)
    machine.passes(stuck=True)

    tree = machine.passes()

    assert (dict(tree.files), reason(tree)) == ({}, NEVER_ENDED)
    assert tree.reasons_to_keep

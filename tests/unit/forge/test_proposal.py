"""One pull request for a branch: opened, changed, closed; what a person has closed stays so."""

from __future__ import annotations

from dataclasses import replace

from reconciler.forge.pull_requests import Proposal, close_proposal, is_declined, keep_open
from tests.fakes.forge import MemoryForge

FIRST = Proposal("headroom/production", "main", "Capacity, rendered from main@1", "One.")
SECOND = replace(FIRST, title="Capacity, rendered from main@2", body="Two.")


def test_it_is_opened_once_and_then_changed() -> None:
    forge = MemoryForge()
    assert keep_open(forge, FIRST, changed=True) == 1
    assert keep_open(forge, replace(FIRST, body="Another minute."), changed=False) == 1
    assert forge.pull_request(1).body == "One."
    assert keep_open(forge, SECOND, changed=False) == 1
    assert (forge.pull_request(1).title, forge.pull_request(1).body) == (SECOND.title, "Two.")


def test_what_a_person_has_closed_is_not_opened_again_but_the_next_one_is() -> None:
    forge = MemoryForge()
    keep_open(forge, FIRST, changed=True)
    forge.close_pull_request(1)
    assert is_declined(forge, FIRST)
    assert keep_open(forge, FIRST, changed=True) is None
    assert len(forge.pulls) == 1
    assert not is_declined(forge, SECOND)
    assert keep_open(forge, SECOND, changed=True) == 2


def test_what_was_merged_is_proposed_again_when_time_has_changed_it() -> None:
    forge = MemoryForge()
    keep_open(forge, FIRST, changed=True)
    forge.pulls[1] = replace(forge.pulls[1], is_open=False, merged=True)
    assert not is_declined(forge, FIRST)
    assert keep_open(forge, FIRST, changed=True) == 2


def test_others_pull_requests_are_left_alone() -> None:
    forge = MemoryForge()
    forge.add_pull(1, branch=FIRST.branch, fork=True)
    forge.add_pull(2, branch="somebodys")
    forge.pulls[3] = replace(forge.add_pull(3, branch=FIRST.branch), base_branch="release")
    assert keep_open(forge, FIRST, changed=True) == 4
    close_proposal(forge, FIRST.branch, FIRST.base)
    assert [pull.is_open for _, pull in sorted(forge.pulls.items())] == [True, True, True, False]

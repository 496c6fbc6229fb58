"""What headroom keeps on a pull request: its comment, and its own pull request of proposals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from reconciler.forge.pull_requests import (
    MOST_BYTES,
    Mode,
    Posted,
    Proposal,
    Publication,
    Report,
    close_proposal,
    is_declined,
    keep_open,
    post,
    publish,
)
from reconciler.ports import Comment, CommitState, CommitStatus
from tests.fakes.forge import MemoryForge

START = datetime(2026, 11, 21, 8, tzinfo=UTC)


def report(minutes: int, body: str = "", *, commit: str = "c1", key: str = "clusters/production") -> Report:
    return Report(key, START + timedelta(minutes=minutes), commit, body or f"As of {minutes}.\n")


def at_once(_seconds: float) -> None:
    """No wait."""


def bodies(forge: MemoryForge) -> list[str]:
    return [comment.body.partition("\n")[2] for comment in forge.comments(1)]


def test_a_first_run_comments_and_the_next_ones_change_that() -> None:
    forge = MemoryForge()
    assert post(forge, 1, report(0), wait=at_once) is Posted.CREATED
    assert post(forge, 1, report(1), wait=at_once) is Posted.UPDATED
    assert bodies(forge) == ["As of 1.\n"]
    assert [comment.identity for comment in forge.comments(1)] == ["1"]


def test_the_same_words_about_the_same_commit_are_not_written_again() -> None:
    forge = MemoryForge()
    post(forge, 1, report(0, "Same.\n"), wait=at_once)
    before = forge.comments(1)
    assert post(forge, 1, report(1, "Same.\r\n\r\n"), wait=at_once) is Posted.UNCHANGED
    assert forge.comments(1) == before
    assert post(forge, 1, report(2, "Same.\n", commit="c2"), wait=at_once) is Posted.UPDATED


def test_an_older_run_says_nothing() -> None:
    forge = MemoryForge()
    post(forge, 1, report(5), wait=at_once)
    for mode in Mode:
        assert post(forge, 1, report(4), mode, wait=at_once) is Posted.STALE
    assert bodies(forge) == ["As of 5.\n"]


def test_comments_about_something_else_are_left_alone() -> None:
    forge = MemoryForge()
    forge.add_comment(1, "Thank you!")
    forge.add_comment(1, "<!-- headroom:report key=clusters/production at=never commit=c -->\nBroken marker.")
    post(forge, 1, report(0, key="clusters/staging"), wait=at_once)
    post(forge, 1, report(1), wait=at_once)
    post(forge, 1, report(2), wait=at_once)
    assert bodies(forge) == ["", "Broken marker.", "As of 0.\n", "As of 2.\n"]


def test_a_key_cannot_end_the_marker() -> None:
    forge = MemoryForge()
    for minute in range(2):
        post(forge, 1, report(minute, key="a --> <b>"), wait=at_once)
    (comment,) = forge.comments(1)
    assert comment.body.partition("\n")[0].count("-->") == 1


@pytest.mark.parametrize("first", [0, 1])
def test_two_runs_that_comment_at_once_leave_the_newer_words(first: int) -> None:
    """Both have seen no comment; the second one comments while the first settles."""
    forge = MemoryForge()
    post(forge, 1, report(first), wait=once(lambda: forge.add_comment(1, report(1 - first).text)))
    assert bodies(forge) == ["As of 1.\n"]


def once(action: Callable[[], object]) -> Callable[[float], None]:
    """Done in the first wait alone."""
    left = [action]

    def wait(_seconds: float) -> None:
        if left:
            left.pop()()

    return wait


def test_an_older_run_that_had_read_before_is_put_right() -> None:
    forge = MemoryForge()
    post(forge, 1, report(0), wait=at_once)
    read_before = forge.comments(1)[0]
    overwritten = once(lambda: forge.edit_comment(1, read_before, report(1).text))
    assert post(forge, 1, report(2), wait=overwritten) is Posted.UPDATED
    assert bodies(forge) == ["As of 2.\n"]


def test_a_comment_that_another_run_deletes_is_made_again() -> None:
    class Deleting(MemoryForge):
        def edit_comment(self, number: int, comment: Comment, body: str) -> None:
            self.delete_comment(number, comment)
            super().edit_comment(number, comment, body)

    forge = Deleting()
    forge.add_comment(1, report(0).text)
    post(forge, 1, report(1), wait=at_once)
    assert bodies(forge) == ["As of 1.\n"]


def test_an_earlier_comment_is_kept_hidden_or_deleted() -> None:
    left = {}
    for mode in (Mode.NEW, Mode.HIDE_AND_NEW, Mode.DELETE_AND_NEW):
        forge = MemoryForge()
        for minute in range(3):
            post(forge, 1, report(minute), mode, wait=at_once)
        left[mode] = (bodies(forge), sorted(forge.hidden))
    everything = ["As of 0.\n", "As of 1.\n", "As of 2.\n"]
    assert left[Mode.NEW] == (everything, [])
    assert left[Mode.HIDE_AND_NEW] == (everything, ["1", "2"])
    assert left[Mode.DELETE_AND_NEW] == (["As of 2.\n"], [])


def test_where_nothing_changes_a_comment_is_only_updated() -> None:
    forge = MemoryForge()
    assert post(forge, 1, report(0), only_if_there=True, wait=at_once) is Posted.SKIPPED
    assert forge.comments(1) == ()
    post(forge, 1, report(1), wait=at_once)
    assert post(forge, 1, report(2, "No change.\n"), only_if_there=True, wait=at_once) is Posted.UPDATED


def test_a_report_that_is_too_long_keeps_its_summary_whole() -> None:
    forge = MemoryForge()
    summary = "## Capacity\n\n**+3 nodes.**\n\n"
    post(forge, 1, report(0, f"{summary}<details>\n{'ü' * MOST_BYTES}\n</details>\n"), wait=at_once)
    (body,) = bodies(forge)
    assert body.startswith(summary)
    assert "too long for a comment" in body
    assert "<details" not in body
    assert len(forge.comments(1)[0].body.encode()) < 65_536


def test_nothing_is_said_of_a_commit_that_is_no_longer_the_head() -> None:
    forge = MemoryForge()
    forge.add_pull(commit="c2")
    status = CommitStatus("headroom/plan", CommitState.SUCCESS, "+1 nodes")
    assert publish(forge, 1, Publication(report(0), status), wait=at_once) is Posted.STALE
    assert forge.statuses == {}
    assert publish(forge, 1, Publication(report(0, commit="c2"), status), wait=at_once) is Posted.CREATED
    assert forge.statuses == {"c2": status}


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

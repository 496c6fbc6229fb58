"""What headroom keeps on a pull request: its comment, and its own pull request of proposals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.forge.pull_requests import (
    Mode,
    Posted,
    Proposal,
    Publication,
    Published,
    Report,
    is_declined,
    keep_open,
    publish,
    withdraw,
)
from reconciler.ports import Comment, CommitState, CommitStatus
from tests.fakes.forge import MemoryForge

START = datetime(2026, 11, 21, 8, tzinfo=UTC)


def report(minutes: int, body: str = "", *, commit: str = "c1", key: str = "clusters/production") -> Report:
    return Report(key, START + timedelta(minutes=minutes), commit, body or f"As of {minutes}.\n")


def at_once(_seconds: float) -> None:
    """No wait."""


STATUS = CommitStatus("headroom/plan", CommitState.SUCCESS, "+1 nodes")


def post(
    forge: MemoryForge,
    said: Report,
    mode: Mode = Mode.UPDATE,
    *,
    only_if_there: bool = False,
    wait: Callable[[float], None] = at_once,
) -> Posted | None:
    """What becomes of the comment, for a pull request whose head the report is about."""
    forge.add_pull(commit=said.commit)
    done = publish(forge, 1, Publication(said, STATUS), mode, only_if_there=only_if_there, wait=wait)
    assert done.failure is None
    return done.comment


def bodies(forge: MemoryForge) -> list[str]:
    return [comment.body.partition("\n")[2] for comment in forge.comments(1)]


def test_a_first_run_comments_and_the_next_ones_change_that() -> None:
    forge = MemoryForge()
    assert post(forge, report(0)) is Posted.CREATED
    assert post(forge, report(1)) is Posted.UPDATED
    assert bodies(forge) == ["As of 1.\n"]
    assert [comment.identity for comment in forge.comments(1)] == ["1"]


def test_the_same_words_about_the_same_commit_are_not_written_again() -> None:
    forge = MemoryForge()
    post(forge, report(0, "Same.\n"))
    before = forge.comments(1)
    assert post(forge, report(1, "Same.\r\n\r\n")) is Posted.UNCHANGED
    assert forge.comments(1) == before
    assert post(forge, report(2, "Same.\n", commit="c2")) is Posted.UPDATED


def test_an_older_run_says_nothing() -> None:
    forge = MemoryForge()
    post(forge, report(5))
    for mode in Mode:
        assert post(forge, report(4), mode) is Posted.STALE
    assert bodies(forge) == ["As of 5.\n"]


def test_comments_about_something_else_are_left_alone() -> None:
    forge = MemoryForge()
    forge.add_comment(1, "Thank you!")
    forge.add_comment(1, "<!-- headroom:report key=clusters/production at=never commit=c -->\nBroken marker.")
    post(forge, report(0, key="clusters/staging"))
    post(forge, report(1))
    post(forge, report(2))
    assert bodies(forge) == ["", "Broken marker.", "As of 0.\n", "As of 2.\n"]


def test_a_key_cannot_end_the_marker() -> None:
    forge = MemoryForge()
    for minute in range(2):
        post(forge, report(minute, key="a --> <b>"))
    (comment,) = forge.comments(1)
    assert comment.body.partition("\n")[0].count("-->") == 1


@pytest.mark.parametrize("first", [0, 1])
def test_two_runs_that_comment_at_once_leave_the_newer_words(first: int) -> None:
    """Both have seen no comment; the second one comments while the first settles."""
    forge = MemoryForge()
    post(forge, report(first), wait=once(lambda: forge.add_comment(1, report(1 - first).text)))
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
    post(forge, report(0))
    read_before = forge.comments(1)[0]
    overwritten = once(lambda: forge.edit_comment(1, read_before, report(1).text))
    assert post(forge, report(2), wait=overwritten) is Posted.UPDATED
    assert bodies(forge) == ["As of 2.\n"]


def test_a_comment_that_another_run_deletes_is_made_again() -> None:
    class Deleting(MemoryForge):
        def edit_comment(self, number: int, comment: Comment, body: str) -> None:
            self.delete_comment(number, comment)
            super().edit_comment(number, comment, body)

    forge = Deleting()
    forge.add_comment(1, report(0).text)
    post(forge, report(1))
    assert bodies(forge) == ["As of 1.\n"]


def test_an_earlier_comment_is_kept_hidden_or_deleted() -> None:
    left = {}
    for mode in (Mode.NEW, Mode.HIDE_AND_NEW, Mode.DELETE_AND_NEW):
        forge = MemoryForge()
        for minute in range(3):
            post(forge, report(minute), mode)
        left[mode] = (bodies(forge), sorted(forge.hidden))
    everything = ["As of 0.\n", "As of 1.\n", "As of 2.\n"]
    assert left[Mode.NEW] == (everything, [])
    assert left[Mode.HIDE_AND_NEW] == (everything, ["1", "2"])
    assert left[Mode.DELETE_AND_NEW] == (["As of 2.\n"], [])


def test_where_nothing_changes_a_comment_is_only_updated() -> None:
    forge = MemoryForge()
    assert post(forge, report(0), only_if_there=True) is Posted.SKIPPED
    assert forge.comments(1) == ()
    post(forge, report(1))
    assert post(forge, report(2, "No change.\n"), only_if_there=True) is Posted.UPDATED


def test_nothing_is_said_of_a_commit_that_is_no_longer_the_head() -> None:
    forge = MemoryForge()
    forge.add_pull(commit="c2")
    assert publish(forge, 1, Publication(report(0), STATUS), wait=at_once) == Published(comment=Posted.STALE)
    assert forge.statuses == {}
    assert post(forge, report(0, commit="c2")) is Posted.CREATED
    assert forge.statuses == {"c2": STATUS}


RUNS = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("abc"), st.integers(0, 3)), max_size=6)
"""Of each run: the pull request's head, the commit that it is of, and when it began."""


@given(RUNS)
def test_the_head_has_the_word_and_of_one_commit_the_later_run(runs: list[tuple[str, str, int]]) -> None:
    """A commit is not earlier than another by its hash, nor by the instant that was planned for."""
    forge = MemoryForge()
    said: tuple[str, int] | None = None
    for number, (head, commit, minute) in enumerate(runs):
        forge.add_pull(commit=head)
        status = replace(STATUS, description=str(number))
        done = publish(forge, 1, Publication(report(minute, f"Run {number}.\n", commit=commit), status), wait=at_once)
        is_stale = commit != head or (said is not None and said[0] == commit and said[1] > minute)
        assert (done.comment is Posted.STALE) == is_stale
        if not is_stale:
            said = (commit, minute)
            assert bodies(forge) == [f"Run {number}.\n"]
            assert forge.statuses[commit] == status
        assert (done.status, done.failure) == (not is_stale, None)


def test_a_run_whose_head_moves_meanwhile_leaves_the_newer_words() -> None:
    forge = MemoryForge()
    pushed = once(lambda: post(forge, report(1, commit="c2")))
    assert post(forge, report(5), wait=pushed) is Posted.CREATED
    assert bodies(forge) == ["As of 1.\n"]


FIRST = Proposal("headroom/production", "main", "Capacity, rendered from main@1", "One.")
SECOND = replace(FIRST, title="Capacity, rendered from main@2", body="Two.")


def test_it_is_opened_once_and_then_changed() -> None:
    forge = MemoryForge()
    assert keep_open(forge, FIRST, changed=True) == 1
    assert keep_open(forge, replace(FIRST, body="Another minute."), changed=False) == 1
    assert forge.texts[1] == "One."
    assert keep_open(forge, SECOND, changed=False) == 1
    assert (forge.pull_request(1).title, forge.texts[1]) == (SECOND.title, "Two.")


def test_what_a_person_has_closed_is_not_opened_again_but_the_next_one_is() -> None:
    forge = MemoryForge()
    keep_open(forge, FIRST, changed=True)
    forge.close_pull_request(1, title=FIRST.title)
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


def test_what_headroom_itself_has_closed_is_proposed_again_for_the_same_commit() -> None:
    """A schedule brings back what it took. It was never proposed again, as if a person had declined it."""
    forge = MemoryForge()
    keep_open(forge, FIRST, changed=True)
    withdraw(forge, FIRST.branch, FIRST.base)
    assert (forge.pull_request(1).is_open, forge.texts[1]) == (False, "One.")
    assert "nothing is left to propose" in forge.pull_request(1).title
    assert not is_declined(forge, FIRST)
    assert keep_open(forge, FIRST, changed=True) == 2


def test_others_pull_requests_are_left_alone() -> None:
    forge = MemoryForge()
    forge.add_pull(1, branch=FIRST.branch, fork=True)
    forge.add_pull(2, branch="somebodys")
    forge.pulls[3] = replace(forge.add_pull(3, branch=FIRST.branch), base_branch="release")
    assert keep_open(forge, FIRST, changed=True) == 4
    withdraw(forge, FIRST.branch, FIRST.base)
    assert [pull.is_open for _, pull in sorted(forge.pulls.items())] == [True, True, True, False]

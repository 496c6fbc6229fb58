"""Which passes the daemon prints for a person at a console."""

from __future__ import annotations

from reconciler.model.changes import Outcome, Plan
from reconciler.telemetry.passes import ShownPasses
from tests.fakes.passes import FakePass, wrote
from tests.plans import NOW, full_plan


def test_a_conflict_that_lasts_is_shown_once() -> None:
    """A conflict of field managers printed the whole plan at every pass."""
    shown = ShownPasses()
    conflict = FakePass(plan=full_plan(), change_set=wrote(Outcome.CONFLICT))
    assert [shown.is_news(conflict) for _ in range(3)] == [True, False, False]


def test_another_cause_is_shown_and_so_is_the_same_one_after_it_was_gone() -> None:
    shown = ShownPasses()
    conflict, refused = (
        FakePass(plan=full_plan(), change_set=wrote(outcome)) for outcome in (Outcome.CONFLICT, Outcome.REFUSED)
    )
    nothing = FakePass(plan=Plan(None, NOW), change_set=wrote())
    passes = (conflict, refused, nothing, conflict)
    assert [shown.is_news(one) for one in passes] == [True, True, False, True]


def test_a_pass_that_writes_something_is_shown_whatever_else_fails() -> None:
    shown = ShownPasses()
    partial = FakePass(plan=full_plan(), change_set=wrote(Outcome.APPLIED, Outcome.CONFLICT))
    assert [shown.is_news(partial) for _ in range(2)] == [True, True]


def test_a_plan_that_is_not_applied_is_shown() -> None:
    shown = ShownPasses()
    assert [shown.is_news(FakePass(plan=full_plan())) for _ in range(2)] == [True, True]

"""The result of a pass, in one word, and which passes a person at a console is shown."""

from __future__ import annotations

from datetime import UTC

from reconciler.model.changes import ApplyStatus, ChangeSet, Outcome
from reconciler.model.errors import Failure, Transient
from reconciler.ports import PassResult
from reconciler.report.plan.words import summary

GOOD = frozenset({"applied", "unchanged"})
Problems = frozenset[tuple[str, str, str]]
"""Writes that were not made: object, outcome and message of each."""
WORDS = ("applied", "unchanged", "partial", "invalid", "waiting", "stalled", "transient")


def result_of(result: PassResult) -> str:
    """applied, unchanged, partial (some writes failed), or its failure's type in lower case.

    A write that has to wait for another does not make the pass partial: the next pass makes it.
    """
    if result.failure is not None:
        return type(result.failure).__name__.lower()
    writes = result.change_set.results if result.change_set is not None else ()
    if any(not write.ok and write.outcome is not Outcome.SKIPPED for write in writes):
        return "partial"
    return "applied" if any(write.outcome is Outcome.APPLIED for write in writes) else "unchanged"


def failure_of(result: PassResult) -> Failure | None:
    """The pass's own failure, or a transient one if some of its writes should be tried again."""
    if result.failure is not None or result.change_set is None:
        return result.failure
    again = [write for write in result.change_set.results if write.outcome is Outcome.FAILED]
    if not again:
        return None
    return Transient(f"{len(again)} writes failed, the first of {again[0].write.ref}: {again[0].message}")


def wrote(result: PassResult) -> bool:
    writes = result.change_set.results if result.change_set is not None else ()
    return any(write.outcome is Outcome.APPLIED for write in writes)


def problems_of(change_set: ChangeSet) -> Problems:
    return frozenset((str(item.write.ref), item.outcome.value, item.message) for item in change_set.failures)


class ShownPasses:
    """A write that fails for the same cause at every pass, such as a conflict of field managers, is shown once."""

    def __init__(self) -> None:
        self._before: tuple[str, Problems] | None = None

    def is_news(self, result: PassResult) -> bool:
        """Whether it did something, or fails in another way than the pass before."""
        plan, change_set = result.plan, result.change_set
        if plan is None:
            return False
        if change_set is None:
            return True
        came_to = summary(plan, UTC), problems_of(change_set)
        before, self._before = self._before, came_to
        did = any(
            item.outcome is Outcome.APPLIED and not isinstance(item.write, ApplyStatus) for item in change_set.results
        )
        return plan.has_changes and (did or came_to != before)

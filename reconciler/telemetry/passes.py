"""The result of a pass, in one word."""

from __future__ import annotations

from reconciler.model.changes import ChangeSet, Outcome
from reconciler.model.errors import Failure, Transient
from reconciler.ports import PassResult

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

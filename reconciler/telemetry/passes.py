"""A pass in one word. Used by metrics and status, so that both count alike."""

from __future__ import annotations

from reconciler.model.changes import Outcome
from reconciler.ports import PassResult

GOOD = frozenset({"applied", "unchanged"})
WORDS = ("applied", "unchanged", "partial", "invalid", "waiting", "stalled", "transient")


def result_of(result: PassResult) -> str:
    """applied, unchanged, partial (some writes failed), or its failure's type in lower case.

    A write that has to wait for another one is part of a good pass: the next one makes it.
    """
    if result.failure is not None:
        return type(result.failure).__name__.lower()
    writes = result.change_set.results if result.change_set is not None else ()
    if any(not write.ok and write.outcome is not Outcome.SKIPPED for write in writes):
        return "partial"
    return "applied" if any(write.outcome is Outcome.APPLIED for write in writes) else "unchanged"

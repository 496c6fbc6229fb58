"""Results of passes, made by hand, for tests of what watches passes."""

from __future__ import annotations

from reconciler.model.changes import Apply, ChangeSet, Outcome, WriteResult
from reconciler.model.refs import ObjectRef


def wrote(*outcomes: Outcome) -> ChangeSet:
    """One write of a NodeClaim for each outcome."""
    return ChangeSet(
        tuple(
            WriteResult(Apply(ObjectRef("karpenter.sh", "NodeClaim", "", f"general-{number}"), {}), outcome)
            for number, outcome in enumerate(outcomes)
        )
    )

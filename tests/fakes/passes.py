"""Results of passes, made by hand, for tests of what watches passes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from reconciler.model.changes import Apply, ChangeSet, Outcome, Plan, WriteResult
from reconciler.model.errors import Failure
from reconciler.model.refs import ObjectRef
from reconciler.model.source import SourceTree
from reconciler.ports import PassResult


@dataclass(frozen=True, slots=True)
class FakePass(PassResult):
    """A pass that found nothing to do, unless told otherwise."""

    plan: Plan | None = None
    change_set: ChangeSet | None = None
    tree: SourceTree | None = None
    timings: Mapping[str, float] = field(default_factory=dict)
    failure: Failure | None = None
    settled: bool = False
    traces: tuple[str, ...] = ()


def wrote(*outcomes: Outcome) -> ChangeSet:
    """One write of a NodeClaim for each outcome."""
    return ChangeSet(
        tuple(
            WriteResult(Apply(ObjectRef("karpenter.sh", "NodeClaim", "", f"general-{number}"), {}), outcome)
            for number, outcome in enumerate(outcomes)
        )
    )

"""When another pass may decide otherwise who keeps a buffer."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from reconciler.model.autoscalers import ServingAutoscaler
from reconciler.model.changes import DemandOutcome
from reconciler.model.conditions import Condition, ConditionStatus
from reconciler.model.view import ClusterView, LiveObject
from reconciler.plan.buffers.keeping import keeping_edges
from tests.builders import buffer_ref, demand

NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)


def edges(
    written: float, *, native: bool = True, unplaced: int = 1, missing_since: float | None = None, answers: bool = False
) -> list[float]:
    """Seconds from noon; written: minutes before noon."""
    karpenter = ServingAutoscaler(
        "Karpenter", "karpenter", last_write=NOON - timedelta(minutes=written), answers=answers
    )
    asked = replace(demand(), autoscaler=karpenter)
    if answers:
        also = Condition("Fulfilment", ConditionStatus.FALSE, "AlsoServed", "")
        asked = replace(asked, conditions=(also,))
    if native:
        asked = replace(asked, fulfilment="native", holds_nodes=False)
    said = {"type": "Fulfilment", "reason": "ServedByAutoscaler"}
    if missing_since is not None:
        since = (NOON - timedelta(seconds=missing_since)).isoformat()
        said = {"type": "Fulfilment", "reason": "CapacityMissing", "lastTransitionTime": since}
    view = ClusterView(objects={buffer_ref(): LiveObject(buffer_ref(), {"status": {"conditions": [said]}})})
    found = keeping_edges([DemandOutcome(asked, 0, 0, unplaced)], view, NOON)
    return [(edge.at - NOON).total_seconds() for edge in found]


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (edges(0.5, native=False), [31]),
        (edges(2, native=False), []),
        (edges(2, native=False, answers=True), [481]),
        (edges(10, native=False, answers=True), [16]),
        (edges(9), [61, 122]),
        (edges(9, unplaced=0), []),
        (edges(11, missing_since=20), [41]),
        (edges(11), [61]),
    ],
    ids=[
        "to be corrected",
        "corrected by now",
        "to be asked whether it is there",
        "asked",
        "missing, not yet silent",
        "all there",
        "silent and missing",
        "missing as of now",
    ],
)
def test_a_pass_is_due_when_something_may_be_decided_otherwise(found: list[float], expected: list[float]) -> None:
    assert found == expected

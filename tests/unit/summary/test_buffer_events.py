"""Events about what a buffer's status begins to say."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from reconciler.model.changes import ApplyStatus, ChangeSet, DemandOutcome, Outcome, Plan, WriteResult
from reconciler.model.placement import UnplacedReason
from reconciler.model.view import ClusterView, LiveObject
from reconciler.summary.events import buffer_events
from tests.builders import buffer_ref, demand
from tests.unit.stages.test_fulfilment import World

NO_STOCK = UnplacedReason("offering not available", 1, "m-4x in zone-a on-demand")
AT_ITS_LIMIT = UnplacedReason("NodePool limit", 1, "NodePool general is at its cpu limit of 10")
Said = tuple[str, str, str]


def said(kind: str, words: Said | None) -> list[dict[str, Any]]:
    return [] if words is None else [dict(zip(("type", "status", "reason", "message"), (kind, *words), strict=True))]


def told(
    kind: str, before: Said | None, after: Said, *reasons: UnplacedReason, result: Outcome = Outcome.APPLIED
) -> list[tuple[str, str]]:
    ref = buffer_ref()
    outcome = DemandOutcome(demand(), 0, 0, 0, unplaced_reasons=reasons)
    plan = Plan(None, datetime(2026, 11, 22, tzinfo=UTC), demands=(outcome,))
    view = ClusterView(objects={ref: LiveObject(ref, {"status": {"conditions": said(kind, before)}})})
    write = ApplyStatus(ref, {"conditions": said(kind, after)})
    found = buffer_events(plan, ChangeSet((WriteResult(write, result),)), view)
    return [(event.kind, event.reason) for event in found]


FULL: Said = ("True", "FitsExistingCapacity", "all 3 chunks have room")
SHORT: Said = ("False", "RequiresNewCapacity", "of 3 chunks, 1 on nodes to be made")
EMPTY: Said = ("False", "BufferEmpty", "the buffer asks for nothing")


@pytest.mark.parametrize(
    ("before", "after", "reasons", "expected"),
    [
        (SHORT, FULL, (), [("Normal", "Full")]),
        (None, FULL, (), [("Normal", "Full")]),
        (FULL, (*FULL[:2], "all 4 chunks have room"), (), []),
        (FULL, SHORT, (), [("Normal", "Short")]),
        (EMPTY, SHORT, (), [("Normal", "Short")]),
        (SHORT, (*SHORT[:2], "of 3 chunks, 1 on nodes that are on their way"), (), []),
        (SHORT, (*SHORT[:2], "of 3 chunks, 1 without a place"), (NO_STOCK,), [("Warning", "OutOfStock")]),
        (FULL, (*SHORT[:2], "of 3 chunks, 1 without a place"), (AT_ITS_LIMIT,), [("Warning", "NodePoolLimit")]),
        (SHORT, SHORT, (NO_STOCK,), []),
        (FULL, EMPTY, (), []),
    ],
)
def test_full_short_and_out_of_stock(
    before: Said | None, after: Said, reasons: tuple[UnplacedReason, ...], expected: list[tuple[str, str]]
) -> None:
    assert told("Provisioning", before, after, *reasons) == expected


def test_a_buffer_that_is_not_ready_any_more_tells_why_once() -> None:
    ready: Said = ("True", "Resolved", "3 chunks")
    gone: Said = ("False", "PodTemplateNotFound", "PodTemplate/shop/web does not exist")
    assert told("ReadyForProvisioning", ready, gone) == [("Warning", "NotReady")]
    assert told("ReadyForProvisioning", gone, gone) == []
    assert told("ReadyForProvisioning", gone, ready) == []


def test_who_keeps_it_is_told_once() -> None:
    served: Said = ("True", "ServedByAutoscaler", "Karpenter serves this buffer")
    assert told("Fulfilment", None, served) == [("Normal", "StandingDown")]
    assert told("Fulfilment", served, served) == []
    missing: Said = ("False", "CapacityMissing", "")
    assert told("Fulfilment", served, missing) == [("Warning", "CapacityMissing")]


def test_what_was_not_written_is_not_told() -> None:
    assert told("Provisioning", SHORT, FULL, result=Outcome.REFUSED) == []


def test_a_buffer_that_fills_and_is_used_tells_so() -> None:
    world = World()
    world.run()
    world.scale(4)
    world.run()
    counts = {item.event.reason: item.count for item in world.sandbox.cluster.events if item.event.ref == buffer_ref()}
    assert (counts["Short"], counts["Full"]) == (2, 2)

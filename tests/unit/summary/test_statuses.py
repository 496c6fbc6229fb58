"""Statuses that need no second look."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from reconciler.model.autoscalers import CORRECTED_AFTER, ServingAutoscaler
from reconciler.model.changes import ApplyStatus, DemandOutcome, Plan
from reconciler.model.conditions import Condition, ConditionStatus
from reconciler.model.remembered import PassCache
from reconciler.model.view import ClusterView, LiveObject
from reconciler.summary.statuses import buffer_status, status_writes
from tests import builders

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
FULL = Condition("Provisioning", ConditionStatus.TRUE, "FitsExistingCapacity", "all 3 chunks have room")
LESS = Condition("Provisioning", ConditionStatus.FALSE, "RequiresNewCapacity", "of 3 chunks, 1 without a place")


def outcome(condition: Condition = FULL, autoscaler: ServingAutoscaler | None = None) -> DemandOutcome:
    demand = replace(builders.demand(count=3), autoscaler=autoscaler)
    return DemandOutcome(demand, on_existing=3, on_new=0, unplaced=0, conditions=(condition,))


def live(status: Mapping[str, object]) -> LiveObject:
    return LiveObject(builders.buffer_ref(), {"metadata": {"name": "web"}, "spec": {"replicas": 3}, "status": status})


def settled() -> LiveObject:
    """An object that says what came out."""
    write = buffer_status(outcome(), live({}), NOON)
    assert write is not None
    return live(write.status)


def said(cache: PassCache, result: DemandOutcome, on: LiveObject, hours: int) -> ApplyStatus | None:
    now = NOON + timedelta(hours=hours)
    writes = status_writes(Plan(None, now, (result,)), ClusterView(objects={on.ref: on}), now, cache)
    return next(iter(writes), None)


def test_another_outcome_or_object_is_looked_at_again() -> None:
    memory, there = PassCache(), settled()
    assert said(memory, outcome(), there, 0) is None
    assert said(memory, outcome(LESS), there, 1) is not None
    assert said(memory, outcome(), there, 2) is None
    assert said(memory, outcome(), live({}), 3) is not None
    assert said(memory, outcome(), live({}), 4) is not None, "as long as it is not there"


def test_beside_an_autoscaler_time_alone_decides() -> None:
    """What it wrote is corrected after a while, and not before."""
    wrote = ServingAutoscaler("Karpenter", conditions=frozenset({"Provisioning"}), last_write=NOON)
    memory = PassCache()
    theirs = replace(live({"replicas": 2}), managers={"karpenter": frozenset({"status.replicas"})})
    assert said(memory, outcome(autoscaler=wrote), theirs, 0) is None
    assert timedelta(hours=1) > CORRECTED_AFTER
    assert said(memory, outcome(autoscaler=wrote), theirs, 1) is not None

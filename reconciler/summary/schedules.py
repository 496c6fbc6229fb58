"""The status of a MetricsProducer as its object should show it (the Karpenter design "Scheduled Capacity")."""

from __future__ import annotations

from typing import Any

from reconciler.model.changes import ApplyStatus, ScheduleOutcome
from reconciler.model.view import LiveObject
from reconciler.summary.buffers import time_text
from reconciler.summary.owners import is_anothers

_FIELDS = ("currentValue", "nextValue", "nextValueTime", "observedGeneration")


def schedule_status(outcome: ScheduleOutcome, live: LiveObject) -> ApplyStatus | None:
    """The write that brings the schedule's value up to date; None if it is, or if another controller writes the status.

    nextValue and nextValueTime are absent when nothing changes any more.
    """
    if is_anothers(live, _FIELDS):
        return None
    after: dict[str, Any] = {"currentValue": outcome.current_value}
    if outcome.next_value is not None and outcome.next_value_time is not None:
        after |= {"nextValue": outcome.next_value, "nextValueTime": time_text(outcome.next_value_time)}
    generation = (live.body.get("metadata") or {}).get("generation")
    if generation is not None:
        after["observedGeneration"] = generation
    before = live.body.get("status") or {}
    return None if all(after.get(name) == before.get(name) for name in _FIELDS) else ApplyStatus(live.ref, after)

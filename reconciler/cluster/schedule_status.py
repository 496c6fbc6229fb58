"""The status of a MetricsProducer as its object should show it (seed 004)."""

from __future__ import annotations

from typing import Any

from reconciler.cluster.decoding.managers import is_own
from reconciler.cluster.status import time_text
from reconciler.model.changes import ApplyStatus, ScheduleOutcome
from reconciler.model.view import LiveObject

_FIELDS = ("currentValue", "nextValue", "nextValueTime", "observedGeneration")


def schedule_status(outcome: ScheduleOutcome, live: LiveObject) -> ApplyStatus | None:
    """The write that makes the status say what the schedule is worth; None when it does, or when another writes it.

    nextValue and nextValueTime are absent when nothing changes any more.
    """
    if any(
        path == "status" or path.startswith("status.")
        for manager, paths in live.managers.items()
        if not is_own(manager)
        for path in paths
    ):
        return None
    after: dict[str, Any] = {"currentValue": outcome.current_value}
    if outcome.next_value is not None and outcome.next_value_time is not None:
        after |= {"nextValue": outcome.next_value, "nextValueTime": time_text(outcome.next_value_time)}
    generation = (live.body.get("metadata") or {}).get("generation")
    if generation is not None:
        after["observedGeneration"] = generation
    before = live.body.get("status") or {}
    return None if all(after.get(name) == before.get(name) for name in _FIELDS) else ApplyStatus(live.ref, after)

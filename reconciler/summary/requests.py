"""The status of a ProvisioningRequest as its object should show it."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from reconciler.model.changes import ApplyStatus, DemandOutcome
from reconciler.model.view import LiveObject
from reconciler.summary.buffers import condition_document


def request_status(outcome: DemandOutcome, live: LiveObject, now: datetime) -> ApplyStatus | None:
    """The write that brings the conditions up to date; None if they are.

    Earlier conditions are written again, since an apply without a field gives up its ownership.
    """
    before = (live.body.get("status") or {}).get("conditions") or ()
    generation = (live.body.get("metadata") or {}).get("generation")
    known = {str(item.get("type")): item for item in before}
    after = []
    for condition in outcome.conditions:
        there = known.get(condition.type, {})
        same = (there.get("status"), there.get("reason", ""), there.get("message", "")) == (
            condition.status.value,
            condition.reason,
            condition.message,
        )
        after.append(dict(there) if same else condition_document(condition, generation, before, now))
    status: dict[str, Any] = {"conditions": after}
    same = after == [known[name] for name in sorted(known)]
    details = {} if outcome.demand.request is None else dict(outcome.demand.request.details)
    if details:
        status["provisioningClassDetails"] = details
        same = same and details == (live.body.get("status") or {}).get("provisioningClassDetails")
    return None if same else ApplyStatus(live.ref, status)

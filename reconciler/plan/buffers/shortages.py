"""Since when a buffer lacks capacity. Its object says so, so that a restart does not make an old shortage look new."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from reconciler.model.autoscalers import condition_of, time_of
from reconciler.model.changes import DemandOutcome
from reconciler.model.view import ClusterView

_SHORT = "RequiresNewCapacity"


def with_shortages(outcomes: Iterable[DemandOutcome], view: ClusterView) -> list[DemandOutcome]:
    """Outcomes of buffers that were short when their status was last written, with the time since when."""
    return [_with_shortage(outcome, view) for outcome in outcomes]


def _with_shortage(outcome: DemandOutcome, view: ClusterView) -> DemandOutcome:
    if outcome.demand.is_pending_pod or outcome.demand.request is not None:
        return outcome
    before = condition_of(view.objects.get(outcome.demand.ref), "Provisioning")
    since = time_of(before.get("lastTransitionTime")) if before.get("reason") == _SHORT else None
    return outcome if since is None else replace(outcome, short_since=since)

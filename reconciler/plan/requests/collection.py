"""Requests from Git that have ended or lost their document. They are never applied again, and deleted after a while."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime

from reconciler.model.changes import Action, ObjectChange
from reconciler.model.declared import Declared
from reconciler.model.demand import REQUEST_KIND, Demand
from reconciler.model.provisioning_requests import RequestRules
from reconciler.model.quantity import format_duration
from reconciler.model.request_records import RequestRecord, record_name
from reconciler.model.view import ClusterView
from reconciler.plan.objects.prune import reason_to_keep
from reconciler.plan.requests.requests import RequestPlan
from reconciler.requests.life import cancelled


def still_to_run(declared: Declared, requests: RequestPlan) -> Declared:
    """Leaves out documents of requests that have ended: they must not run again.

    The document of a request that never had an object stays: only an object can tell its user how it ended.
    """
    ended = {ref for ref, decision in requests.decisions.items() if decision.record.ended and decision.record.uid}
    if not ended:
        return declared
    return replace(declared, manifests=tuple(item for item in declared.manifests if item.ref not in ended))


def remembered(requests: RequestPlan, changes: Iterable[ObjectChange], now: datetime) -> Mapping[str, RequestRecord]:
    """The records, with those cancelled whose object was deleted while they were under way. Removing the document ends a request for good,
    as deleting the object does. now: by the cluster's clock."""
    gone = {
        record_name(change.ref.namespace, change.ref.name)
        for change in changes
        if change.ref.kind == REQUEST_KIND and change.action is Action.DELETE
    }
    return {
        name: cancelled(record, now) if name in gone and record.ended is None else record
        for name, record in requests.records.items()
    }


def collect(
    demands: Iterable[Demand],
    requests: RequestPlan,
    view: ClusterView,
    now: datetime,
    *,
    rules: RequestRules,
    applyset_id: str,
) -> tuple[ObjectChange, ...]:
    """Deletions of objects that headroom applied and whose request ended long ago. now: by the cluster's clock."""
    due = []
    for demand in demands:
        decision = requests.decisions.get(demand.ref)
        if decision is None or demand.request is None or not demand.request.declared:
            continue
        ended = decision.record.ended
        if ended is None or now < ended + rules.kept_for or demand.ref not in view.inventory.members:
            continue
        live = view.objects.get(demand.ref)
        if live is not None and reason_to_keep(live, frozenset(), applyset_id) is None:
            reason = f"it ended {format_duration(rules.kept_for)} ago"
            due.append(ObjectChange(demand.ref, Action.DELETE, reason=reason))
    return tuple(due)

"""How far a ProvisioningRequest is, by its record and its conditions, and what ends it by the clock."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from reconciler.model.conditions import ConditionStatus
from reconciler.model.durations import format_duration
from reconciler.model.nodes import ATTEMPT_LABEL
from reconciler.model.provisioning_requests import (
    ACCEPTED,
    BOOKING_EXPIRED,
    CANCELLED,
    FAILED,
    PROVISIONED,
    TERMINAL,
    Ending,
    Phase,
    ProvisioningRequest,
    RequestKind,
    RequestRules,
    RequestState,
)
from reconciler.model.quantity import whole_number
from reconciler.model.request_parameters import VALID_UNTIL, default_validity, validity
from reconciler.model.request_records import RequestRecord, record_name
from reconciler.model.view import ClusterView


def spec_digest(request: ProvisioningRequest) -> str:
    """Changes with the spec, to notice that the document of a request that ran was edited."""
    sets = [[item.pod_template, item.count] for item in request.pod_sets]
    text = json.dumps([request.class_name, sets, list(request.parameters)], separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def attempts_in(view: ClusterView) -> dict[str, int]:
    """By uid of a request, the last attempt of which there is a NodeClaim."""
    found: dict[str, int] = {}
    for claim in view.node_claims:
        uid, _, number = (claim.label(ATTEMPT_LABEL) or "").rpartition(".")
        found[uid] = max(found.get(uid, 0), whole_number(number) or 0)
    found.pop("", None)
    return found


def record_of(
    request: ProvisioningRequest,
    records: Mapping[str, RequestRecord],
    attempts: Mapping[str, int],
    now: datetime,
) -> RequestRecord:
    """The inventory's record if it is about this very object. Otherwise one is made from the conditions, as for a request that is seen for
    the first time."""
    known = records.get(record_name(request.ref.namespace, request.ref.name))
    digest = spec_digest(request)
    if known is not None and _is_about(known, request, digest):
        return known
    fresh = RequestRecord(uid=request.uid, spec=digest)
    times = dict(request.status_times)
    for condition_type in TERMINAL:
        if request.is_true(condition_type):
            return replace(fresh, outcome=condition_type, ended=_time(times.get(condition_type)) or now)
    if request.is_true(PROVISIONED):
        return replace(fresh, provisioned=_time(times.get(PROVISIONED)) or now)
    attempt = attempts.get(request.uid, 0)
    return replace(fresh, attempt=attempt, under_way=attempt > 0)


def _is_about(record: RequestRecord, request: ProvisioningRequest, digest: str) -> bool:
    """A request from Git that has ended does not run again when somebody recreates its object."""
    if not request.uid or record.uid == request.uid:
        return True
    return request.position is not None and record.ended is not None and record.spec == digest


def valid_until(request: ProvisioningRequest, kind: RequestKind, rules: RequestRules) -> datetime | None:
    """None while the request has no object in the cluster: its time has not begun."""
    created = _time(request.created)
    if created is None:
        return None
    asked = validity(request.parameter(VALID_UNTIL))
    return created + (asked or default_validity(kind, rules))


def phase_of(
    state: RequestState, pods: int, now: datetime, rules: RequestRules, *, complete: bool
) -> tuple[Phase, Ending | None]:
    """pods: of all pod sets together. complete: the cluster was read in full, so that what is not there is gone."""
    record = state.record
    if record.ended is not None:
        return Phase.ENDED, None
    if state.deleting or (record.uid and not state.exists and complete):
        return Phase.ENDING, Ending(FAILED, CANCELLED, "the request was deleted in the cluster")
    if record.provisioned is not None:
        return _booking(record, pods, now, rules)
    if state.valid_until is not None and now >= state.valid_until:
        return Phase.ENDING, Ending(FAILED, "Expired", _too_late(state))
    if record.retry_at is not None and now < record.retry_at:
        return Phase.BACKING_OFF, None
    return Phase.WAITING, None


def _booking(record: RequestRecord, pods: int, now: datetime, rules: RequestRules) -> tuple[Phase, Ending | None]:
    if sum(record.consumed) >= pods:
        message = f"all {pods:,} pods have a node"
        return Phase.ENDING, Ending(BOOKING_EXPIRED, "CapacityBookingConsumed", message)
    if record.provisioned is not None and now >= record.provisioned + rules.booked_for:
        message = f"{sum(record.consumed):,} of {pods:,} pods came within {format_duration(rules.booked_for)}"
        return Phase.ENDING, Ending(BOOKING_EXPIRED, "CapacityReservationTimeExpired", message)
    return Phase.BOOKED, None


def _too_late(state: RequestState) -> str:
    """Also says what stood in its way last, by its conditions. A request that was not accepted was never tried."""
    known = {item.type: item for item in state.status_conditions}
    accepted, provisioned = known.get(ACCEPTED), known.get(PROVISIONED)
    if accepted is not None and accepted.status is ConditionStatus.FALSE:
        return f"it could not be accepted in time: {accepted.message}"
    message = "the capacity was not there in time"
    return message if provisioned is None or not provisioned.message else f"{message}: {provisioned.message}"


def _time(text: str | None) -> datetime | None:
    """The API server writes RFC 3339. A snapshot may have other text, which counts as no time."""
    try:
        return datetime.fromisoformat(text) if text else None
    except ValueError:
        return None

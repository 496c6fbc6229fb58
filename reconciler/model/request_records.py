"""What the inventory remembers of ProvisioningRequests, so that none runs twice."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reconciler.model.errors import Invalid
from reconciler.model.remembered import Moment, Record, Unreadable, restored

REQUESTS_KEY = "provisioningRequests"
"""The key in the inventory's memory: records by `namespace/name`."""


class RequestRecord(Record, frozen=True):
    """The record of one request. Times are the cluster's.

    uid: its object's. spec: a digest of the spec that was run. attempt: the number of the last attempt, 0 for none. under_way: that
    attempt has neither succeeded nor failed yet. began: when it began. retry_at: no attempt before then. provisioned: since when.
    consumed: by pod set, how many of its pods have come. present: how many of those existed in the last pass; empty if all did.
    lost: of a booking, for how many pods there is no room now. located: by node, how many chunks of each pod set are booked there, except on nodes whose annotation says so.
    outcome: the reason why it ended, "" while it has not. ended: when.
    """

    uid: str
    spec: str
    attempt: int = 0
    under_way: bool = False
    began: Moment | None = None
    retry_at: Moment | None = None
    provisioned: Moment | None = None
    consumed: tuple[int, ...] = ()
    present: tuple[int, ...] = ()
    lost: int = 0
    located: Mapping[str, tuple[int, ...]] = {}
    outcome: str = ""
    ended: Moment | None = None

    @property
    def attempt_label(self) -> str:
        """The label's value on the NodeClaims of its last attempt. It identifies the attempt, also after a restart."""
        return f"{self.uid}.{self.attempt}"


def read_records(memory: Mapping[str, Any]) -> dict[str, RequestRecord]:
    """Records by `namespace/name`. Raises `Invalid` if one cannot be read, since without it a request would run again."""
    try:
        return restored(memory.get(REQUESTS_KEY) or {}, dict[str, RequestRecord])
    except Unreadable as error:
        raise Invalid(
            f"{REQUESTS_KEY} in the inventory is not what headroom wrote ({error})",
            hint="repair the record in the inventory's ConfigMap, or remove it if its request may run again",
        ) from error


def record_name(namespace: str, name: str) -> str:
    """The key of a request's record."""
    return f"{namespace}/{name}"

"""What the inventory remembers of ProvisioningRequests, so that none runs twice."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from reconciler.model.errors import Invalid

REQUESTS_KEY = "provisioningRequests"
"""The key in the inventory's memory: records by `namespace/name`."""


@dataclass(frozen=True, slots=True)
class RequestRecord:
    """The record of one request. Times are the cluster's.

    uid: its object's. spec: a digest of the spec that was run. attempt: the number of the last attempt, 0 for none. under_way: that
    attempt has neither succeeded nor failed yet. began: when it began. retry_at: no attempt before then. provisioned: since when.
    consumed: by pod set, how many of its pods have come. present: how many of those existed in the last pass; empty if all did.
    lost: of a booking, for how many pods there is no room now. located: by node, how many chunks of each pod set are booked there, except on nodes whose annotation says so.
    outcome: the reason why it ended, "" while it has not. ended: when.
    """

    uid: str = ""
    spec: str = ""
    attempt: int = 0
    under_way: bool = False
    began: datetime | None = None
    retry_at: datetime | None = None
    provisioned: datetime | None = None
    consumed: tuple[int, ...] = ()
    present: tuple[int, ...] = ()
    lost: int = 0
    located: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    outcome: str = ""
    ended: datetime | None = None

    @property
    def attempt_label(self) -> str:
        """The label's value on the NodeClaims of its last attempt. It identifies the attempt, also after a restart."""
        return f"{self.uid}.{self.attempt}"

    def as_json(self) -> dict[str, Any]:
        """The record as JSON values, without defaults."""
        values: dict[str, Any] = {"uid": self.uid, "spec": self.spec}
        if self.ended is not None:
            return values | {"outcome": self.outcome, "ended": self.ended.isoformat()}
        told = {
            "attempt": self.attempt,
            "underWay": self.under_way,
            "began": self.began and self.began.isoformat(),
            "retryAt": self.retry_at and self.retry_at.isoformat(),
            "provisioned": self.provisioned and self.provisioned.isoformat(),
            "consumed": list(self.consumed) if any(self.consumed) else (),
            "present": list(self.present),
            "lost": self.lost,
            "located": {node: list(counts) for node, counts in sorted(self.located.items())},
        }
        return values | {name: value for name, value in told.items() if value}

    @classmethod
    def parse(cls, value: Mapping[str, Any]) -> RequestRecord:
        """Reads a record. Raises `KeyError`, `TypeError` or `ValueError`."""
        return cls(
            uid=str(value["uid"]),
            spec=str(value["spec"]),
            attempt=int(value.get("attempt", 0)),
            under_way=bool(value.get("underWay", False)),
            began=_time(value.get("began")),
            retry_at=_time(value.get("retryAt")),
            provisioned=_time(value.get("provisioned")),
            consumed=tuple(map(int, value.get("consumed", ()))),
            present=tuple(map(int, value.get("present", ()))),
            lost=int(value.get("lost", 0)),
            located={str(node): tuple(map(int, counts)) for node, counts in dict(value.get("located", {})).items()},
            outcome=str(value.get("outcome", "")),
            ended=_time(value.get("ended")),
        )


def _time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def read_records(memory: Mapping[str, Any]) -> dict[str, RequestRecord]:
    """Records by `namespace/name`. Raises `Invalid` if one cannot be read, since without it a request would run again."""
    written = memory.get(REQUESTS_KEY) or {}
    try:
        return {str(name): RequestRecord.parse(value) for name, value in dict(written).items()}
    except (KeyError, TypeError, ValueError) as error:
        raise Invalid(
            f"{REQUESTS_KEY} in the inventory is not what headroom wrote ({error!r})",
            hint="repair the record in the inventory's ConfigMap, or remove it if its request may run again",
        ) from error


def records_memory(records: Mapping[str, RequestRecord]) -> dict[str, Any]:
    """The records as JSON values for the inventory; empty where there are none."""
    if not records:
        return {}
    return {REQUESTS_KEY: {name: record.as_json() for name, record in sorted(records.items())}}


def record_name(namespace: str, name: str) -> str:
    """The key of a request's record."""
    return f"{namespace}/{name}"

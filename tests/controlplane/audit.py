"""The API server's audit log: who did what, in order.

Written by the API server with the policy below, read through `ControlPlane.audit_events` and
`writes_by`, with which tests count what a user (headroom, above all) reads and writes.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

WRITE_VERBS = frozenset({"create", "update", "patch", "delete", "deletecollection"})

# These are `create` by their verb but questions by their nature: nothing is stored.
_QUESTIONS = frozenset(
    {
        "localsubjectaccessreviews",
        "selfsubjectaccessreviews",
        "selfsubjectreviews",
        "selfsubjectrulesreviews",
        "serviceaccounts/token",
        "subjectaccessreviews",
        "tokenreviews",
    }
)


def policy(quiet_users: tuple[str, ...]) -> dict[str, Any]:
    """Audit policy: everything, but for the steady noise that the given users make."""
    leases = [{"group": "coordination.k8s.io", "resources": ["leases"]}]
    return {
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived"],
        "rules": [
            {"level": "None", "users": list(quiet_users), "resources": leases},
            {"level": "None", "nonResourceURLs": ["/healthz*", "/livez*", "/readyz*"]},
            # Who leads, and until when, stands in the object only.
            {"level": "RequestResponse", "resources": leases},
            {"level": "Metadata"},
        ],
    }


@dataclass(frozen=True)
class AuditEvent:
    """One request to the API server that has been answered (a watch: that has begun)."""

    # The server's clock, RFC 3339 with microseconds: when the request came in, and when it was answered.
    received: str
    at: str
    user: str
    verb: str
    # Plural with the subresource, as in RBAC rules ("nodeclaims/status"); "" for other URLs.
    resource: str
    group: str
    namespace: str
    name: str
    code: int
    dry_run: bool
    uri: str
    user_agent: str
    # What was answered, for Leases only.
    body: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_write(self) -> bool:
        """Whether it was meant to change something: no read, no question, no dry run."""
        return self.verb in WRITE_VERBS and self.resource not in _QUESTIONS and not self.dry_run


class AuditLog:
    """The log file of one API server, across its restarts."""

    def __init__(self, path: Path) -> None:
        """The file need not exist yet."""
        self.path = path

    def mark(self) -> int:
        """The present end of the log; hand it to `events` for what comes after."""
        return self.path.stat().st_size if self.path.exists() else 0

    def events(self, since: int = 0) -> list[AuditEvent]:
        """All events from a mark on."""
        if not self.path.exists():
            return []
        with self.path.open("rb") as file:
            file.seek(since)
            # A last line without its end is still being written.
            lines = [line for line in file if line.endswith(b"\n")]
        parsed = (json.loads(line) for line in lines)
        return [_event(item) for item in parsed if _counts(item)]


def _counts(item: dict[str, Any]) -> bool:
    """One event a request: a watch is logged when it begins and again when it ends."""
    if item["verb"] == "watch":
        return bool(item["stage"] == "ResponseStarted")
    return item["stage"] in {"ResponseComplete", "Panic"}


def _event(item: dict[str, Any]) -> AuditEvent:
    target = item.get("objectRef", {})
    resource = target.get("resource", "")
    if target.get("subresource"):
        resource += f"/{target['subresource']}"
    acting = item.get("impersonatedUser") or item["user"]
    return AuditEvent(
        received=item["requestReceivedTimestamp"],
        at=item["stageTimestamp"],
        user=acting.get("username", ""),
        verb=item["verb"],
        resource=resource,
        group=target.get("apiGroup", ""),
        namespace=target.get("namespace", ""),
        name=target.get("name", ""),
        code=item.get("responseStatus", {}).get("code", 0),
        dry_run="dryRun" in parse_qs(urlsplit(item["requestURI"]).query),
        uri=item["requestURI"],
        user_agent=item.get("userAgent", ""),
        body=item.get("responseObject") or {},
    )

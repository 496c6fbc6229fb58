"""Kubernetes Events about what headroom did. Writing is best effort, and a repeated event increases a count."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from threading import Lock
from typing import Any

import msgspec

from reconciler.cluster.connection import JSON, NOT_FOUND, Connection
from reconciler.cluster.discovery import Discovery, collection_path
from reconciler.model.errors import Failure
from reconciler.model.refs import DEFAULT_NAMESPACE, ObjectRef
from reconciler.ports import Event

_MERGE = "application/merge-patch+json"
_REPEATED_WITHIN = timedelta(minutes=30)
_LONGEST_MESSAGE = 1024
_MOST_REMEMBERED = 2000


class EventLog:
    """Writes core v1 Events, in the object's namespace; for cluster-scoped objects in `default` (as kubelet does for nodes).

    uid_of: gives an object's uid, by which `kubectl describe` finds its events.
    """

    def __init__(
        self,
        connection: Connection,
        discovery: Discovery,
        uid_of: Callable[[ObjectRef], str],
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._connection = connection
        self._discovery = discovery
        self._uid_of = uid_of
        self._now = now
        self._lock = Lock()
        self._told: dict[Event, tuple[datetime, str, int]] = {}

    def record(self, event: Event) -> None:
        """Writes an event. Never raises, since a lost event does no harm."""
        now = self._now()
        try:
            with self._lock:
                last, name, count = self._told.get(event, (now, "", 0))
                if name and now - last < _REPEATED_WITHIN and self._again(event, name, count + 1, now):
                    self._told[event] = (now, name, count + 1)
                    return
                if len(self._told) >= _MOST_REMEMBERED:
                    self._told.clear()
                name = self._first(event, now)
                self._told[event] = (now, name, 1)
        except Failure:
            return

    def _first(self, event: Event, now: datetime) -> str:
        digest = hashlib.sha256(f"{event}{now.timestamp()}".encode()).hexdigest()[:16]
        name = f"{event.ref.name[:200]}.{digest}"
        self._connection.request(
            "POST",
            collection_path("", "v1", "events", _namespace(event)),
            body=msgspec.json.encode(self._document(event, name, now)),
            headers={"Content-Type": JSON},
            resource="events",
        )
        return name

    def _again(self, event: Event, name: str, count: int, now: datetime) -> bool:
        answer = self._connection.request(
            "PATCH",
            f"{collection_path('', 'v1', 'events', _namespace(event))}/{name}",
            body=msgspec.json.encode({"count": count, "lastTimestamp": _text(now)}),
            headers={"Content-Type": _MERGE},
            resource="events",
        )
        return answer.status != NOT_FOUND

    def _document(self, event: Event, name: str, now: datetime) -> dict[str, Any]:
        ref = event.ref
        served = self._discovery.find(ref.group, ref.kind)
        version = served.versions[0] if served else "v1"
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": _namespace(event)},
            "involvedObject": {
                "apiVersion": f"{ref.group}/{version}" if ref.group else version,
                "kind": ref.kind,
                "name": ref.name,
                "namespace": ref.namespace,
                "uid": self._uid_of(ref),
            },
            "type": event.kind,
            "reason": event.reason,
            "message": event.message[:_LONGEST_MESSAGE],
            "source": {"component": "headroom"},
            "reportingComponent": "headroom",
            "firstTimestamp": _text(now),
            "lastTimestamp": _text(now),
            "count": 1,
        }


def _namespace(event: Event) -> str:
    return event.ref.namespace or DEFAULT_NAMESPACE


def _text(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")

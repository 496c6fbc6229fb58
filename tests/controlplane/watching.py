"""What happens to objects of one kind, in order, each change dated by the clock of this process.

Used by tests and figures that need more than the whole seconds in which the API server dates its objects.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from threading import Event, Thread
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from tests.controlplane.rest import Document, Rest

_CONNECTION_SECONDS = 5
"""The server ends a watch after this long, and the next goes on from there: so the end is noticed in time."""


@dataclass(frozen=True)
class Change:
    """at: seconds of `time.monotonic` when it was read. kind: ADDED, MODIFIED or DELETED, with the object as it is or was."""

    at: float
    kind: str
    object: Document

    @property
    def uid(self) -> str:
        return str(self.object["metadata"]["uid"])

    @property
    def name(self) -> str:
        return str(self.object["metadata"]["name"])


class Watch:
    """Every change of the objects of one kind within the `with` block, after those that were there at its beginning."""

    def __init__(self, api: Rest, api_version: str, kind: str, *, namespace: str | None = None) -> None:
        """Nothing is asked yet."""
        self._api = api
        self._kind = kind
        self._path = api.path(api_version, kind, namespace)
        self._changes: list[Change] = []
        self._stopping = Event()
        self._broken: Exception | None = None
        self._thread = Thread(target=self._watch, name=f"watch of {kind}", daemon=True)
        self._version = ""

    def __enter__(self) -> Self:
        """List what is there, and watch from then on."""
        answer = self._api.document("GET", self._path)
        now = time.monotonic()
        self._changes = [Change(now, "ADDED", {"kind": self._kind, **item}) for item in answer["items"]]
        self._version = answer["metadata"]["resourceVersion"]
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Wait for the last connection to end."""
        self._stopping.set()
        self._thread.join()

    @property
    def changes(self) -> list[Change]:
        """All so far, the oldest first. Raises what broke the watch, so that nobody takes silence for peace."""
        if self._broken is not None:
            raise self._broken
        return list(self._changes)

    def _watch(self) -> None:
        try:
            while not self._stopping.is_set():
                query = {
                    "watch": "true",
                    "resourceVersion": self._version,
                    "timeoutSeconds": str(_CONNECTION_SECONDS),
                    "allowWatchBookmarks": "true",
                }
                for event in self._api.stream(self._path, query=query):
                    self._take(event)
        except Exception as error:  # noqa: BLE001 - told where the changes are asked for
            self._broken = error

    def _take(self, event: Document) -> None:
        if event["type"] == "ERROR":
            message = f"the watch of {self._path} ended: {event['object']}"
            raise RuntimeError(message)
        self._version = event["object"]["metadata"]["resourceVersion"]
        if event["type"] != "BOOKMARK":
            self._changes.append(Change(time.monotonic(), event["type"], event["object"]))

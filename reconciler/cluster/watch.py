"""Objects of one kind, listed in pages and then watched.

What was read before a connection was lost may be outdated. So a lost connection is a gap in the view until everything has been listed
again. A stream that merely ended, or was silent for long, is resumed. A server may refuse each watch, or end it at once: the kind is then
asked for at growing intervals, and stays a gap until a watch has brought an event or has lasted.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from queue import SimpleQueue
from threading import Event, Thread
from typing import NoReturn

import msgspec

from reconciler.cluster.connection import (
    FORBIDDEN,
    GONE,
    JSON,
    NOT_FOUND,
    UNAUTHORIZED,
    Answer,
    Connection,
    RefusedError,
)
from reconciler.cluster.decoding import protobuf
from reconciler.cluster.decoding.decode import Body, list_items
from reconciler.cluster.decoding.wire import ListWire, MetadataWire, WatchWire
from reconciler.cluster.discovery import Discovery, collection_path
from reconciler.cluster.resources import Resource
from reconciler.cluster.view import ViewStore
from reconciler.model.errors import Transient, message_of
from reconciler.model.quantity import whole_number

PAGE = 5000
"""Objects. For each page the API server (1.36) walks through all that are left, which makes many small pages dear."""
NAMES_ONLY = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
"""Lists only the metadata of objects (Kubernetes API concepts, "Metadata-only fetches")."""


def pages_of(connection: Connection, path: str, resource: Resource, *, accept: str = JSON) -> Iterator[ListWire]:
    """All objects of a kind, read consistently; at least one page. All pages have the same version, to watch from.

    Raises `RefusedError`, `Transient` without an answer, `Invalid` if it is not a list.
    """

    def asked(token: str) -> Answer:
        query = [("limit", str(PAGE)), *selector(resource), *([("continue", token)] if token else [])]
        headers = {"Accept": accept, "Accept-Encoding": "gzip"}
        return connection.request("GET", path, query=query, headers=headers, resource=resource.plural)

    def ask(token: str, coming: SimpleQueue[Answer | Exception]) -> None:
        try:
            coming.put(asked(token))
        except Exception as error:  # noqa: BLE001 - whoever waits for the page raises it
            coming.put(error)

    answer: Answer | Exception = asked("")
    while True:
        if isinstance(answer, Exception):
            raise answer
        if not answer.ok:
            raise RefusedError(answer, f"{resource} cannot be read: ")
        page = protobuf.page_of(resource, answer.data) if protobuf.is_protobuf(answer.data) else list_items(answer.data)
        token, coming = page.metadata.continue_ or "", SimpleQueue[Answer | Exception]()
        if token:
            # A daemon thread, since nobody waits for an answer when headroom stops.
            Thread(target=ask, args=(token, coming), name=f"headroom-list-{resource}", daemon=True).start()
        del answer
        yield page
        del page
        if not token:
            return
        answer = coming.get()


def selector(resource: Resource) -> Iterable[tuple[str, str]]:
    """The query parameters that restrict a list or watch to one object, for a resource that is only one."""
    return [("fieldSelector", f"metadata.name={resource.name}")] if resource.name else []


_WATCH_SECONDS = 240  # the server ends a watch after this; a bookmark comes about every minute
_SILENCE_SECONDS = _WATCH_SECONDS + 30.0
_PROOF_SECONDS = (
    5  # of a watch while a gap waits to be closed: one that lasts does so, and a quiet kind has no event for long
)
_SHORT_SECONDS = 1.0
"""A watch that ends earlier, without an event, has shown nothing (client-go's "very short watch")."""
_PAUSE_AFTER, _GAP_AFTER = 2, 3
"""So many watches in a row that have shown nothing."""
_FIRST_PAUSE = 0.25
_LONGEST_PAUSE = 30.0


class _ObjectWire(msgspec.Struct):
    metadata: MetadataWire = msgspec.field(default_factory=MetadataWire)
    code: int = 0
    message: str = ""


_EVENT = msgspec.json.Decoder(WatchWire)
_OBJECT = msgspec.json.Decoder(_ObjectWire)


class _ExpiredError(Exception):
    """The resourceVersion to resume from is too old, so everything must be listed again."""


class _DeniedError(Transient):
    """RBAC or the credentials: nobody need wait for a kind that may not be read."""


class Pauses:
    """Waits in seconds that grow from failure to failure, up to `longest`. They end when `stopping` is set."""

    def __init__(self, stopping: Event, longest: float = _LONGEST_PAUSE) -> None:
        self._stopping = stopping
        self._longest = longest
        self.reset()

    def reset(self) -> None:
        self._next = _FIRST_PAUSE

    def wait(self) -> None:
        self._stopping.wait(self.grown() * random.uniform(0.5, 1.0))  # noqa: S311 - spreads load

    def grown(self) -> float:
        """The seconds of this pause. The next one is twice as long."""
        seconds, self._next = self._next, min(self._next * 2, self._longest)
        return seconds


@dataclass(frozen=True, slots=True)
class WatchedCluster:
    """What all watches of one cluster share. noticed: called after each step, with whether the view differs now."""

    connection: Connection
    discovery: Discovery
    store: ViewStore
    stopping: Event
    noticed: Callable[[bool], None]


class ResourceWatch:
    """The watch of one kind. settled: it has been read, or a gap says why not. failure: why it is not settled yet.

    version: the newest resourceVersion seen. is_following: every change will be seen. If False, the kind is not served, or a gap
    says why."""

    def __init__(self, resource: Resource, cluster: WatchedCluster) -> None:
        self.resource = resource
        self.settled = False
        self.is_following = False
        self.failure = ""
        self.version = 0
        self._cluster = cluster
        self._was_served = False
        self._in_vain = 0
        """Watches since the last one that has shown that changes are seen."""
        self._pauses = Pauses(cluster.stopping)

    def run(self) -> None:
        """Runs until `stopping` is set."""
        while not self._cluster.stopping.is_set():
            try:
                self._follow()
            except _ExpiredError:
                self._showed_nothing("the version to watch from expires at once, each time")
            except Exception as error:  # noqa: BLE001 - a thread that ended would leave everybody waiting for this kind
                if self._cluster.stopping.is_set():
                    return
                self._failed("read", message_of(error), nobody_waits=isinstance(error, _DeniedError))

    def _failed(self, verb: str, why: str, *, nobody_waits: bool = False) -> None:
        self.failure = why
        self._gap(f"cannot be {verb}: {why}", settled=self.settled or nobody_waits)
        self._pauses.wait()

    def _showed_nothing(self, why: str) -> None:
        """Handles a watch that has ended with nothing: the server's way if it happens once."""
        if self._in_vain >= _GAP_AFTER:
            self._failed("watched", why)
        elif self._in_vain >= _PAUSE_AFTER:
            self._pauses.wait()

    def _showed_changes(self) -> None:
        if self._in_vain:
            self._in_vain = 0
            self.is_following = True
            self._settle(changed=False)

    def _follow(self) -> None:
        generation = self._cluster.discovery.generation
        path = self._cluster.discovery.path_of(self.resource)
        if path is None:
            self._absent()
            while self._cluster.discovery.generation == generation and not self._cluster.stopping.wait(0.2):
                pass
            return
        self._was_served = True
        version = self._list(path)
        while not self._cluster.stopping.is_set():
            version = self._watch(path, version)

    def _absent(self) -> None:
        """Handles a kind that is not served: there are no objects if it is not installed; if it should be served, it is a gap."""
        self.is_following = False
        served = self._cluster.discovery.find(*self.resource.key)
        if served is not None:
            versions = ", ".join(served.versions)
            known = ", ".join(self.resource.versions)
            self._gap(f"are served as {versions} only; headroom reads {known}", settled=True)
        elif self.resource.builtin or self._is_installed():
            raise Transient("it is not served at the moment")
        else:
            self._in_vain = 0
            self._settle(changed=self._cluster.store.replace(self.resource, ()))

    def _is_installed(self) -> bool:
        """Whether there is a CRD. A starting server serves its kind some seconds later than the rest."""
        path = collection_path("apiextensions.k8s.io", "v1", "customresourcedefinitions")
        name = f"{self.resource.plural}.{self.resource.group}"
        answer = self._cluster.connection.request("GET", f"{path}/{name}", resource="customresourcedefinitions")
        if answer.status == NOT_FOUND:
            return False
        if answer.status == FORBIDDEN:
            return self._was_served
        if not answer.ok:
            raise Transient(answer.refusal)
        return True

    def _list(self, path: str) -> str:
        version = ""

        def items() -> Iterator[Body]:
            nonlocal version
            accept = f"{protobuf.PROTOBUF}, {JSON}" if protobuf.has(self.resource) else JSON
            for page in pages_of(self._cluster.connection, path, self.resource, accept=accept):
                version = page.metadata.resource_version
                yield from page.items or ()

        try:
            changed = self._cluster.store.replace(self.resource, items())
        except RefusedError as error:
            if error.answer.status == GONE:
                raise Transient("a list expired before all of it was read") from error
            self._refuse(error.answer)
        self._seen(version)
        self.is_following = True
        self._settle(changed=changed)
        return version

    def _watch(self, path: str, version: str) -> str:
        """Applies events until the stream ends; returns the version to resume from."""
        seconds = random.randint(_WATCH_SECONDS * 3 // 4, _WATCH_SECONDS)  # noqa: S311 - spreads load
        query = [
            ("watch", "true"),
            ("allowWatchBookmarks", "true"),
            ("resourceVersion", version),
            ("timeoutSeconds", str(seconds if self._in_vain < _GAP_AFTER else _PROOF_SECONDS)),
            *selector(self.resource),
        ]
        connection, plural = self._cluster.connection, self.resource.plural
        self._in_vain += 1
        with connection.stream(path, query=query, silence=_SILENCE_SECONDS, resource=plural) as lines:
            if isinstance(lines, Answer):
                self._refuse(lines)
            began = time.monotonic()
            try:
                for line in lines:
                    version = self._event(line) or version
                    self._showed_changes()
            finally:
                if time.monotonic() - began >= _SHORT_SECONDS:
                    self._showed_changes()
        if self._in_vain:
            self._showed_nothing("each watch ends at once")
        return version

    def _event(self, line: bytes) -> str:
        try:
            event = _EVENT.decode(line)
            told = _OBJECT.decode(event.object)
        except msgspec.MsgspecError as error:
            raise Transient(f"a watch sent something that is not an event ({error})") from error
        store, changed = self._cluster.store, False
        match event.type:
            case "ADDED" | "MODIFIED":
                changed = store.put(self.resource, event.object)
            case "DELETED":
                changed = store.remove(self.resource, told.metadata.namespace or "", told.metadata.name)
            case "ERROR":
                if told.code == GONE:
                    raise _ExpiredError
                raise Transient(told.message or "a watch ended with an error")
        self._seen(told.metadata.resource_version)
        self._cluster.noticed(changed)
        return told.metadata.resource_version

    def _refuse(self, answer: Answer) -> NoReturn:
        """Raises the exception for a refusal."""
        if answer.status == GONE:
            raise _ExpiredError
        if answer.status in {UNAUTHORIZED, FORBIDDEN}:
            raise _DeniedError(answer.refusal)
        if answer.status == NOT_FOUND:
            self._cluster.discovery.refresh()
        raise Transient(answer.refusal)

    def _seen(self, version: str) -> None:
        self.version = max(self.version, whole_number(version) or 0)

    def _settle(self, *, changed: bool) -> None:
        # A pass that gave up waiting for this kind has to be made again, even if there is no object of it.
        changed = changed or not self.settled
        self.settled = True
        if self._in_vain < _GAP_AFTER:
            self.failure = ""
            changed = self._cluster.store.set_gap(self.resource, "") or changed
        if not self._in_vain:
            self._pauses.reset()
        self._cluster.noticed(changed)

    def _gap(self, words: str, *, settled: bool) -> None:
        changed = self._cluster.store.set_gap(self.resource, words)
        self.settled = settled
        self.is_following = False
        self._cluster.noticed(changed)

"""All objects of one kind, listed in pages. The next page is on its way while one is decoded, and no more than two are in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from queue import SimpleQueue
from threading import Thread

import msgspec

from reconciler.cluster.connection import JSON, Answer, Connection
from reconciler.cluster.decoding.decode import list_items
from reconciler.cluster.resources import Resource
from reconciler.model.errors import Failure

PAGE = 500
NAMES_ONLY = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
"""Lists only the metadata of objects (Kubernetes API concepts, "Metadata-only fetches")."""


class RefusedError(Exception):
    """The server's answer was a refusal."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer.status)
        self.answer = answer


@dataclass(frozen=True, slots=True)
class Page:
    """items: undecoded. version: the list's resourceVersion, to watch from; the same for all pages."""

    items: tuple[msgspec.Raw, ...]
    version: str


def pages_of(connection: Connection, path: str, resource: Resource, *, accept: str = JSON) -> Iterator[Page]:
    """All objects of a kind, read consistently; at least one page.

    Raises `RefusedError`, `Transient` without an answer, `Invalid` if it is not a list.
    """

    def asked(token: str) -> Answer:
        query = [("limit", str(PAGE)), *selector(resource), *([("continue", token)] if token else [])]
        headers = {"Accept": accept, "Accept-Encoding": "gzip"}
        return connection.request("GET", path, query=query, headers=headers, resource=resource.plural)

    def ask(token: str, coming: SimpleQueue[Answer | Failure]) -> None:
        try:
            coming.put(asked(token))
        except Failure as failure:
            coming.put(failure)

    answer: Answer | Failure = asked("")
    while True:
        if isinstance(answer, Failure):
            raise answer
        if not answer.ok:
            raise RefusedError(answer)
        page = list_items(answer.data)
        token, coming = page.metadata.continue_ or "", SimpleQueue[Answer | Failure]()
        if token:
            # A daemon thread, since nobody waits for an answer when headroom stops.
            Thread(target=ask, args=(token, coming), name=f"headroom-list-{resource}", daemon=True).start()
        del answer
        yield Page(tuple(page.items or ()), page.metadata.resource_version)
        del page
        if not token:
            return
        answer = coming.get()


def selector(resource: Resource) -> Iterable[tuple[str, str]]:
    """The query parameters that restrict a list or watch to one object, for a resource that is only one."""
    return [("fieldSelector", f"metadata.name={resource.name}")] if resource.name else []

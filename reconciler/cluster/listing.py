"""All objects of one kind, listed in pages."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from reconciler.cluster.connection import JSON, Answer, Connection
from reconciler.cluster.decoding.decode import list_items
from reconciler.cluster.resources import Resource

PAGE = 500
NAMES_ONLY = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
"""Lists only the metadata of objects (Kubernetes API concepts, "Metadata-only fetches")."""


@dataclass(frozen=True, slots=True)
class Listing:
    """items: undecoded. version: the list's resourceVersion, to watch from. refused: the server's answer if it refused."""

    items: tuple[msgspec.Raw, ...] = ()
    version: str = ""
    refused: Answer | None = None


def list_all(connection: Connection, path: str, resource: Resource, *, accept: str = JSON) -> Listing:
    """All objects of a kind, read consistently. Raises `Transient` without an answer, `Invalid` if it is not a list."""
    items: list[msgspec.Raw] = []
    token = ""
    while True:
        query = [("limit", str(PAGE)), *selector(resource), *([("continue", token)] if token else [])]
        headers = {"Accept": accept, "Accept-Encoding": "gzip"}
        answer = connection.request("GET", path, query=query, headers=headers, resource=resource.plural)
        if not answer.ok:
            return Listing(refused=answer)
        page = list_items(answer.data)
        items += page.items or ()
        token = page.metadata.continue_ or ""
        if not token:
            return Listing(tuple(items), page.metadata.resource_version)


def selector(resource: Resource) -> Iterable[tuple[str, str]]:
    """The query parameters that restrict a list or watch to one object, for a resource that is only one."""
    return [("fieldSelector", f"metadata.name={resource.name}")] if resource.name else []

"""Buffers that are a share of running pods (`headroom.dev/percent-of`): of which pods, and which sizes the inventory remembers.

A share grows at once. It shrinks once it has been less for some time, so that pods which come back find their room.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any

from reconciler.model.errors import Invalid
from reconciler.model.label_selectors import parse_selector
from reconciler.model.refs import ObjectRef
from reconciler.model.requirements import LabelSelector

SHARES_KEY = "shares"
SHRINK_AFTER = timedelta(minutes=10)
"""How long a share must have been less before its buffer shrinks, if no setting says otherwise."""
PERCENT_OF_HINT = (
    'write nodepool/NAME, namespace, cluster, or a selector of pods such as "selector:app=web,tier in (a,b)"'
)
_NODE_POOL = re.compile(r"nodepool/(?P<name>[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?)", re.ASCII)
_SELECTOR = "selector:"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SLOTS = 10
"""Within each tenth of the time to shrink one size is remembered, so that a slow decline takes little of the inventory."""


class Where(StrEnum):
    """Where the pods are that a share is of."""

    NODE_POOL = "nodepool"
    NAMESPACE = "namespace"
    CLUSTER = "cluster"
    SELECTOR = "selector"


@dataclass(frozen=True, slots=True)
class PodsOf:
    """The pods that a share is of. written: the annotation. node_pool, selector: with the places of these names only."""

    where: Where
    written: str
    node_pool: str = ""
    selector: LabelSelector | None = None

    def words(self, namespace: str) -> str:
        """To follow "pods". namespace: the buffer's own, which NAMESPACE and SELECTOR are about."""
        match self.where:
            case Where.NODE_POOL:
                return f"on nodes of NodePool {self.node_pool}"
            case Where.CLUSTER:
                return "of the cluster"
            case Where.NAMESPACE:
                return f"of namespace {namespace}"
            case Where.SELECTOR:
                return f"of namespace {namespace} with {self.written.removeprefix(_SELECTOR).strip()}"


def pods_of(text: str) -> PodsOf:
    """The pods that a value of the annotation names. Raises `Invalid`."""
    written = text.strip()
    if written in {Where.NAMESPACE, Where.CLUSTER}:
        return PodsOf(Where(written), written)
    if match := _NODE_POOL.fullmatch(written):
        return PodsOf(Where.NODE_POOL, written, node_pool=match["name"])
    if not written.startswith(_SELECTOR):
        raise Invalid(f"{text!r} names no pods", hint=PERCENT_OF_HINT)
    return PodsOf(Where.SELECTOR, written, selector=parse_selector(written.removeprefix(_SELECTOR)))


def is_percent_of(text: str) -> bool:
    """Whether it is a valid `headroom.dev/percent-of`."""
    try:
        pods_of(text)
    except Invalid:
        return False
    return True


@dataclass(frozen=True, slots=True)
class RememberedShare:
    """The sizes of one share, in chunks.

    rule: a digest of what is declared; sizes by another rule say nothing. chunks: as of the last pass. larger: sizes before that, each with
    the time from which there was less; the largest first, which is also the oldest.
    """

    rule: str
    chunks: int
    larger: tuple[tuple[int, datetime], ...] = ()

    @property
    def size(self) -> int:
        """How many chunks are asked for: the most since the time to shrink began."""
        return self.larger[0][0] if self.larger else self.chunks

    def after(self, chunks: int, now: datetime, shrink_after: timedelta) -> RememberedShare:
        """The record once the share is this many chunks. It is the same as long as the share is and no time is over.

        Of several sizes within a tenth of `shrink_after` the largest stays as long as the last of them would.
        """
        # A clock that was set back must not prolong a size: no time lies ahead.
        before = [(size, min(at, now)) for size, at in self.larger]
        if chunks < self.chunks:
            before.append((self.chunks, now))
        larger: dict[int, tuple[int, datetime]] = {}
        for size, at in before:
            if size > chunks and now - at < shrink_after:
                slot = (at - _EPOCH) // (shrink_after / _SLOTS)
                larger[slot] = (larger.get(slot, (size, at))[0], at)
        return replace(self, chunks=chunks, larger=tuple(larger.values()))

    def as_json(self) -> dict[str, Any]:
        """The record as the inventory stores it."""
        larger = [[size, at.astimezone(UTC).isoformat()] for size, at in self.larger]
        return {"rule": self.rule, "chunks": self.chunks, "larger": larger}


def share_key(ref: ObjectRef) -> str:
    """A CapacityBuffer's key in the memory. It has no uid before it is in the cluster, and its size counts from then."""
    return f"{ref.namespace}/{ref.name}"


def remembered_shares(memory: Mapping[str, Any]) -> dict[str, RememberedShare]:
    """The records by key. One that cannot be read was written by another version, and is dropped."""
    known: dict[str, RememberedShare] = {}
    entries = memory.get(SHARES_KEY)
    for key, value in entries.items() if isinstance(entries, Mapping) else ():
        try:
            larger = tuple((int(size), _time(at)) for size, at in value["larger"])
            known[key] = RememberedShare(str(value["rule"]), int(value["chunks"]), larger)
        except (KeyError, OverflowError, TypeError, ValueError):
            continue
    return known


def _time(text: str) -> datetime:
    time = datetime.fromisoformat(text)
    if time.tzinfo is None:
        raise ValueError(text)
    return time

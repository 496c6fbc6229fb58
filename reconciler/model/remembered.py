"""What outlives a pass: the inventory, the records that it keeps as JSON values, and results that the process keeps.

Records are of ProvisioningRequests, so that none runs twice. Of what goes: chunks and pods that leave a node, objects that wait for their
deletion, and the hour within which removals take only a share, which passes and restarts do not renew. Others are beside their users.

Results of one pass are kept for the next, so that a pass in which one of many objects changed computes little.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Annotated, Any, Self, TypeVar, TypeVarTuple

import msgspec

from reconciler.model.errors import Invalid
from reconciler.model.refs import ObjectRef

Moment = Annotated[datetime, msgspec.Meta(tz=True)]
Unreadable = msgspec.ValidationError


class Record(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """What is remembered of one thing. Its fields are those of its JSON, in which defaults are left out."""

    def but(self, **changes: Any) -> Self:
        """The record with these fields changed."""
        return msgspec.structs.replace(self, **changes)


R = TypeVar("R")


def restored(value: Any, kind: type[R]) -> R:
    """The value that these JSON values say. Raises `Unreadable`."""
    return msgspec.convert(value, kind)


def remembered(inventory: Mapping[str, Any], key: str, kind: type[R]) -> dict[str, R]:
    """The records under the key, by name. One that cannot be read was written by another version, and is dropped."""
    entries = inventory.get(key)
    records: dict[str, R] = {}
    for name, value in entries.items() if isinstance(entries, Mapping) else ():
        with suppress(Unreadable):
            records[name] = restored(value, kind)
    return records


def records_of(key: str, value: Record | Mapping[str, Record] | list[Any]) -> dict[str, Any]:
    """Records as JSON values under the key; empty where there are none."""
    return {key: msgspec.to_builtins(value, order="deterministic")} if value else {}


@dataclass(frozen=True, slots=True)
class Inventory:
    """What headroom put into the cluster (the ApplySet's members) and what must outlive its objects.

    members: objects that a prune may delete. records: small JSON values by key (back-offs, finished requests).
    recorded: the inventory object exists. group_kinds (`NodePool.karpenter.sh`), namespaces: where members may be, as it says.
    suspended: nothing may be written until this is taken back. requested_at: the value of the annotation that asks for a pass.
    path: the folder in the repository that it was written for, "" where unknown. version: its resourceVersion.
    """

    members: frozenset[ObjectRef] = frozenset()
    records: Mapping[str, Any] = field(default_factory=dict)
    recorded: bool = False
    group_kinds: tuple[str, ...] = ()
    namespaces: tuple[str, ...] = ()
    suspended: bool = False
    requested_at: str = ""
    path: str = ""
    version: str = ""


REQUESTS_KEY = "provisioningRequests"
"""The key of requests in the inventory's records, each by `namespace/name`."""


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


def read_records(records: Mapping[str, Any]) -> dict[str, RequestRecord]:
    """Records by `namespace/name`. Raises `Invalid` if one cannot be read, since without it a request would run again."""
    try:
        return restored(records.get(REQUESTS_KEY) or {}, dict[str, RequestRecord])
    except Unreadable as error:
        raise Invalid(
            f"{REQUESTS_KEY} in the inventory is not what headroom wrote ({error})",
            hint="repair the record in the inventory's ConfigMap, or remove it if its request may run again",
        ) from error


def record_name(namespace: str, name: str) -> str:
    """The key of a request's record."""
    return f"{namespace}/{name}"


class Departure(Record, frozen=True):
    """Chunks leave a held node for cheaper room. since: when that began; until: how long no chunks come to the node. saves: USD an hour, once
    Karpenter has consolidated the node. claims: the NodeClaims made for the chunks. rooms: those of the claims that are for the pods; empty
    and protected until Karpenter has moved them there."""

    node: str
    since: Moment
    until: Moment
    saves: float
    claims: tuple[str, ...] = ()
    rooms: tuple[str, ...] = ()

    def is_under_way(self, now: datetime) -> bool:
        """Whether chunks stay away from the node. Afterwards Karpenter is not expected to take the node any more."""
        return now < self.until

    @property
    def words(self) -> str:
        """What happens, and what it saves: `chunks leave NODE for cheaper room, which saves …`."""
        saves = f"which saves ${self.saves:,.2f}/h once Karpenter has consolidated the node"
        return f"chunks leave {self.node} for cheaper room, {saves}"


@dataclass(frozen=True, slots=True)
class WaitingDeletions:
    """most, most_nodes: how many objects may be deleted, and nodes released for them, within an hour. held, nodes_held: of how many.
    gone, nodes_gone: how many are or go now. next_at: when the next may be, by headroom's clock.

    next_at None: nothing may be deleted at present, and `Plan.blocked` says why. Truthy where an object waits.
    """

    refs: tuple[ObjectRef, ...] = ()
    most: int = 0
    held: int = 0
    most_nodes: int = 0
    nodes_held: int = 0
    gone: int = 0
    nodes_gone: int = 0
    next_at: datetime | None = None

    def __bool__(self) -> bool:
        return bool(self.refs)

    @property
    def cap(self) -> str:
        """`at most 5 of 11 objects (1 so far) and 2 of 7 held nodes (2 so far) go within an hour`."""
        shares = [(self.most, self.held, "objects", self.gone)]
        shares += [(self.most_nodes, self.nodes_held, "held nodes", self.nodes_gone)] if self.nodes_held else []
        words = [
            f"{min(most, held):,} of {held:,} {what}" + (f" ({gone:,} so far)" if gone else "")
            for most, held, what, gone in shares
        ]
        return f"at most {' and '.join(words)} go within an hour"


PRUNES_KEY = "prunes"
HOUR = timedelta(hours=1)


class PruneHour(Record, frozen=True):
    """What removals took within the current hour.

    since: when the first removal began the hour. held, nodes_held: objects of the inventory and nodes with chunks then. pruned, released:
    names of what went since. stepped: nodes that buffers were let down by. let_down: by buffer, the chunks that are left of it while it waits.
    """

    since: Moment
    held: int
    nodes_held: int
    pruned: frozenset[str] = frozenset()
    released: frozenset[str] = frozenset()
    stepped: int = 0
    let_down: Mapping[str, int] = {}

    @property
    def ends(self) -> datetime:
        """When the next hour may begin."""
        return self.since + HOUR

    @property
    def nodes_gone(self) -> int:
        """How many nodes removals took."""
        return len(self.released) + self.stepped

    def records(self) -> dict[str, Any]:
        """JSON values for the inventory; nothing while nothing was removed."""
        took = self.pruned or self.released or self.let_down
        return records_of(PRUNES_KEY, self) if took else {}


def prune_hour(records: Mapping[str, Any], members: int, nodes: int, now: datetime) -> PruneHour:
    """The current hour, or a new one. An entry of another format was written by another version, and is dropped."""
    try:
        hour = restored(records.get(PRUNES_KEY), PruneHour)
    except Unreadable:
        return PruneHour(now, members, nodes)
    return hour if now < hour.ends else PruneHour(now, members, nodes, let_down=hour.let_down)


Made = TypeVar("Made")
Inputs = TypeVarTuple("Inputs")


class PassCache:
    """Results of functions by key. It decides nothing: without it the results are the same, since a function sees only its inputs.

    Inputs and results must never be modified. Inputs that are the same objects as before are not compared. Not thread-safe.
    """

    def __init__(self) -> None:
        self._known: dict[Hashable, tuple[tuple[Any, ...], Any]] = {}
        self._before: dict[Hashable, tuple[tuple[Any, ...], Any]] = {}

    def begin(self) -> None:
        """Begins a pass: results that the last pass did not use are dropped."""
        self._before, self._known = self._known, {}

    def once(self, key: Hashable, make: Callable[[*Inputs], Made], *inputs: *Inputs) -> Made:
        """The result of `make` for the inputs; the last pass's if it had equal inputs. A key is for one function only."""
        known = self._before.get(key)
        if known is None or known[0] != inputs:
            known = (inputs, make(*inputs))
        self._known[key] = known
        made: Made = known[1]
        return made

"""Offerings that gave no node, and how long they are left alone.

A placeholder that vanishes before its node has registered has failed. Karpenter deletes a NodeClaim for which there is no
capacity, or whose node does not register within 15 minutes (controllers/nodeclaim/lifecycle). To notice that, the inventory remembers from
pass to pass what is being launched.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import product
from typing import Any

from reconciler.model.changes import NodeClaimCreation
from reconciler.model.nodes import CAPACITY_TYPE_LABEL, HOLDS_ANNOTATION, INSTANCE_TYPE_LABEL, ZONE_LABEL, NodeClaim
from reconciler.model.placement import words_of_holdings
from reconciler.model.requirements import Operator
from reconciler.model.view import ClusterView

FIRST_DELAY = timedelta(minutes=3)
LONGEST_DELAY = timedelta(hours=1)
"""Also how long after its end a back-off is remembered, so that the next failure doubles it."""
LAUNCHES_KEY = "launches"
BACK_OFFS_KEY = "backOffs"
_MOST_DOUBLINGS = 16


@dataclass(frozen=True, slots=True, order=True)
class Offered:
    """The offerings that one NodeClaim asks for: every combination."""

    instance_types: tuple[str, ...] = ()
    zones: tuple[str, ...] = ()
    capacity_types: tuple[str, ...] = ()

    def covers(self, instance_type: str, zone: str, capacity_type: str) -> bool:
        return instance_type in self.instance_types and zone in self.zones and capacity_type in self.capacity_types

    def combinations(self) -> Iterable[tuple[str, str, str]]:
        return product(self.instance_types, self.zones, self.capacity_types)

    def as_json(self) -> dict[str, Any]:
        return {
            "instanceTypes": list(self.instance_types),
            "zones": list(self.zones),
            "capacityTypes": list(self.capacity_types),
        }

    @classmethod
    def parse(cls, value: Mapping[str, Any]) -> Offered:
        return cls(tuple(value["instanceTypes"]), tuple(value["zones"]), tuple(value["capacityTypes"]))


@dataclass(frozen=True, slots=True)
class Launch:
    """A NodeClaim on its way, which the API server has accepted. since: when it was asked for; holds: for what, in words."""

    offered: Offered
    since: datetime
    holds: str = ""


@dataclass(frozen=True, slots=True)
class BackOff:
    offered: Offered
    failures: int
    until: datetime

    @property
    def began(self) -> datetime:
        """When the last of its failures was seen."""
        return self.until - _delay(self.failures)


@dataclass(frozen=True, slots=True)
class LaunchRecord:
    """Launches on their way and offerings to leave alone, as of one view. vanished: placeholders that failed since the previous view, by
    name."""

    launches: Mapping[str, Launch] = field(default_factory=dict)
    back_offs: tuple[BackOff, ...] = ()
    vanished: Mapping[str, Launch] = field(default_factory=dict)

    def avoided(self, now: datetime, *, since: datetime | None = None) -> frozenset[tuple[str, str, str]]:
        """Offerings (type, zone, capacity type) to leave alone at this time. Karpenter knows nothing of back-offs, so existing NodeClaims
        may still become them.

        since: when the current attempt of a request began. An offering that failed in an attempt is not tried again in it. Otherwise an
        attempt would never end if launches take longer to fail than the back-off lasts.
        """
        return frozenset(
            offering
            for item in self.back_offs
            if now < item.until or (since is not None and item.began >= since)
            for offering in item.offered.combinations()
        )

    def next_end(self, now: datetime) -> datetime | None:
        """When the next offering may be tried again."""
        return min((item.until for item in self.back_offs if now < item.until), default=None)

    def memory(
        self,
        created: Iterable[NodeClaimCreation],
        deleted: Iterable[str],
        now: datetime,
    ) -> dict[str, Any]:
        """What the inventory remembers: JSON values, unchanged as long as nothing happens. They are written after the NodeClaims are made,
        so a remembered NodeClaim that is missing has vanished.
        """
        launches = {name: launch for name, launch in self.launches.items() if name not in set(deleted)}
        for creation in created:
            planned = creation.planned
            offered = Offered(planned.instance_types, planned.zones, planned.capacity_types)
            launches.setdefault(creation.name, Launch(offered, now, words_of_holdings(planned.holdings)))
        memory: dict[str, Any] = {}
        if launches:
            memory[LAUNCHES_KEY] = {
                name: launch.offered.as_json() | {"since": launch.since.isoformat(), "holds": launch.holds}
                for name, launch in sorted(launches.items())
            }
        if self.back_offs:
            memory[BACK_OFFS_KEY] = [
                item.offered.as_json() | {"failures": item.failures, "until": item.until.isoformat()}
                for item in self.back_offs
            ]
        return memory


def without_launches(memory: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """The plan's memory without NodeClaims that were not written after all: what was never made cannot vanish."""
    gone = set(names)
    launches = {name: launch for name, launch in dict(memory.get(LAUNCHES_KEY) or {}).items() if name not in gone}
    others = {key: value for key, value in memory.items() if key != LAUNCHES_KEY}
    return dict(sorted((others | ({LAUNCHES_KEY: launches} if launches else {})).items()))


def launch_record(view: ClusterView, now: datetime) -> LaunchRecord:
    """Compares what was being launched when the inventory was last written with what is there now.

    If NodeClaims cannot be read, a missing one counts as on its way until it is known to be gone.
    """
    remembered, back_offs = _remembered(view.inventory.memory)
    claims = {claim.name: claim for claim in view.node_claims if claim.is_placeholder}
    launches: dict[str, Launch] = {}
    failed: dict[str, Launch] = {}
    for name, launch in sorted(remembered.items()):
        claim = claims.get(name)
        if claim is None and "NodeClaim" in view.unread:
            launches[name] = launch
        elif claim is None or (_has_failed(claim) and not _is_there(claim)):
            failed[name] = launch
        elif _is_there(claim):
            back_offs = [item for item in back_offs if not item.offered.covers(*_offering(claim))]
        else:
            launches[name] = launch
    for name, claim in sorted(claims.items()):
        if name not in remembered and not _is_there(claim) and not _has_failed(claim):
            launches[name] = Launch(_asked_for(claim), claim.created or now, claim.annotation(HOLDS_ANNOTATION) or "")
    # NodeClaims that asked for the same and vanish together count as one failure.
    for offered in sorted({launch.offered for launch in failed.values()}):
        since = max(launch.since for launch in failed.values() if launch.offered == offered)
        back_offs = _lengthened(back_offs, offered, since, now)
    kept = sorted(
        (item for item in back_offs if now < item.until + LONGEST_DELAY),
        key=lambda item: (item.until, item.offered),
    )
    return LaunchRecord(launches, tuple(kept), failed)


def _lengthened(back_offs: list[BackOff], offered: Offered, since: datetime, now: datetime) -> list[BackOff]:
    """A launch that was under way when the present back-off began does not prolong it: it tells nothing new.

    since: when the launch was asked for.
    """
    known = next((item for item in back_offs if item.offered == offered), None)
    if known is not None and since <= known.began and now < known.until:
        return back_offs
    failures = 1 if known is None else known.failures + 1
    others = [item for item in back_offs if item.offered != offered]
    return [*others, BackOff(offered, failures, now + _delay(failures))]


def _delay(failures: int) -> timedelta:
    delay: timedelta = min(FIRST_DELAY * 2 ** min(failures - 1, _MOST_DOUBLINGS), LONGEST_DELAY)
    return delay


def _is_there(claim: NodeClaim) -> bool:
    return claim.condition("Registered") == "True" or claim.node_name is not None


def _has_failed(claim: NodeClaim) -> bool:
    return claim.deleting or claim.condition("Launched") == "False"


def _offering(claim: NodeClaim) -> tuple[str, str, str]:
    keys = (INSTANCE_TYPE_LABEL, ZONE_LABEL, CAPACITY_TYPE_LABEL)
    kind, zone, capacity_type = (claim.label(key) or "" for key in keys)
    return kind, zone, capacity_type


def _asked_for(claim: NodeClaim) -> Offered:
    asked = {need.key: need.values for need in claim.requirements if need.operator is Operator.IN}
    keys = (INSTANCE_TYPE_LABEL, ZONE_LABEL, CAPACITY_TYPE_LABEL)
    return Offered(*(asked.get(key, ()) for key in keys))


def _remembered(memory: Mapping[str, Any]) -> tuple[dict[str, Launch], list[BackOff]]:
    """An entry of another format was written by another version, and is dropped."""
    launches: dict[str, Launch] = {}
    back_offs: list[BackOff] = []
    try:
        for name, value in dict(memory.get(LAUNCHES_KEY) or {}).items():
            since = datetime.fromisoformat(value["since"])
            launches[name] = Launch(Offered.parse(value), since, str(value.get("holds", "")))
        for value in memory.get(BACK_OFFS_KEY) or ():
            until = datetime.fromisoformat(value["until"])
            back_offs.append(BackOff(Offered.parse(value), int(value["failures"]), until))
    except (KeyError, TypeError, ValueError):
        return {}, []
    return launches, back_offs

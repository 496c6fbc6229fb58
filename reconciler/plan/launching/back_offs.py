"""Offerings that gave no node: how long they are left alone, and what a plan says of the launches that failed.

A placeholder that vanishes before its node has registered has failed. Karpenter deletes a NodeClaim for which there is no
capacity, or whose node does not register within 15 minutes (controllers/nodeclaim/lifecycle). To notice that, the inventory remembers from
pass to pass what is being launched.

A back-off ends early when stock is seen. A launch of the offering by anybody clears it, and a catalogue that lists the offering again ends
the wait. After a wait one NodeClaim is a probe, and the others follow when it has been launched.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import product
from typing import Any

from reconciler.model.changes import NodeClaimCreation
from reconciler.model.demand import Demand
from reconciler.model.machines import Machine
from reconciler.model.nodes import (
    CAPACITY_TYPE_LABEL,
    HOLDS_ANNOTATION,
    INSTANCE_TYPE_LABEL,
    ZONE_LABEL,
    InstanceType,
    NodeClaim,
)
from reconciler.model.placement import Cause, PlannedNode, StockOut, read_holdings, words_of_holdings
from reconciler.model.quantity import doubled
from reconciler.model.refs import ObjectRef
from reconciler.model.remembered import Moment, Record, Unreadable, records_of, remembered, restored
from reconciler.model.requirements import listed_values
from reconciler.model.rules import PlacementRules
from reconciler.model.view import ClusterView
from reconciler.plan.launching.caps import Capped, Cut
from reconciler.plan.launching.misfits import MISFITS_KEY, SMALL_NODES_KEY, Misfit, SeenRoom, rooms_seen

LAUNCHES_KEY = "launches"
BACK_OFFS_KEY = "backOffs"
LAUNCH_KEYS = frozenset({LAUNCHES_KEY, BACK_OFFS_KEY, SMALL_NODES_KEY, MISFITS_KEY})


class Offered(Record, frozen=True, order=True):
    """The offerings that one NodeClaim asks for: every combination."""

    instance_types: tuple[str, ...] = ()
    zones: tuple[str, ...] = ()
    capacity_types: tuple[str, ...] = ()

    def covers(self, instance_type: str, zone: str, capacity_type: str) -> bool:
        return instance_type in self.instance_types and zone in self.zones and capacity_type in self.capacity_types

    def combinations(self) -> Iterable[tuple[str, str, str]]:
        return product(self.instance_types, self.zones, self.capacity_types)


class Launch(Record, frozen=True):
    """A NodeClaim on its way, which the API server has accepted. since: when it was asked for; holds: for what, in words."""

    offered: Offered
    since: Moment
    holds: str = ""


class BackOff(Record, frozen=True):
    """began: when the last of its failures was seen. unlisted: the catalogue has said since then that none of it is available."""

    offered: Offered
    failures: int
    began: Moment
    until: Moment
    unlisted: bool = False


@dataclass(frozen=True, slots=True)
class LaunchRecord:
    """Launches on their way and offerings to leave alone, as of one view. vanished: placeholders that failed since the previous view, by
    name. rooms: what nodes had that came up small, by instance type. misfits: nodes that took none of their chunks, by their
    NodeClaims' first name."""

    launches: Mapping[str, Launch] = field(default_factory=dict)
    back_offs: tuple[BackOff, ...] = ()
    vanished: Mapping[str, Launch] = field(default_factory=dict)
    rooms: Mapping[str, SeenRoom] = field(default_factory=dict)
    misfits: Mapping[str, Misfit] = field(default_factory=dict)

    def avoided(self, now: datetime, *, since: datetime | None = None) -> frozenset[tuple[str, str, str]]:
        """Offerings (type, zone, capacity type) to leave alone at this time. Karpenter knows nothing of back-offs, so existing NodeClaims
        may still become them.

        since: when the current attempt of a request began. An offering that failed in an attempt is not tried again in it. Otherwise an
        attempt would never end if launches take longer to fail than the back-off lasts.
        """
        left_alone = (item for item in self.back_offs if now < item.until)
        return self.failed_since(since).union(*(item.offered.combinations() for item in left_alone))

    def failed_since(self, since: datetime | None) -> frozenset[tuple[str, str, str]]:
        """Offerings that the present attempts of requests have tried in vain. Attempts have waits of their own, so back-offs that began
        before do not stop them. since: when the first of these attempts began; None if none is under way."""
        failed = (item for item in self.back_offs if since is not None and item.began >= since)
        return frozenset(offering for item in failed for offering in item.offered.combinations())

    def probing(self, capped: Capped, now: datetime, apart: Collection[ObjectRef]) -> Capped:
        """Cuts nodes whose offerings have all failed lately: one NodeClaim shows first whether there is stock again. As long as they are
        left alone, none is asked for, even in a pass in which the attempt of a request asks for them.

        apart: demands that get all of their nodes or none, which have attempts of their own instead, and pods, whose nodes Karpenter makes.
        """
        failed = {offering for item in self.back_offs for offering in item.offered.combinations()}
        left_alone = self.avoided(now)
        probes = {launch.offered for launch in self.launches.values()}
        why = "one node shows first whether its instance types are in stock again"

        def cut_of(node: PlannedNode) -> Cut | None:
            offered = _offered(node)
            asked = set(offered.combinations())
            probed = asked <= failed and not any(item.demand in apart for item in node.holdings)
            if probed and (offered in probes or not left_alone.isdisjoint(asked)):
                return Cut(node, why, Cause.PROBED, passing=True)
            probes.add(offered)
            return None

        return capped.cutting(cut_of)

    def next_end(self, now: datetime) -> datetime | None:
        """When the next offering may be tried again."""
        return min((item.until for item in self.back_offs if now < item.until), default=None)

    def records(self, created: Iterable[NodeClaimCreation], deleted: Iterable[str], now: datetime) -> dict[str, Any]:
        """What the inventory remembers: JSON values, unchanged as long as nothing happens. They are written after the NodeClaims are made,
        so a remembered NodeClaim that is missing has vanished.
        """
        launches = {name: launch for name, launch in self.launches.items() if name not in set(deleted)}
        for creation in created:
            planned = creation.planned
            launches.setdefault(creation.name, Launch(_offered(planned), now, words_of_holdings(planned.holdings)))
        records = records_of(LAUNCHES_KEY, launches) | records_of(BACK_OFFS_KEY, list(self.back_offs))
        return records | records_of(SMALL_NODES_KEY, self.rooms) | records_of(MISFITS_KEY, self.misfits)


def without_launches(records: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """The plan's records without NodeClaims that were not written after all: what was never made cannot vanish."""
    gone = set(names)
    launches = {name: launch for name, launch in dict(records.get(LAUNCHES_KEY) or {}).items() if name not in gone}
    others = {key: value for key, value in records.items() if key != LAUNCHES_KEY}
    return dict(sorted((others | ({LAUNCHES_KEY: launches} if launches else {})).items()))


def launch_record(
    view: ClusterView, now: datetime, rules: PlacementRules, instance_types: Iterable[InstanceType] = ()
) -> LaunchRecord:
    """Compares what was being launched when the inventory was last written with what is there now.

    If NodeClaims cannot be read, a missing one counts as on its way until it is known to be gone. instance_types: of the catalogue.
    """
    asked_before = remembered(view.inventory.records, LAUNCHES_KEY, Launch)
    try:
        back_offs = restored(view.inventory.records.get(BACK_OFFS_KEY, ()), list[BackOff])
    except Unreadable:
        back_offs = []
    claims = {claim.name: claim for claim in view.node_claims if claim.is_placeholder}
    launches: dict[str, Launch] = {}
    failed: dict[str, Launch] = {}
    for name, launch in sorted(asked_before.items()):
        claim = claims.get(name)
        if claim is None and "NodeClaim" in view.unread:
            launches[name] = launch
        elif claim is None or (_has_failed(claim) and not _is_there(claim)):
            failed[name] = launch
        elif not _is_there(claim):
            launches[name] = launch
    for name, claim in sorted(claims.items()):
        if name not in asked_before and not _is_there(claim) and not _has_failed(claim):
            launches[name] = Launch(_asked_for(claim), claim.created or now, claim.annotation(HOLDS_ANNOTATION) or "")
    back_offs = _still_out_of_stock(back_offs, view, set(asked_before), instance_types, now) if back_offs else []
    # NodeClaims that asked for the same and vanish together count as one failure.
    for offered in sorted({launch.offered for launch in failed.values()}):
        since = max(launch.since for launch in failed.values() if launch.offered == offered)
        back_offs = _lengthened(back_offs, offered, since, now, rules)
    kept = sorted(
        (item for item in back_offs if now < item.until + rules.back_off_at_most),
        key=lambda item: (item.until, item.offered),
    )
    small = remembered(view.inventory.records, SMALL_NODES_KEY, SeenRoom)
    rooms = rooms_seen(view, small, now) if claims or small else {}
    misfits = remembered(view.inventory.records, MISFITS_KEY, Misfit)
    return LaunchRecord(launches, tuple(kept), failed, rooms, misfits)


def _still_out_of_stock(
    back_offs: Iterable[BackOff],
    view: ClusterView,
    remembered: Collection[str],
    instance_types: Iterable[InstanceType],
    now: datetime,
) -> list[BackOff]:
    """Back-offs that no launch has disproved.

    Those that the catalogue lists again are over, but a probe comes before the rest. Some providers list an offering again only because
    their own memory of the stock-out has run out.
    """
    launched = [(_offering(machine), _launched_at(machine, remembered)) for machine in view.machines]
    names = {name for item in back_offs for name in item.offered.instance_types}
    listed: dict[bool, set[tuple[str, str, str]]] = {True: set(), False: set()}
    for kind in instance_types:
        if kind.name in names:
            for offering in kind.offerings:
                listed[offering.available].add((kind.name, offering.zone, offering.capacity_type))
    kept = []
    for item in back_offs:
        if any(
            time is not None and time > item.began and item.offered.covers(*offering) for offering, time in launched
        ):
            continue
        offerings = set(item.offered.combinations())
        if offerings & listed[True]:
            kept.append(item.but(unlisted=False, until=min(item.until, now)) if item.unlisted else item)
        else:
            kept.append(item.but(unlisted=item.unlisted or bool(offerings & listed[False])))
    return kept


def _launched_at(machine: Machine, remembered: Collection[str]) -> datetime | None:
    """When the machine was bought, by whomever; None if it is not there yet.

    A launch that headroom waited for counts as the newest: its success is what the wait was for.
    """
    claim = machine.node_claim
    if claim is None:
        return None if machine.node is None else machine.node.created
    if not (_is_there(claim) or claim.condition("Launched") == "True"):
        return None
    return datetime.max.replace(tzinfo=UTC) if claim.name in remembered else claim.since("Launched") or claim.created


def _lengthened(
    back_offs: list[BackOff], offered: Offered, since: datetime, now: datetime, rules: PlacementRules
) -> list[BackOff]:
    """A launch that was under way when the present back-off began does not prolong it: it tells nothing new.

    since: when the launch was asked for.
    """
    earlier = next((item for item in back_offs if item.offered == offered), None)
    if earlier is not None and since <= earlier.began and now < earlier.until:
        return back_offs
    failures = 1 if earlier is None else earlier.failures + 1
    wait = doubled(rules.back_off, failures - 1, rules.back_off_at_most)
    others = [item for item in back_offs if item.offered != offered]
    return [*others, BackOff(offered, failures, now, now + wait)]


def _is_there(claim: NodeClaim) -> bool:
    return claim.condition("Registered") == "True" or claim.node_name is not None


def _has_failed(claim: NodeClaim) -> bool:
    return claim.deleting or claim.condition("Launched") == "False"


def _offering(machine: Machine) -> tuple[str, str, str]:
    side = machine.node_claim or machine.node
    keys = (INSTANCE_TYPE_LABEL, ZONE_LABEL, CAPACITY_TYPE_LABEL)
    kind, zone, capacity_type = ((side.label(key) if side is not None else None) or "" for key in keys)
    return kind, zone, capacity_type


def _asked_for(claim: NodeClaim) -> Offered:
    asked = listed_values(claim.requirements)
    keys = (INSTANCE_TYPE_LABEL, ZONE_LABEL, CAPACITY_TYPE_LABEL)
    return Offered(*(asked.get(key, ()) for key in keys))


def stock_outs(
    launches: LaunchRecord,
    demands: Iterable[Demand],
    created: Sequence[NodeClaimCreation],
    now: datetime,
) -> tuple[StockOut, ...]:
    """One for each placeholder that vanished since the last pass. created: the nodes that this pass asks for."""
    if not launches.vanished:
        return ()
    by_name = {str(demand.ref): demand.ref for demand in demands}
    events = []
    for name, launch in sorted(launches.vanished.items()):
        held = sorted({by_name[words] for words, _ in read_holdings(launch.holds) if words in by_name})
        again = [item for item in created if any(holding.demand in held for holding in item.planned.holdings)]
        then = f"may be {retry_words(launches, now)}"
        if again:
            then = f"instead headroom asks for {_offered_words(_offered(again[0].planned))}"
        events.append(
            StockOut(tuple(held), f"NodeClaim {name} gave no node ({_offered_words(launch.offered)}): {then}")
        )
    return tuple(events)


def retry_words(launches: LaunchRecord, now: datetime) -> str:
    """When the first offering is tried again that gave no node; "" if no offering is left alone."""
    end = launches.next_end(now)
    return "" if end is None else f"tried again at {end.astimezone(UTC):%H:%M:%S} UTC"


def _offered(planned: PlannedNode) -> Offered:
    return Offered(planned.instance_types, planned.zones, planned.capacity_types)


def _offered_words(offered: Offered) -> str:
    first, *others = offered.instance_types or ("any type",)
    more = f" or {len(others)} others" if len(others) > 1 else f" or {others[0]}" if others else ""
    return f"{first}{more} in {' or '.join(offered.zones)} as {' or '.join(offered.capacity_types)}"

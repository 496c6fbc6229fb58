"""What schedules make of buffers and static NodePools at an instant: their replicas, and whether they exist.

Nothing is written back to Git: the typed values and the manifests that are applied carry the schedule's value. An unknown
schedule changes nothing: what is in the cluster stays as it is, and a finding says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from reconciler.demand.kept_sizes import is_suspended
from reconciler.model import codes
from reconciler.model.buffers import Buffer
from reconciler.model.declared import Declared, DeclaredManifest
from reconciler.model.findings import Finding
from reconciler.model.marks import ACTIVE_DURING_ANNOTATION, REPLICAS_FROM_ANNOTATION
from reconciler.model.nodes import NodePool, node_pool_ref
from reconciler.model.quantity import format_duration
from reconciler.model.refs import ObjectRef, SourcePosition
from reconciler.model.schedules import Edge, Following, Schedule, following_of
from reconciler.model.view import LiveObject, Manifest
from reconciler.timetable.capacity_schedule import next_look, value_with_lead

_MOST_LOOKS = 100
"""Changes after which a schedule that stays at 0 counts as one that never rises."""


@dataclass(frozen=True, slots=True)
class Followed:
    """Both with the schedules' values. effective: for demand and placement; repository: what is applied."""

    effective: Declared
    repository: Declared
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class _Sizes:
    """replicas None: no schedule gives them; active: the object is to exist; unknown: schedules that do not exist."""

    replicas: int | None
    active: bool
    unknown: tuple[ObjectRef, ...] = ()


def follow_schedules(
    effective: Declared, repository: Declared, objects: Mapping[ObjectRef, LiveObject], now: datetime
) -> Followed:
    """Sizes every follower by its schedules at `now`.

    effective: the repository merged over the cluster; buffers that only the cluster has are sized but never written.
    objects: the cluster's, whose sizes stay where a schedule is unknown.
    """
    pass_ = _Pass(effective, repository, objects, now)
    buffers = tuple(pass_.buffer(buffer) for buffer in effective.buffers)
    pools = tuple(pass_.pool(pool) for pool in effective.node_pools)
    kept = tuple(
        pass_.manifests[item.ref]
        for item in repository.manifests
        if item.ref not in pass_.dormant and item.ref not in pass_.held
    )
    parts: dict[str, Any] = {"manifests": kept, "broken": repository.broken | pass_.held, "dormant": pass_.dormant}
    return Followed(
        replace(effective, buffers=buffers, node_pools=pools, **parts),
        replace(repository, **parts),
        tuple(pass_.findings),
    )


class _Pass:
    """The answers for one instant.

    manifests: what is applied; dormant: what is not to exist, and why; held: what stays as it is in the cluster.
    """

    def __init__(
        self, effective: Declared, repository: Declared, objects: Mapping[ObjectRef, LiveObject], now: datetime
    ) -> None:
        self._schedules = {schedule.ref: schedule for schedule in effective.schedules}
        self._declared = effective
        self._objects = objects
        self._now = now
        self.manifests = {item.ref: item for item in repository.manifests}
        self.dormant: dict[ObjectRef, str] = {}
        self.held: set[ObjectRef] = set()
        self.findings: list[Finding] = []

    def buffer(self, buffer: Buffer) -> Buffer:
        following = following_of(buffer.ref, buffer.annotations)
        if following is None:
            return buffer
        live = self._objects.get(buffer.ref)
        if is_suspended(buffer, live):  # it keeps its size, whatever its schedule says
            return _as_it_is(buffer, live)
        sizes = self._sizes(following)
        if sizes.unknown:
            self._hold(following, buffer.ref, buffer.position, sizes)
            return self._unsized(buffer, sizes, live)
        if buffer.is_scaled:
            sizes = replace(sizes, replicas=None)
        followed = followed_buffer(buffer, following, sizes.replicas, asleep=self._asleep(following, sizes))
        if followed.dormant:
            self.dormant[buffer.ref] = followed.dormant
        elif sizes.replicas is not None and buffer.ref in self.manifests:
            self.manifests[buffer.ref] = _sized_manifest(self.manifests[buffer.ref], sizes.replicas)
        return followed

    def _unsized(self, buffer: Buffer, sizes: _Sizes, live: LiveObject | None) -> Buffer:
        """As it is in the cluster if it exists there; otherwise it waits for its schedule."""
        if live is None:
            why = "; ".join(f"{ref} {self._declared.absence_of(ref).words}" for ref in sizes.unknown)
            return replace(buffer, waits_for=why)
        return _as_it_is(buffer, live)

    def _asleep(self, following: Following, sizes: _Sizes) -> str:
        """Why the buffer is not to exist now, and until when; "" if it is."""
        schedule = following.active_during
        if sizes.active or schedule is None:
            return ""
        wakes = _wakes(self._schedules[schedule], following.lead, self._now)
        until = "with no change ahead" if wakes is None else f"until {wakes:%Y-%m-%d %H:%M} UTC"
        return f"{schedule} is at 0 {until}"

    def pool(self, pool: NodePool) -> NodePool:
        """Only pools that Git declares: headroom sizes no pool that somebody else deploys."""
        ref = node_pool_ref(pool.name)
        item = self.manifests.get(ref)
        following = None if item is None else following_of(ref, _annotations(item.manifest))
        if item is None or following is None:
            return pool
        live = self._objects.get(ref)
        sizes = self._sizes(following)
        if sizes.replicas is None:
            self._hold(following, ref, item.position, sizes)
        else:
            self.manifests[ref] = _sized_manifest(item, sizes.replicas)
        if live is not None and "replicas" not in (live.body.get("spec") or {}):
            return pool  # it stays dynamic, and the plan says that it cannot change
        return replace(pool, replicas=(_replicas_of(live) or 0) if sizes.replicas is None else sizes.replicas)

    def _sizes(self, following: Following) -> _Sizes:
        unknown = tuple(ref for ref in following.schedules if ref not in self._schedules)
        if unknown:
            return _Sizes(None, True, unknown)
        replicas, active = following.replicas_from, following.active_during
        return _Sizes(
            None if replicas is None else value_with_lead(self._schedules[replicas], following.lead, self._now),
            active is None or value_with_lead(self._schedules[active], following.lead, self._now) > 0,
        )

    def _hold(self, following: Following, ref: ObjectRef, position: SourcePosition | None, sizes: _Sizes) -> None:
        self.held.add(ref)
        item = self.manifests.get(ref)
        fate = f"the {ref.kind} is not made until its schedule is there"
        if ref in self._objects:
            fate = "the size stays as it is"
        for schedule in sizes.unknown:
            if schedule in self._declared.broken:
                message = f"{schedule} {self._declared.absence_of(schedule).words}: {fate}"
                hint = "correct the schedule"
            else:
                message = f"{schedule} is neither in the repository nor in the cluster: {fate}"
                hint = "declare a MetricsProducer of that name, or correct the annotation"
            annotation = REPLICAS_FROM_ANNOTATION if schedule == following.replicas_from else ACTIVE_DURING_ANNOTATION
            path = f"metadata.annotations['{annotation}']"
            where = position if item is None else item.position_of(path)
            self.findings.append(codes.SCHEDULE_NOT_FOUND.finding(message, where, ref, path, hint))


def next_edge(effective: Declared, after: datetime) -> Edge | None:
    """The first instant after this one at which a schedule's value changes, with or without a follower's lead."""
    leads: dict[ObjectRef, set[timedelta]] = {schedule.ref: {timedelta(0)} for schedule in effective.schedules}
    for _, following in followers(effective):
        for ref in following.schedules:
            leads.setdefault(ref, set()).add(following.lead)
    edges = [
        Edge(at, f"{schedule.ref}{_ahead(lead)}")
        for schedule in effective.schedules
        for lead in sorted(leads[schedule.ref])
        if (at := _next_look(schedule, lead, after)) is not None
    ]
    return min(edges, key=lambda edge: edge.at, default=None)


def _next_look(schedule: Schedule, lead: timedelta, after: datetime) -> datetime | None:
    try:
        return next_look(schedule, lead, after)
    except Exception:  # noqa: BLE001 - a defect of headroom with this schedule must not hide the edges of all others
        return None


def followers(declared: Declared) -> Iterator[tuple[Buffer | NodePool, Following]]:
    """Every buffer and NodePool that follows a schedule, and what it follows."""
    found: list[tuple[ObjectRef, Buffer | NodePool]] = [(buffer.ref, buffer) for buffer in declared.buffers]
    found += [(node_pool_ref(pool.name), pool) for pool in declared.node_pools]
    for ref, item in found:
        following = following_of(ref, item.annotations)
        if following is not None:
            yield item, following


def changes_with(buffer: Buffer, live: LiveObject | None) -> Following | None:
    """What the buffer's size goes by: no schedule while it is suspended, and none for its replicas while somebody scales it."""
    following = None if is_suspended(buffer, live) else following_of(buffer.ref, buffer.annotations)
    if following is None or not buffer.is_scaled:
        return following
    return None if following.active_during is None else replace(following, replicas_from=None)


def _wakes(schedule: Schedule, lead: timedelta, now: datetime) -> datetime | None:
    """When a schedule that is at 0 is next above it, with the lead; None: never."""
    at = next_look(schedule, lead, now)
    for _ in range(_MOST_LOOKS):
        if at is None or value_with_lead(schedule, lead, at) > 0:
            return at
        at = next_look(schedule, lead, at)
    return None


def followed_buffer(buffer: Buffer, following: Following, replicas: int | None, *, asleep: str = "") -> Buffer:
    """The buffer with these replicas (None: its own). asleep: why it does not exist now."""
    if asleep:
        return replace(buffer, dormant=asleep)
    if replicas is None:
        return replace(buffer, dormant="")
    return replace(buffer, dormant="", replicas=replicas, sized_by=f"{following.replicas_from}{_ahead(following.lead)}")


def _ahead(lead: timedelta) -> str:
    return f", {format_duration(lead)} ahead" if lead else ""


def _as_it_is(buffer: Buffer, live: LiveObject | None) -> Buffer:
    replicas = _replicas_of(live)
    return buffer if replicas is None else replace(buffer, replicas=replicas)


def _replicas_of(live: LiveObject | None) -> int | None:
    size: Any = None if live is None else live.body.get("spec")
    for step in _place_of_size(size) if isinstance(size, Mapping) else ():
        size = size.get(step) if isinstance(size, Mapping) else None
    return size if isinstance(size, int) else None


def _place_of_size(spec: Mapping[str, Any]) -> tuple[str, ...]:
    """The path in the spec of a fixed size; empty where it has none, such as a share."""
    capacity = spec.get("capacity")
    if not isinstance(capacity, Mapping):
        return ("replicas",)
    if "pods" in capacity:
        return ("capacity", "pods", "replicaNum")
    return ("capacity", "replicas", "exactly") if "exactly" in (capacity.get("replicas") or {}) else ()


def _annotations(manifest: Manifest) -> tuple[tuple[str, str], ...]:
    found = (manifest.get("metadata") or {}).get("annotations") or {}
    return tuple(sorted((key, value) for key, value in found.items() if isinstance(value, str)))


def _sized_manifest(item: DeclaredManifest, replicas: int) -> DeclaredManifest:
    """The document as it is applied: the schedule's value stands in the field where its kind has the size."""
    manifest = deepcopy(dict(item.manifest))
    node = manifest.setdefault("spec", {})
    *above, last = _place_of_size(node) or (None,)
    if last is None:
        return item
    for step in above:
        node = node[step]
    node[last] = replicas
    return replace(item, manifest=manifest)

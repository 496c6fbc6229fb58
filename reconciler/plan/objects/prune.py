"""Prunes objects that headroom applied and Git no longer declares.

Kept are objects that a broken document might still declare, and those without headroom's own label. Nothing is pruned while
the plan is blocked, and never more than a share of the inventory within an hour. A NodePool takes its nodes with it, so it is
deleted only when it is marked for that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from reconciler.model.changes import Action, ObjectChange
from reconciler.model.declared import Declared
from reconciler.model.edges import Edge
from reconciler.model.findings import Finding
from reconciler.model.marks import PART_OF_LABEL, SUSPEND_ANNOTATION
from reconciler.model.refs import ObjectRef
from reconciler.model.view import ClusterView, LiveObject, Manifest
from reconciler.model.waiting_deletions import WaitingDeletions
from reconciler.plan.codes import POOL_NOT_PRUNED
from reconciler.plan.objects.objects import (
    PARTIAL_ANNOTATION,
    SOURCE_ANNOTATION,
    annotations_of,
    partial_mark,
)
from reconciler.plan.objects.prune_hour import prune_hour

PRUNE_ANNOTATION = "headroom.dev/prune"
_DELETE_AFTER = {"MetricsProducer": 1, "PodTemplate": 1, "NodePool": 2}
"""Kinds that go after the others (0), lowest first."""


@dataclass(frozen=True, slots=True)
class Pruning:
    """memory: what the inventory remembers about it."""

    changes: tuple[ObjectChange, ...] = ()
    notes: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    memory: Mapping[str, Any] = field(default_factory=dict)
    waiting: WaitingDeletions = field(default_factory=WaitingDeletions)

    @property
    def edges(self) -> tuple[Edge, ...]:
        """When the next object may go."""
        waiting = self.waiting
        if waiting.next_at is None:
            return ()
        return (Edge(waiting.next_at, f"{_objects(len(waiting.refs))} no longer declared: the next may be deleted"),)


def prune(
    declared: Declared, view: ClusterView, *, applyset_id: str, share: float, blocked: bool, now: datetime
) -> Pruning:
    """Deletions of inventory members. share: part of the inventory that may go within an hour; one object always may."""
    members = view.inventory.members | _partly_applied(view, applyset_id)
    wanted = {item.ref for item in declared.manifests} | declared.broken | declared.dormant.keys()
    gone = [ref for ref in sorted(members - wanted, key=_order) if ref in view.objects]
    hour = prune_hour(view.inventory.memory, len(members), now)
    notes: list[str] = []
    findings: list[Finding] = []
    due: list[ObjectChange] = []
    for ref in gone:
        live = view.objects[ref]
        kept = reason_to_keep(live, declared.broken_files, applyset_id)
        if kept is None and _takes_nodes_with_it(live):
            findings.append(_kept_pool(ref))
        elif kept is None:
            due.append(_removal(ref, live))
        elif kept:
            notes.append(f"{ref} is no longer declared, but stays: {kept}")
    asleep = _asleep(declared, view, members, applyset_id)
    if blocked:
        if due:
            notes.append(f"{_counted(len(due))} no longer declared, which waits")
        if asleep:
            notes.append(f"{_listed(change.ref for change in asleep)}: asleep by schedule, which waits")
        held_back = WaitingDeletions(tuple(change.ref for change in (*due, *asleep)))
        return Pruning((), tuple(notes), tuple(findings), hour.memory(), held_back)
    going, waiting = hour.split([change.ref for change in due], share)
    held_back = WaitingDeletions()
    if waiting:
        held_back = WaitingDeletions(tuple(waiting), hour.most(share), hour.held, hour.ends + view.clock_skew)
        notes.append(
            f"{_counted(len(due))} no longer declared; {hour.most(share)} of {hour.held} may go within an hour, so these wait: "
            f"{_listed(waiting)}",
        )
    changes = (*(change for change in due if change.ref not in waiting), *asleep)
    return Pruning(changes, tuple(notes), tuple(findings), hour.after(going).memory(), held_back)


def _takes_nodes_with_it(live: LiveObject) -> bool:
    """A whole NodePool that is not marked for deletion. One that was changed in part only gets its fields back."""
    annotations = annotations_of(live.body)
    is_whole = live.ref.kind == "NodePool" and PARTIAL_ANNOTATION not in annotations
    return is_whole and annotations.get(PRUNE_ANNOTATION) != "true"


def _kept_pool(ref: ObjectRef) -> Finding:
    return Finding(
        POOL_NOT_PRUNED.name,
        POOL_NOT_PRUNED.severity,
        "no longer declared, but stays: deleting it would delete its nodes",
        ref=ref,
        hint=f'annotate it with {PRUNE_ANNOTATION}: "true" to have it deleted, or delete it by hand',
    )


def _asleep(
    declared: Declared,
    view: ClusterView,
    members: frozenset[ObjectRef],
    applyset_id: str,
) -> tuple[ObjectChange, ...]:
    """Members that are declared, but by their schedule must not exist at present. No share bounds them: their absence is declared, and at
    the next edge they are back."""
    return tuple(
        ObjectChange(ref, Action.DELETE, reason=why)
        for ref, why in sorted(declared.dormant.items())
        if ref in members
        and ref in view.objects
        and reason_to_keep(view.objects[ref], frozenset(), applyset_id) is None
    )


def _partly_applied(view: ClusterView, applyset_id: str) -> frozenset[ObjectRef]:
    """Objects outside the inventory on which headroom set some fields."""
    mark = partial_mark(applyset_id)
    return frozenset(
        ref for ref, live in view.objects.items() if annotations_of(live.body).get(PARTIAL_ANNOTATION) == mark
    )


def _order(ref: ObjectRef) -> tuple[int, ObjectRef]:
    """Templates and schedules after what refers to them: a buffer that has to wait for its turn keeps its capacity until then. NodePools
    last: with a pool go all its nodes."""
    return (_DELETE_AFTER.get(ref.kind, 0), ref)


def reason_to_keep(live: LiveObject, broken_files: frozenset[str], applyset_id: str) -> str | None:
    """Why it stays. None: it may go; "": it is not headroom's, so it stays and no message says so."""
    annotations = annotations_of(live.body)
    if annotations.get(SOURCE_ANNOTATION) in broken_files:
        return f"{annotations[SOURCE_ANNOTATION]} has errors, so it may be missing there by mistake"
    if annotations.get(PRUNE_ANNOTATION) == "disabled":
        return f"{PRUNE_ANNOTATION}: disabled"
    if annotations.get(SUSPEND_ANNOTATION) == "true":
        return "it is suspended"
    if PARTIAL_ANNOTATION in annotations:
        return None if annotations[PARTIAL_ANNOTATION] == partial_mark(applyset_id) else ""
    labels = (live.body.get("metadata") or {}).get("labels") or {}
    if applyset_id and labels.get(PART_OF_LABEL) != applyset_id:
        return ""
    return None


def _removal(ref: ObjectRef, live: LiveObject) -> ObjectChange:
    if PARTIAL_ANNOTATION not in annotations_of(live.body):
        return ObjectChange(ref, Action.DELETE, reason="no longer declared")
    # Applying an empty object gives up every field that headroom owned, its marks included.
    metadata = {"name": ref.name} | ({"namespace": ref.namespace} if ref.namespace else {})
    bare: Manifest = {"apiVersion": live.body.get("apiVersion"), "kind": ref.kind, "metadata": metadata, "spec": {}}
    reason = "no longer declared: the fields that headroom set are given back, the object stays"
    return ObjectChange(ref, Action.UPDATE, manifest=bare, reason=reason)


def _objects(count: int) -> str:
    return f"{count:,} object" if count == 1 else f"{count:,} objects"


def _counted(count: int) -> str:
    return f"{_objects(count)} {'is' if count == 1 else 'are'}"


def _listed(refs: Iterable[ObjectRef], most: int = 5) -> str:
    names = [str(ref) for ref in refs]
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more

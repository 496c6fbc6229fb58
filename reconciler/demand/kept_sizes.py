"""Sizes that go by more than the manifest: buffers that are a share of running pods (`headroom.dev/percent-of`), one-shot buffers, and suspended
ones.

Of a share: what these pods request, in chunks, and until when more is kept. Pods run that have a node, have not ended and are not being
deleted. Daemon and mirror pods are left out, since every node brings its own, and so are balloon pods, which are a buffer themselves.

A one-shot buffer is filled once, what is left of it stays where it is, and nothing is added. It ends for good when pods have used all of
it, when its deadline comes first, or when its nodes go before any pod came. A suspended buffer keeps its size and the room that it holds,
and takes none beside that."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property

from reconciler.demand.node_class import Note
from reconciler.demand.resolve import READY, Unresolved, chunks_in_words, on_nodes
from reconciler.demand.size import percentage_count
from reconciler.model import codes
from reconciler.model.autoscalers import CAPACITY_BUFFER_KIND
from reconciler.model.buffers import (
    BUFFER_FILLED,
    CAPACITY_LOST,
    DEADLINE_EXCEEDED,
    EXPIRED,
    FULFILLED,
    SHARES_KEY,
    Buffer,
    Fulfilment,
    OneShot,
    PodsOf,
    RememberedShare,
    Where,
    balloon_of,
    pods_of,
    share_key,
)
from reconciler.model.conditions import Condition, ConditionStatus, ending
from reconciler.model.demand import ChunkGroup, Demand
from reconciler.model.errors import Invalid
from reconciler.model.marks import PERCENT_OF_ANNOTATION, SUSPEND_ANNOTATION
from reconciler.model.nodes import NodePool
from reconciler.model.placement import read_holdings
from reconciler.model.pods import Pod, PodShape
from reconciler.model.quantity import PODS, Resources, format_duration, readable_amount
from reconciler.model.refs import ObjectRef, counted
from reconciler.model.remembered import PassCache, remembered
from reconciler.model.view import ClusterView, LiveObject

_FIELD = f"metadata.annotations['{PERCENT_OF_ANNOTATION}']"
_DIGITS = 16


@dataclass(frozen=True, slots=True)
class Share:
    count: int
    facts: tuple[str, ...]
    """How it came about, one a line."""
    record: RememberedShare | None = None
    """None where no clock says how old sizes are."""
    shrinks_at: datetime | None = None
    """When there is less if nothing happens; None where the share itself is as large."""
    notes: tuple[Note, ...] = ()


@dataclass(frozen=True, slots=True)
class Running:
    pods: int
    requests: Resources


class RunningPods:
    """The pods that run, counted by namespace, NodePool and shape, so that each share adds up shapes and not pods."""

    def __init__(self, pods: Iterable[Pod], pools: Mapping[str, str]) -> None:
        """pools: the NodePool's name by node."""
        self._groups: dict[tuple[str, str], list[tuple[PodShape, int]]] = {}
        self._answers: dict[tuple[PodsOf, str], Running] = {}
        counts = Counter(
            (pod.namespace, pools.get(pod.node_name, ""), pod.shape)
            for pod in pods
            if pod.node_name is not None
            and not (pod.deleting or pod.is_finished or pod.is_daemon or balloon_of(pod) is not None)
        )
        for (namespace, pool, shape), count in counts.items():
            self._groups.setdefault((namespace, pool), []).append((shape, count))

    def of(self, pods: PodsOf, namespace: str) -> Running:
        """The running pods that a share is of. namespace: its buffer's."""
        of_namespace = namespace if pods.where in {Where.NAMESPACE, Where.SELECTOR} else ""
        known = self._answers.get((pods, of_namespace))
        if known is None:
            known = self._answers[pods, of_namespace] = self._counted(pods, of_namespace)
        return known

    def _counted(self, pods: PodsOf, namespace: str) -> Running:
        found = [
            (shape, count)
            for (home, pool), shapes in self._groups.items()
            if namespace in {"", home} and pods.node_pool in {"", pool}
            for shape, count in shapes
            if pods.selector is None or pods.selector.matches(dict(shape.labels))
        ]
        requests = Resources.total(shape.requests * count for shape, count in found)
        return Running(sum(count for _, count in found), requests)


class RunningShares:
    """The shares of one pass. The pods are looked at only if some buffer is a share of them, and then once for all buffers.

    now: by the cluster's clock; None to ask for what the pods need now, whatever was before. shrink_after: how long the share must be less
    before its buffer shrinks.
    """

    def __init__(
        self,
        view: ClusterView,
        node_pools: Iterable[NodePool],
        cache: PassCache,
        now: datetime | None,
        shrink_after: timedelta,
    ) -> None:
        self._view, self._node_pools, self._cache, self._now = view, node_pools, cache, now
        self._shrink_after = shrink_after

    @cached_property
    def _pools(self) -> Mapping[str, str]:
        """The NodePool's name by node."""
        return {item.node.name: item.node_pool for item in self._view.machines if item.node is not None}

    @cached_property
    def _running(self) -> RunningPods:
        return self._cache.once(("running pods",), RunningPods, self._view.pods, self._pools)

    @cached_property
    def _before(self) -> Mapping[str, RememberedShare]:
        return remembered(self._view.inventory.records, SHARES_KEY, RememberedShare)

    def of(self, buffer: Buffer, pods: PodsOf, chunk: Resources) -> Share:
        """The share that `buffer.percentage` is. chunk: what one of its chunks requests."""
        running = self._running.of(pods, buffer.ref.namespace)
        asked = tuple((name, amount) for name, amount in chunk if name != PODS and amount > 0)
        percentage = buffer.percentage or 0
        counts = {name: percentage_count(running.requests.get(name), percentage, amount) for name, amount in asked}
        most = max(counts, key=counts.__getitem__, default="")
        count = counts.get(most, 0)
        amounts = ", ".join(f"{name} {readable_amount(name, running.requests.get(name))}" for name, _ in asked)
        whose = f"{counted(running.pods, 'running pod')} {pods.words(buffer.ref.namespace)}"
        fact = f"{percentage}% of the requests of {whose}"
        fact += f" ({amounts}), rounded up: {count:,}" if asked else f": {count:,}, since its chunks request nothing"
        names = {*(pool.name for pool in self._node_pools), *self._pools.values()} if pods.node_pool else ()
        notes = _notes(buffer, pods, asked, names)
        share = Share(count, (f"{fact} by {most}" if count else fact,), notes=notes)
        if self._now is None:
            return share
        rule = hashlib.sha256(f"{percentage}% of {pods.written} in {chunk.amounts}".encode()).hexdigest()[:_DIGITS]
        known = self._before.get(share_key(buffer.ref))
        before = known if known is not None and known.rule == rule else RememberedShare(rule, count)
        # Pods that could not be read may run all the same.
        least = 0 if self._view.complete else before.size
        return _kept(share, before.after(max(count, least), self._now, self._shrink_after), self._shrink_after)


def _notes(
    buffer: Buffer, pods: PodsOf, asked: Sequence[tuple[str, int]], node_pools: Collection[str]
) -> tuple[Note, ...]:
    notes = []
    if pods.node_pool and pods.node_pool not in node_pools:
        message = f"{PERCENT_OF_ANNOTATION}: NodePool {pods.node_pool} does not exist, so no pods run there"
        notes.append(Note(codes.TARGET_NOT_FOUND, message, "correct the name of the NodePool", _FIELD))
    if not asked:
        message = f"{PERCENT_OF_ANNOTATION}: PodTemplate {buffer.pod_template} requests nothing, so that no chunks are a share"
        notes.append(Note(codes.SIZE_NOT_KNOWN, message, "give its containers requests of cpu and memory", _FIELD))
    return tuple(notes)


def _kept(share: Share, record: RememberedShare, shrink_after: timedelta) -> Share:
    """The share, or a larger size of before that has not been too much for long enough."""
    if record.size == share.count:
        return replace(share, record=record)
    if record.less_since is None:
        fact = f"{record.size:,} as before, since the cluster could not be read in full"
        return replace(share, count=record.size, facts=(*share.facts, fact), record=record)
    shrinks_at = record.less_since.astimezone(UTC) + shrink_after
    until, after = f"{shrinks_at:%Y-%m-%d %H:%M:%S} UTC", format_duration(shrink_after)
    fact = f"{record.size:,} until {until}, since it shrinks after {after} of less (buffers.shrinkAfter)"
    return replace(share, count=record.size, facts=(*share.facts, fact), record=record, shrinks_at=shrinks_at)


def share_asked(buffer: Buffer) -> PodsOf | Unresolved | None:
    """The pods that the buffer is a share of, None where it is none, or why that cannot be made out."""
    text = buffer.annotation(PERCENT_OF_ANNOTATION) if buffer.ref.kind == CAPACITY_BUFFER_KIND else None
    if text is None:
        return None
    try:
        pods = pods_of(text)
    except Invalid as error:
        return _refused(f"has the value {text!r}: {error.message}", error.hint)
    if buffer.pod_template is None:
        return _refused("needs a podTemplateRef", "name the PodTemplate of a chunk, or remove the annotation")
    if buffer.percentage is None:
        return _refused("needs spec.percentage", "add percentage: 10, or remove the annotation")
    return pods


def _refused(message: str, hint: str) -> Unresolved:
    return Unresolved(f"{PERCENT_OF_ANNOTATION} {message}", codes.INVALID_ANNOTATION, hint)


SUSPENDED = "Suspended"
"""The condition."""


def once(
    demand: Demand, buffer: Buffer, uid: str, records: Mapping[str, OneShot], now: datetime | None = None
) -> Demand:
    """The demand of a buffer that may be one-shot. records: of those that the inventory knows, by uid. now: by the cluster's clock; None to
    ignore deadlines.

    Its chunks may stay on the nodes that they were on and nowhere else: room that became free elsewhere would be a refill.
    """
    if not buffer.is_one_shot or demand.fulfilment != Fulfilment.PLACEHOLDER:
        return demand
    record = records.get(uid, OneShot()) if uid else OneShot()
    if record.ended is not None:
        return _ended(demand, record.used, ending(*record.ended))
    asked, deadline = demand.desired, buffer.fill_deadline
    demand = replace(demand, one_shot=True, used=record.used, fill_deadline=deadline)
    by = None if deadline is None else record.gives_up(deadline)
    end = _end(record, asked or 0, deadline if by is not None and now is not None and now >= by else None)
    if end is not None:
        return _ended(demand, record.used, end)
    if asked is None:
        return demand
    time = f"until {by:%Y-%m-%d %H:%M:%S} UTC" if by is not None else deadline and format_duration(deadline)
    until = f", pods have {time} to use all of it" if time else ""
    if not record.filled:
        return replace(demand, explanation=(*demand.explanation, f"one-shot: to be filled once{until}"))
    left = min(record.left, asked)
    said = f"{left:,} left of the {asked:,} asked for"
    message = f"one-shot: filled at {record.filled}, {said}, not filled again{until}"
    groups = (
        tuple(ChunkGroup(on_nodes(group.shape, tuple(record.places)), left) for group in demand.groups) if left else ()
    )
    return replace(_said(demand, message), desired=left, left_of=asked, groups=groups, opens_nodes=False)


def _end(known: OneShot, asked: int, passed: timedelta | None) -> Condition | None:
    """What ends it now. passed: its deadline, if that has passed."""
    lost = f"; {chunks_in_words(known.lost)} went with their nodes" if known.lost else ""
    if known.filled and not known.left and known.used:
        return ending(FULFILLED, BUFFER_FILLED, f"pods have used {chunks_in_words(known.used)}{lost}, none is left")
    if known.filled and not known.left and known.lost:
        return ending(EXPIRED, CAPACITY_LOST, f"{chunks_in_words(known.lost)} went with their nodes before pods came")
    if passed is not None:
        of = chunks_in_words(max(asked, known.used + known.left))
        message = f"pods have used {known.used:,} of {of} within {format_duration(passed)}{lost}: the rest is given up"
        return ending(EXPIRED, DEADLINE_EXCEEDED, message)
    return None


def _ended(demand: Demand, used: int, end: Condition) -> Demand:
    """A demand for nothing, for good. A buffer that is not ready stays so."""
    none = None if demand.desired is None else 0
    demand = replace(_said(demand, f"one-shot: {end.message}"), one_shot=True, used=used, ended=end)
    return replace(demand, desired=none, groups=(), opens_nodes=False, conditions=(*demand.conditions, end))


def _said(demand: Demand, message: str) -> Demand:
    ready = demand.desired is not None
    conditions = tuple(
        replace(item, message=message) if ready and item.type == READY else item for item in demand.conditions
    )
    return replace(demand, conditions=conditions, explanation=(*demand.explanation, message))


def is_suspended(buffer: Buffer, live: LiveObject | None) -> bool:
    """Whether the annotation is in Git, or on the object in the cluster."""
    annotations = {} if live is None else live.body.get("metadata", {}).get("annotations") or {}
    return "true" in {buffer.annotation(SUSPEND_ANNOTATION), annotations.get(SUSPEND_ANNOTATION)}


def suspended_buffers(buffers: Iterable[Buffer], view: ClusterView) -> frozenset[ObjectRef]:
    return frozenset(item.ref for item in buffers if is_suspended(item, view.objects.get(item.ref)))


def kept_size(live: LiveObject | None, view: ClusterView) -> int:
    """What it had before, whatever Git, its workload or a quota say since. Nothing without an object. While its workload or PodTemplate is
    gone its status says no size; then what nodes hold for it counts."""
    if live is None:
        return 0
    replicas = (live.body.get("status") or {}).get("replicas")
    if isinstance(replicas, int):
        return replicas
    own = str(live.ref)
    said = (read_holdings(machine.held_for).items() for machine in view.machines)
    return sum(count for holdings in said for (name, _), count in holdings if name == own)


def suspended(demand: Demand, view: ClusterView) -> Demand:
    """Its chunks may stay on the nodes that hold some of them and nowhere else. What headroom does not hold is only counted."""
    stays = "" if demand.desired is None else f"it stays at {chunks_in_words(demand.desired)}, and "
    message = f"{SUSPEND_ANNOTATION}: {stays}no other node is taken or made for it"
    condition = Condition(SUSPENDED, ConditionStatus.TRUE, SUSPENDED, message)
    if demand.holds_nodes and demand.groups:
        held = str(demand.ref)
        nodes = tuple(item.name for item in view.machines if held in item.held_for and held in item.holders)
        demand = demand.with_shapes(lambda group: on_nodes(group.shape, nodes))
    return replace(
        demand,
        suspended=True,
        opens_nodes=False,
        conditions=(*demand.conditions, condition),
        explanation=(*demand.explanation, message),
    )

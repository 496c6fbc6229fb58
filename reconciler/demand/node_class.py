"""Buffers with a total of CPU and memory on a node class (Buffers API proposal): how the total is split into chunks.

Where the buffer does not size a chunk, the proposal leaves it to "defaults and heuristics". Here a chunk has the total's
proportions and about one core. It takes at most half of the largest node that the target allows, to fit beside daemons.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from reconciler.demand.resolve import SCALABLE_NOT_FOUND, AbsenceOf, Unresolved
from reconciler.demand.size import limit_count
from reconciler.model import codes
from reconciler.model.buffers import Buffer, NodeClassCapacity
from reconciler.model.findings import Code
from reconciler.model.launch_options import type_labels
from reconciler.model.nodes import NODEPOOL_LABEL, InstanceType, Labels, NodePool, node_pool_ref
from reconciler.model.pods import NodeSelectorTerm, PodShape
from reconciler.model.quantity import CPU, MEMORY, PODS, Resources
from reconciler.model.refs import ObjectRef, counted
from reconciler.model.requirements import Operator, Requirement, Toleration, allow

NODE_POOL = "NodePool"
_HINT = "name a NodePool, or a node class that one uses"
DEFAULT_CPU = 1000
"""Millicores of a chunk whose size the buffer does not give."""
DEFAULT_MEMORY = 4 * 2**30
"""Bytes of a chunk where the total has no CPU."""
NODE_SHARE = 2
"""A chunk takes at most this fraction of a node: one half."""


@dataclass(frozen=True, slots=True)
class Note:
    """Something about a target that the user should know, though it was found. field: its path; "" for that of the code."""

    code: Code
    message: str
    hint: str = ""
    field: str = ""


@dataclass(frozen=True, slots=True)
class Split:
    """A total as `count` chunks of one shape. facts: how it came about, one a line."""

    shape: PodShape
    count: int
    facts: tuple[str, ...]
    notes: tuple[Note, ...] = ()


def split(
    buffer: Buffer, pools: Iterable[NodePool], instance_types: Sequence[InstanceType], absence_of: AbsenceOf
) -> Split | Unresolved:
    """The chunks of a `capacity.nodeClass` buffer, together never more than its total."""
    capacity = buffer.node_class
    assert capacity is not None
    allowed = pools_of(buffer.target, pools)
    if buffer.target is not None and not allowed:
        if buffer.target.kind != NODE_POOL:
            message = f"{buffer.target} is used by no NodePool"
            return Unresolved(message, codes.TARGET_NOT_FOUND, _HINT)
        absence = absence_of(node_pool_ref(buffer.target.name))
        message = f"{buffer.target} {absence.words}"
        return Unresolved(message, codes.TARGET_NOT_FOUND, absence.hint or _HINT, SCALABLE_NOT_FOUND)
    chosen = capacity.chunk or _chunk(capacity, _rooms(capacity, allowed, instance_types))
    chunk = Resources.of((name, chosen.get(name)) for name in (CPU, MEMORY))
    count = limit_count(chunk, ((name, capacity.total.get(name)) for name in (CPU, MEMORY)))
    if not count and (chunk or capacity.total):
        message = f"one chunk ({_words(chunk)}) is more than the buffer's total ({_words(capacity.total)})"
        return Unresolved(message, codes.CHUNK_TOO_LARGE, "make the chunk smaller or the total larger")
    shape = PodShape(
        namespace=buffer.ref.namespace,
        requests=chosen + Resources.of({PODS: 1}),
        node_selector=capacity.node_selector,
        required_node_terms=_terms(buffer.target, allowed),
        tolerations=_tolerations(allowed if buffer.target is not None else ()),
    )
    notes = () if buffer.target is None else _notes(buffer.target, allowed)
    how = "as written" if capacity.chunk is not None else "chosen to fit the nodes"
    words = f"{_words(capacity.total)} in {counted(count or 0, 'chunk')} of {_words(chunk)}, {how}"
    return Split(shape, count or 0, (words,), notes)


def _words(resources: Resources) -> str:
    return ", ".join(f"{name} {text}" for name, text in resources.quantities().items()) or "nothing"


def pools_of(target: ObjectRef | None, pools: Iterable[NodePool]) -> tuple[NodePool, ...]:
    """The NodePools that a target means: itself, or those whose template uses the node class. None means all.

    The Buffers API proposal's own example names a node class by the group `apps`. A group that no NodePool knows is thus
    passed over where kind and name are those of a node class in use.
    """
    pools = tuple(pools)
    if target is None:
        return pools
    if target.kind == NODE_POOL:
        return tuple(pool for pool in pools if pool.name == target.name)
    named = tuple(
        pool
        for pool in pools
        if (node_class := pool.template.node_class) is not None
        and (node_class.kind, node_class.name) == (target.kind, target.name)
    )
    if target.group and any(_group_of(pool) == target.group for pool in pools):
        return tuple(pool for pool in named if _group_of(pool) == target.group)
    return named


def _group_of(pool: NodePool) -> str:
    return "" if pool.template.node_class is None else pool.template.node_class.group


def _notes(target: ObjectRef, pools: tuple[NodePool, ...]) -> tuple[Note, ...]:
    """On a target whose group is not that of the node class that was found by kind and name."""
    groups = sorted({_group_of(pool) for pool in pools})
    if target.kind == NODE_POOL or not target.group or target.group in groups:
        return ()
    found = f"{target.name} of {' or '.join(groups)} is taken"
    message = f"no NodePool uses a {target.kind} of the API group {target.group}: {found}"
    hint = f"write apiVersion: {groups[0]}/v1, or apiGroup: {groups[0]}"
    return (Note(codes.TARGET_IN_ANOTHER_GROUP, message, hint),)


def _terms(target: ObjectRef | None, pools: tuple[NodePool, ...]) -> tuple[NodeSelectorTerm, ...]:
    if target is None:
        return ()
    names = tuple(sorted(pool.name for pool in pools))
    return (NodeSelectorTerm((Requirement(NODEPOOL_LABEL, Operator.IN, names),)),)


def _tolerations(pools: tuple[NodePool, ...]) -> tuple[Toleration, ...]:
    """Who names the pool means its nodes, tainted or not."""
    taints = {taint for pool in pools for taint in pool.template.taints}
    ordered = sorted(taints, key=lambda taint: (taint.key, taint.value, taint.effect))
    return tuple(Toleration(taint.key, "Equal", taint.value, taint.effect) for taint in ordered)


def _rooms(
    capacity: NodeClassCapacity, pools: tuple[NodePool, ...], instance_types: Sequence[InstanceType]
) -> list[Resources]:
    """Allocatable of every instance type that a pool may launch, judged by the labels a type is known to have."""
    selectors = [(*pool.template.requirements, *_equalities(pool.template.labels)) for pool in pools] or [()]
    wanted = _equalities(capacity.node_selector)
    return [
        kind.allocatable
        for kind in instance_types
        if any(allow((*selector, *wanted), type_labels(kind)) for selector in selectors)
    ]


def _equalities(labels: Labels) -> tuple[Requirement, ...]:
    return tuple(Requirement(key, Operator.IN, (value,)) for key, value in labels)


def _chunk(capacity: NodeClassCapacity, rooms: Iterable[Resources]) -> Resources:
    cpu, memory = capacity.total.get(CPU), capacity.total.get(MEMORY)
    count = max(1, _parts(cpu, DEFAULT_CPU), _parts(memory, DEFAULT_MEMORY) if not cpu else 1)
    needed = [
        max(_parts(cpu, room.get(CPU) // NODE_SHARE), _parts(memory, room.get(MEMORY) // NODE_SHARE))
        for room in rooms
        if room.get(CPU) >= NODE_SHARE and room.get(MEMORY) >= NODE_SHARE
    ]
    count = max(count, min(needed, default=1))
    return Resources.of({CPU: cpu // count, MEMORY: memory // count})


def _parts(total: int, part: int) -> int:
    return -(-total // part)

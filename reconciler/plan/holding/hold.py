"""Which nodes are protected because they hold chunks, which are handed back, and how all are before headroom is removed.

Only changes are listed: a node that holds chunks and is already protected needs none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from reconciler.model.changes import Annotate, NodeClaimAction
from reconciler.model.nodes import (
    HELD_TAINT,
    SCARCE_TAINTS,
    NodePool,
    hold_annotations,
    node_claim_ref,
    node_ref,
)
from reconciler.model.placement import chunk_words
from reconciler.model.provisioning_requests import reserved_taints
from reconciler.model.refs import counted
from reconciler.model.view import ClusterView
from reconciler.plan.bins import Bin, by_node_pool
from reconciler.plan.node_pools.disruption_budgets import EMPTY, PoolState, allowed, pool_states

PriceOf = Callable[[Bin], float | None]


@dataclass(frozen=True, slots=True)
class Holds:
    hold: tuple[NodeClaimAction, ...] = ()
    release: tuple[NodeClaimAction, ...] = ()
    delete: tuple[NodeClaimAction, ...] = ()
    notes: tuple[str, ...] = ()

    def with_deleted(self, deleted: Sequence[NodeClaimAction]) -> Holds:
        """The same with these deleted too, instead of released."""
        names = {action.node_claim for action in deleted}
        release = tuple(action for action in self.release if action.node_claim not in names)
        delete = tuple(action for action in self.delete if action.node_claim not in names)
        return replace(self, release=release, delete=(*delete, *deleted))


def holds(
    bins: Sequence[Bin],
    *,
    now: datetime,
    node_pools: Mapping[str, NodePool],
    leaving: frozenset[str],
    rooms: frozenset[str] = frozenset(),
    price_of: PriceOf,
    blocked: bool,
) -> Holds:
    """What to protect, release and delete. Nodes that Karpenter did not make, and nodes on their way out, are left alone.

    leaving: bins that chunks had to leave, while the nodes that take their chunks are not there yet: they stay protected. rooms:
    nodes that wait for pods, protected and without a taint. blocked: nothing is released or deleted.
    """
    own = [item for item in bins if item.is_karpenters and not item.is_going]
    held = tuple(
        _hold(item, price_of, closed=closed)
        for item in own
        if item.chunks and not _is_up_to_date(item, closed=(closed := _is_to_be_closed(item)))
    )
    free = [item for item in own if not item.chunks and not item.pods and item.name not in rooms]
    waiting = [item for item in free if item.name in leaving and item.is_held]
    staying = {item.name for item in waiting}
    empty = [item for item in free if item.name not in staying]
    notes = [f"{item.name} stays protected until the node that replaces it is there" for item in waiting]
    if blocked:
        due = sum(item.is_held for item in empty)
        if due:
            notes.append(f"The release of {counted(due, 'node')} waits")
        return Holds(held, notes=tuple(notes))
    deleted = _deletable(empty, bins, node_pools, now)
    gone = {item.name for item in deleted}
    release = tuple(_release(item, price_of) for item in empty if item.is_held and item.name not in gone)
    why = "an empty placeholder, in a pool that never consolidates"
    delete = tuple(deletion(item, why, price_of) for item in deleted)
    return Holds(held, release, delete, tuple(notes))


def _is_up_to_date(item: Bin, *, closed: bool) -> bool:
    """Whether nothing has to be written: it is protected, and where the protection is headroom's, annotation and taints are up to date."""
    is_own = all(side.is_held for side in item.sides)
    marks = item.node.scarce_taints if item.node is not None else 0
    is_as_closed = (item.is_tainted, marks) == (closed, item.scarce if closed else 0) or item.is_on_its_way
    return item.is_protected and (not is_own or (item.says_what_it_holds and is_as_closed))


def _is_to_be_closed(item: Bin) -> bool:
    """A reserved node gets no held taint, which would only keep away the pods that it is for."""
    return not (item.is_served_elsewhere or item.is_reserved)


def _hold(item: Bin, price_of: PriceOf, *, closed: bool) -> NodeClaimAction:
    """Marks node and NodeClaim. If only its holdings have changed, it marks the one that they are read from."""
    told = item.is_protected and item.node is not None
    return NodeClaimAction(
        node_claim=None if item.node_claim is None or told else item.node_claim.name,
        node=None if item.node is None else item.node.name,
        node_pool=item.node_pool,
        reason=f"holds {chunk_words(item.chunks)}",
        holdings=item.chunks,
        price=price_of(item),
        closed=closed,
        scarce=item.scarce if closed else 0,
    )


def _release(item: Bin, price_of: PriceOf) -> NodeClaimAction:
    """Only node or NodeClaim with headroom's mark: a do-not-disrupt without the mark is a person's."""
    return NodeClaimAction(
        node_claim=item.node_claim.name if item.node_claim is not None and item.node_claim.is_held else None,
        node=item.node.name if item.node is not None and item.node.is_held else None,
        node_pool=item.node_pool,
        reason="holds no chunk any more",
        price=price_of(item),
    )


def deletion(item: Bin, reason: str, price_of: PriceOf) -> NodeClaimAction:
    """Of a bin that has a NodeClaim."""
    assert item.node_claim is not None
    node = None if item.node is None else item.node.name
    return NodeClaimAction(item.node_claim.name, node, item.node_pool, reason, price=price_of(item))


def _deletable(
    empty: Iterable[Bin], bins: Sequence[Bin], node_pools: Mapping[str, NodePool], now: datetime
) -> list[Bin]:
    """Empty placeholders that nobody else would remove, at most as many as the pool's Empty budget allows."""
    unused = (item for item in empty if item.is_placeholder and item.node_claim is not None and not item.in_use)
    removable = [item for item in unused if not (item.watched or item.is_kept_by_a_person)]
    chosen: list[Bin] = []
    states = pool_states(bins) if removable else {}
    for name, candidates in sorted(by_node_pool(removable).items()):
        pool = node_pools.get(name)
        if pool is not None and pool.consolidate_after is None:
            budget = allowed(pool, EMPTY, states.get(name, PoolState()), now)
            chosen += candidates if budget is None else candidates[:budget]
    return chosen


def releases(view: ClusterView) -> tuple[Annotate, ...]:
    """Removes the mark, the taints, and `do-not-disrupt` where the mark is beside it. A person's own do-not-disrupt stays."""
    gone, reason = hold_annotations(""), "headroom leaves this cluster"
    found = [Annotate(node_claim_ref(claim.name), gone, reason) for claim in view.node_claims if claim.is_held]
    for node in view.nodes:
        taints = (*((HELD_TAINT, *SCARCE_TAINTS) if node.is_held else ()), *reserved_taints(node.taints))
        if taints:
            unwanted = tuple((taint, False) for taint in taints)
            found.append(Annotate(node_ref(node.name), gone if node.is_held else (), reason, taints=unwanted))
    return tuple(found)

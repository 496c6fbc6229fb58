"""Places batch after batch: rules of topology first, then bins that are there, then new nodes. Used by place."""

from __future__ import annotations

from collections.abc import Sequence

from reconciler.model.nodes import HOSTNAME_LABEL
from reconciler.placement.batches import Batch
from reconciler.placement.fill import Task, fill_existing
from reconciler.placement.make import make_nodes
from reconciler.placement.requirements import Requirements
from reconciler.placement.spread import place_over_domains
from reconciler.placement.state import State
from reconciler.placement.topology import Rule, SpreadRule, TogetherRule


def place_batches(state: State, batches: Sequence[Batch], *, per_node: int | None) -> dict[int, int]:
    """Places all batches in order; returns how many chunks of each found no place, by batch number (those with some)."""
    unplaced: dict[int, int] = {}
    position = 0
    while position < len(batches):
        batch = batches[position]
        together = [item for item in batches[position:] if batch.whole is not None and item.whole == batch.whole]
        if together:
            unplaced |= _place_whole(state, together, per_node)
        else:
            missing = batch.count - place_batch(state, batch, batch.count, per_node=per_node)
            unplaced |= {batch.number: missing} if missing else {}
        position += max(1, len(together))
    _seek_company(state, batches, unplaced, per_node)
    return unplaced


def _seek_company(state: State, batches: Sequence[Batch], unplaced: dict[int, int], per_node: int | None) -> None:
    """Chunks that want to be near others may have come before those: they get another chance, until none comes of it."""
    progress = True
    while progress:
        progress = False
        for batch in batches:
            missing = unplaced.get(batch.number, 0)
            if missing and batch.whole is None and batch.needs.shape.pod_affinity:
                placed = place_batch(state, batch, missing, per_node=per_node)
                progress = progress or placed > 0
                unplaced[batch.number] = missing - placed
    for number in [number for number, missing in unplaced.items() if not missing]:
        del unplaced[number]


def _place_whole(state: State, batches: Sequence[Batch], per_node: int | None) -> dict[int, int]:
    """All chunks of a demand or none."""
    saved = state.save()
    for batch in batches:
        if place_batch(state, batch, batch.count, per_node=per_node) < batch.count:
            state.put_back(saved)
            return {item.number: item.count for item in batches}
    return {}


def place_batch(state: State, batch: Batch, count: int, *, per_node: int | None) -> int:
    """Places up to `count` chunks of one batch; returns how many.

    First without new nodes. Only if that is not enough they are placed again with them, since a node yet to come is an
    empty domain that spread constraints look at.
    """
    shape = batch.needs.shape
    rules = (
        *state.topology.own_rules(shape, chunks_only=batch.keeps_minimum),
        *state.topology.others_rules(shape, chunks_only=batch.keeps_minimum),
    )
    keys = sorted({*state.topology.deciding_keys(shape), *(rule.key for rule in rules)} - {HOSTNAME_LABEL})
    saved = state.save() if any(isinstance(rule, SpreadRule | TogetherRule) for rule in rules) else None
    placed = _place(state, batch, rules, keys, count=count, per_node=per_node, opening=False)
    if placed == count or not batch.opens_nodes or batch.needs.shape.resource_claims:
        return placed
    if saved is not None:
        state.put_back(saved)
        placed = 0
    return placed + _place(state, batch, rules, keys, count=count - placed, per_node=per_node, opening=True)


def _place(
    state: State,
    batch: Batch,
    rules: tuple[Rule, ...],
    keys: Sequence[str],
    *,
    count: int,
    per_node: int | None,
    opening: bool,
) -> int:
    def fill(where: Requirements, amount: int, may_open: bool) -> int:  # noqa: FBT001 - the flag that Fill documents
        return _fill(state, Task(batch, where, rules, may_open, False, per_node), amount, opening=may_open)

    if keys:
        return place_over_domains(state, batch, rules, keys, fill, count=count, opening=opening)
    return fill(Requirements(), count, opening)


def _fill(state: State, task: Task, count: int, *, opening: bool) -> int:
    hosts = [rule for rule in task.host_rules if isinstance(rule, TogetherRule)]
    if hosts and all(rule.counts_itself and not state.topology.counters[rule.counter].total() for rule in hosts):
        return _first_on_a_host(state, task, count, opening=opening)
    placed = 0
    while placed < count:
        # With each round the emptiest host may hold more, which lets a spread constraint allow more on all of them.
        step = fill_existing(state, task, count - placed)
        placed += step
        if not step or not task.host_rules:
            break
    if opening and placed < count:
        placed += make_nodes(state, task, count - placed)
    return placed


def _first_on_a_host(state: State, task: Task, count: int, *, opening: bool) -> int:
    """Pods that want to share a host and have none yet: the one node that takes most of them."""
    alone = Task(task.batch, task.where, task.rules, task.bare, True, task.per_node)
    saved = state.save()
    placed = fill_existing(state, alone, count)
    if placed == count or not opening:
        return placed
    state.put_back(saved)
    made = make_nodes(state, alone, count)
    if made >= placed:
        return made
    state.put_back(saved)
    return fill_existing(state, alone, count)

"""Why chunks could not be placed: causes counted over bins and NodePools, each with the nearest miss in words.

Reasons are computed for unplaced chunks only, against bins and limits as they are once everything else is placed. If their demand is
placed as a whole, as many of its own chunks as find a place count as placed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from operator import attrgetter

import numpy as np

from reconciler.model.demand import Demand
from reconciler.model.placement import UnplacedReason
from reconciler.model.refs import ObjectRef
from reconciler.placement.amounts import DEVICES
from reconciler.placement.batches import Batch
from reconciler.placement.engine.state import State
from reconciler.placement.phrases import asked_at_once
from reconciler.placement.reasons.no_new_nodes import is_check, why_no_new_nodes
from reconciler.placement.reasons.node_pools import NEAREST, pool_reasons
from reconciler.placement.reasons.topology import topology_words


@dataclass(frozen=True, slots=True)
class Circumstances:
    """Facts about the whole placement that reasons need.

    unused_pools: why NodePools may not be used, one each.
    per_node: how many chunks of one demand a node may hold at most, None for any number.
    demands: by their manifests.
    """

    unused_pools: tuple[UnplacedReason, ...]
    per_node: int | None
    demands: Mapping[ObjectRef, Demand]


def reasons_of(state: State, batch: Batch, circumstances: Circumstances) -> tuple[UnplacedReason, ...]:
    """Why the chunks of a batch could not be placed: the nearest candidates first. New nodes come nearer than existing ones."""
    contradiction = _contradiction(batch)
    if contradiction:
        return (UnplacedReason("contradiction", 1, contradiction),)
    found = [*_bins(state, batch)]
    if batch.opens_nodes and not batch.needs.shape.resource_claims:
        found += [*pool_reasons(state, batch), *circumstances.unused_pools]
        if not state.offers and not circumstances.unused_pools:
            found.append(UnplacedReason("no NodePool", 1, "there is no NodePool to make nodes from", NEAREST))
    elif not state.bins.origins:
        why = "" if batch.opens_nodes else f", and {why_no_new_nodes(circumstances.demands[batch.demand])}"
        found.append(UnplacedReason("no node", 1, f"the cluster has no node{why}", NEAREST))
    elif is_check(circumstances.demands[batch.demand]):
        found.append(UnplacedReason("no new nodes", 1, why_no_new_nodes(circumstances.demands[batch.demand])))
    found += _general(state, batch, circumstances)
    return tuple(sorted(found, key=attrgetter("order")))


def _contradiction(batch: Batch) -> str:
    """What the node selector and affinity ask for that no node at all can meet; "" if some node could."""
    terms = batch.needs.affinity_terms
    if not terms or not all(any(values.is_empty for _, values in term.literal.entries) for term in terms):
        return ""
    key = next(key for key, values in terms[0].literal.entries if values.is_empty)
    shape = batch.needs.shape
    expressions = [item for term in shape.required_node_terms[:1] for item in term.expressions]
    asked = asked_at_once(key, shape.node_selector, expressions)
    return f"its node selector and node affinity ask for {key} to be {asked} at once, which no node can be"


def _bins(state: State, batch: Batch) -> Iterable[UnplacedReason]:
    """Reasons of existing bins. The cause is the first constraint that allows no chunk, or else the rules between pods."""
    left = np.flatnonzero(~state.bins.closed)
    closed = state.bins.names(np.flatnonzero(state.bins.closed))
    if closed:
        yield UnplacedReason(
            "node not available", len(closed), f"{closed[0]} keeps what it holds and takes nothing else"
        )
    nearness = 0
    for constraint in state.constraints_on_nodes:
        nearness += not batch.opens_nodes
        if not len(left) or not constraint.concerns(batch):
            continue
        able = constraint.most(batch, left) > 0
        causes: dict[str, list[int]] = {}
        for number in left[~able].tolist():
            causes.setdefault(constraint.cause(batch, number), []).append(number)
        for cause, numbers in causes.items():
            yield UnplacedReason(cause, len(numbers), constraint.reason(batch, numbers), nearness)
        left = left[able]
    if len(left):
        first = int(left[0])
        words = f"{state.bins.origins[first].name}: {topology_words(state, batch, first)}"
        yield UnplacedReason("topology", len(left), words, nearness)


def _general(state: State, batch: Batch, circumstances: Circumstances) -> Iterable[UnplacedReason]:
    if batch.needs.shape.resource_claims:
        words = "resource claims are not judged, so no node is made for them"
        yield UnplacedReason("resource claims", 1, words, NEAREST)
    elif batch.opens_nodes and _wants_unknown_devices(state, batch):
        yield UnplacedReason(
            "resource claims",
            1,
            "what devices a new node has is known where nodes of its NodePool and instance type are up and agree: here of none",
            NEAREST,
        )
    if circumstances.per_node is not None and not batch.pods and state.offers:
        yield UnplacedReason(
            "share of a node", 1, f"at most {circumstances.per_node} chunks of one demand go on a node"
        )


def _wants_unknown_devices(state: State, batch: Batch) -> bool:
    """Whether the batch asks for devices that no new node is known to have."""
    columns = [number for number, name in enumerate(state.columns.names) if name.startswith(DEVICES)]
    wanted = [number for number in columns if batch.needs.request[number]]
    return any(not any((offers.room[:, number] > 0).any() for offers in state.offers) for number in wanted)

"""Why chunks found no place: causes counted over candidates, each with its nearest miss in words. Used by place.

Reckoned only for what was left over, against the bins and limits as they are in the end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from reconciler.model.placement import UnplacedReason
from reconciler.placement.amounts import times
from reconciler.placement.constraints.dynamic_resources import DEVICES
from reconciler.placement.engine.batches import Batch
from reconciler.placement.engine.state import State
from reconciler.placement.label_table import Mask
from reconciler.placement.needs import NodeTerm, ports_clash, tolerated
from reconciler.placement.nodes.existing import BinOrigin, Bins
from reconciler.placement.reasons.node_pools import MATCHES_NOTHING, lack_words, nearest, pool_reasons
from reconciler.placement.reasons.phrases import (
    amount_words,
    asked_at_once,
    instead_words,
    listed,
    ports_words,
    suggestion,
    taint_words,
)
from reconciler.placement.reasons.topology import topology_words
from reconciler.placement.requirements import WELL_KNOWN, Values


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What the placement ran with: pools that may not be used and why, most chunks of one demand on a node."""

    unused_pools: tuple[tuple[str, str], ...]
    per_node: int | None


def reasons_of(state: State, batch: Batch, circumstances: Circumstances) -> tuple[UnplacedReason, ...]:
    """Most frequent cause first, then by words."""
    contradiction = _contradiction(batch)
    if contradiction:
        return (UnplacedReason("contradiction", 1, contradiction),)
    found = [*_bins(state, batch)]
    if batch.opens_nodes and not batch.needs.shape.resource_claims:
        found += [
            *pool_reasons(state, batch),
            *(
                UnplacedReason("NodePool not usable", 1, f"NodePool {name} {why}")
                for name, why in circumstances.unused_pools
            ),
        ]
        if not state.offers and not circumstances.unused_pools:
            found.append(UnplacedReason("no NodePool", 1, "there is no NodePool to make nodes from"))
    elif not state.bins.origins:
        found.append(UnplacedReason("no node", 1, "the cluster has no node, and no new nodes are made for this demand"))
    found += _general(state, batch, circumstances)
    return tuple(sorted(found, key=lambda reason: (-reason.count, reason.cause, reason.example)))


def _contradiction(batch: Batch) -> str:
    """What no node whatever can be, by the selector and affinity alone; "" when some node could."""
    terms = batch.needs.affinity_terms
    if not terms or not all(any(values.is_empty for _, values in term.literal.entries) for term in terms):
        return ""
    key = next(key for key, values in terms[0].literal.entries if values.is_empty)
    shape = batch.needs.shape
    expressions = [item for term in shape.required_node_terms[:1] for item in term.expressions]
    asked = asked_at_once(key, shape.node_selector, expressions)
    return f"its node selector and node affinity ask for {key} to be {asked} at once, which no node can be"


def _bins(state: State, batch: Batch) -> Iterable[UnplacedReason]:
    bins = state.bins
    causes: dict[str, list[int]] = {}
    fitting, tolerated_here = bins.fitting(batch.needs), bins.tolerated(batch.needs)
    room = times(state.free(batch), batch.needs.request)
    whole = times(np.maximum(bins.room, 0), batch.needs.request)
    others = _made_for_others(bins, batch)
    for number in range(len(bins)):
        if bins.origins[number].unavailable:
            cause = "node not available"
        elif not fitting[number]:
            cause = "node labels"
        elif not tolerated_here[number]:
            cause = "node taints"
        elif whole[number] < 1:
            cause = "node too small"
        elif room[number] < 1:
            cause = "node full"
        elif others[number]:
            cause = "resource claims"
        elif ports_clash(batch.needs.shape.host_ports, state.ports_of(number)):
            cause = "host port taken"
        else:
            cause = "topology"
        causes.setdefault(cause, []).append(number)
    for cause, numbers in causes.items():
        yield UnplacedReason(cause, len(numbers), _bin_example(state, batch, cause, numbers))


def _made_for_others(bins: Bins, batch: Batch) -> Mask:
    if batch.keeps_off_placeholders:
        return bins.made_for_others(str(batch.demand), batch.members[0].group)
    return np.zeros(len(bins), dtype=np.bool_)


def _bin_example(state: State, batch: Batch, cause: str, numbers: Sequence[int]) -> str:
    origins = [state.bins.origins[number] for number in numbers]
    match cause:
        case "node not available":
            words = _not_available(origins)
        case "node taints":
            words = _taint_miss(batch, origins)
        case "node too small":
            row, lacking = nearest(batch, np.maximum(state.bins.room[list(numbers)], 0))
            words = f"{origins[row].name} lacks {lack_words(state, lacking)} even without the pods on it"
        case "node full":
            words = _full(state, batch, numbers)
        case "node labels":
            words = _label_miss(state, batch, numbers)
        case "resource claims":
            words = f"{origins[0].name} was made for other chunks, and resource claims are not judged"
        case "host port taken":
            taken = [port for port in batch.needs.shape.host_ports if ports_clash((port,), state.ports_of(numbers[0]))]
            words = f"{origins[0].name} has host port {ports_words(taken)} in use"
        case _:
            words = f"{origins[0].name}: {topology_words(state, batch, numbers[0])}"
    return words


def _not_available(origins: Sequence[BinOrigin]) -> str:
    """Each reason with the first node that has it: `node-1 is cordoned, node-2 and 3 others are not ready`."""
    counts = Counter(origin.unavailable for origin in origins)
    first = {origin.unavailable: origin.name for origin in reversed(origins)}
    return listed(_those(first[reason], count - 1, reason) for reason, count in counts.most_common())


def _those(name: str, others: int, reason: str) -> str:
    if not others:
        return f"{name} {reason}"
    plural = f"are{reason.removeprefix('is')}" if reason.startswith("is ") else reason
    return f"{name} and {others} other{'s' if others > 1 else ''} {plural}"


def _taint_miss(batch: Batch, origins: Iterable[BinOrigin]) -> str:
    """The node with the fewest taints that are in the way."""
    tolerations = batch.needs.shape.tolerations
    missed = {
        origin.name: [taint for taint in origin.taints if not tolerated((taint,), tolerations)] for origin in origins
    }
    name = min(missed, key=lambda item: len(missed[item]))
    return f"{name} {taint_words(missed[name], tolerations)}"


def _full(state: State, batch: Batch, numbers: Sequence[int]) -> str:
    free = np.maximum(state.free(batch)[list(numbers)], 0)
    row, lacking = nearest(batch, free)
    words = f"{state.bins.origins[numbers[row]].name} lacks {lack_words(state, lacking)}"
    if len(lacking) != 1:
        return words
    (column,) = lacking
    name, has = state.columns.names[column], int(free[row][column])
    if name.startswith(DEVICES) or not has:
        return words
    return f"{words}, with {amount_words(name, has)} free"


_MOST_LOOKED_AT = 200
"""Nodes among which the one with the fewest wrong labels is looked for."""


def _label_miss(state: State, batch: Batch, numbers: Sequence[int]) -> str:
    """What the node with the fewest wrong labels has, or lacks."""
    if not batch.needs.terms:
        return MATCHES_NOTHING
    judged = [(state.bins.origins[number], term) for number in numbers[:_MOST_LOOKED_AT] for term in batch.needs.terms]
    misses = [_wrong_labels(origin, term) for origin, term in judged]
    fewest = min(misses, key=len)
    origin, term = judged[misses.index(fewest)]
    missing = [key for key, _ in term.literal.entries if origin.labels.get(key) is None]
    near = suggestion(missing[0], state.bins.table.keys | WELL_KNOWN) if missing and not state.offers else ""
    return f"{origin.name} {listed(fewest)}{near}"


def _wrong_labels(origin: BinOrigin, term: NodeTerm) -> list[str]:
    wrong = [
        words for key, values in term.literal.entries if (words := _wrong_label(key, origin.labels.get(key), values))
    ]
    found = [f"has {words}" if index == 0 else words for index, words in enumerate(wrong)]
    if not all(values.allows(origin.name) for _, values in term.names.entries):
        found.append("is not the node that is asked for by name")
    return found


def _wrong_label(key: str, cell: str | tuple[str | None, ...] | None, values: Values) -> str:
    """What is wrong with the label, "" when nothing is."""
    possible = cell if isinstance(cell, tuple) else (cell,)
    if all(values.allows(value) for value in possible):
        return ""
    if cell is None:
        return f"no label {key}"
    return f"{key}={' or '.join(map(str, possible))}, {instead_words(values)}"


def _general(state: State, batch: Batch, circumstances: Circumstances) -> Iterable[UnplacedReason]:
    if batch.whole is not None:
        yield UnplacedReason("all or nothing", 1, f"{batch.demand} is placed as a whole or not at all")
    if batch.needs.shape.resource_claims:
        yield UnplacedReason("resource claims", 1, "resource claims are not judged, so no node is made for them")
    elif batch.opens_nodes and _wants_unknown_devices(state, batch):
        yield UnplacedReason(
            "resource claims",
            1,
            "what devices a new node has is known where nodes of its NodePool and instance type are up and agree: here of none",
        )
    if circumstances.per_node is not None and not batch.pods and state.offers:
        yield UnplacedReason(
            "share of a node", 1, f"at most {circumstances.per_node} chunks of one demand go on a node"
        )


def _wants_unknown_devices(state: State, batch: Batch) -> bool:
    """Whether it asks for devices of which no new node is known to have any."""
    columns = [number for number, name in enumerate(state.columns.names) if name.startswith(DEVICES)]
    wanted = [number for number in columns if batch.needs.request[number]]
    return any(not any((offers.room[:, number] > 0).any() for offers in state.offers) for number in wanted)

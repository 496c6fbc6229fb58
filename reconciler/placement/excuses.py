"""Why chunks found no place: causes counted over candidates, each with its nearest miss in words. Used by place.

Reckoned only for what was left over, against the bins and limits as they are in the end.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from reconciler.model.nodes import CAPACITY_TYPE_LABEL, HOSTNAME_LABEL, INSTANCE_TYPE_LABEL, ZONE_LABEL, NodePool
from reconciler.model.placement import Excuse
from reconciler.model.quantity import format_amount, readable_amount
from reconciler.model.requirements import Taint
from reconciler.placement.amounts import times
from reconciler.placement.batches import Batch
from reconciler.placement.bins import BinOrigin, Bins
from reconciler.placement.candidates import NoRows, PoolOffers
from reconciler.placement.counters import ApartRule, SpreadRule
from reconciler.placement.label_table import Amounts, Mask
from reconciler.placement.pool_limits import MINIMUMS, NODES, NOTHING, RESERVATION_MARK, Shortage
from reconciler.placement.requirements import Requirements
from reconciler.placement.reservations import is_reservation
from reconciler.placement.resource_claims import DEVICES
from reconciler.placement.shapes import NodeTerm, ports_clash, tolerated
from reconciler.placement.state import State
from reconciler.placement.volume_limits import ATTACHABLE


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What the placement ran with: pools that may not be used and why, most chunks of one demand on a node."""

    unused_pools: tuple[tuple[str, str], ...]
    per_node: int | None


def unused(pool: NodePool) -> str:
    """Why a pool takes no placeholders."""
    if pool.replicas is not None:
        return "is static"
    return "is being deleted" if pool.deleting else "is not ready"


def excuses_of(state: State, batch: Batch, circumstances: Circumstances) -> tuple[Excuse, ...]:
    """Most frequent cause first, then by words."""
    if batch.needs.shape.obstacle:
        return (Excuse("volumes", 1, batch.needs.shape.obstacle),)
    found = [*_bins(state, batch)]
    if batch.opens_nodes and not batch.needs.shape.resource_claims:
        found += [
            *_pools(state, batch),
            *(Excuse("NodePool not usable", 1, f"NodePool {name} {why}") for name, why in circumstances.unused_pools),
        ]
        if not state.offers and not circumstances.unused_pools:
            found.append(Excuse("no NodePool", 1, "there is no NodePool to make nodes from"))
    elif not state.bins.origins:
        found.append(Excuse("no node", 1, "the cluster has no node, and no new nodes are made for this demand"))
    found += _general(state, batch, circumstances)
    return tuple(sorted(found, key=lambda excuse: (-excuse.count, excuse.reason, excuse.example)))


def _bins(state: State, batch: Batch) -> Iterable[Excuse]:
    bins = state.bins
    causes: dict[str, list[int]] = {}
    fitting, tolerated_here = bins.fitting(batch.needs), bins.tolerated(batch.needs)
    room = times(state.free(batch), batch.needs.request)
    others = _made_for_others(bins, batch)
    for number in range(len(bins)):
        if bins.origins[number].excuse:
            cause = "node not available"
        elif not fitting[number]:
            cause = "node labels"
        elif not tolerated_here[number]:
            cause = "node taints"
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
        yield Excuse(cause, len(numbers), _bin_example(state, batch, cause, numbers))


_OF_A_NODE = {
    "resource claims": "was made for other chunks, and resource claims are not judged",
    "host port taken": "has a host port in use that is asked for",
}


def _made_for_others(bins: Bins, batch: Batch) -> Mask:
    if batch.keeps_off_placeholders:
        return bins.made_for_others(str(batch.demand), batch.members[0].group)
    return np.zeros(len(bins), dtype=np.bool_)


def _bin_example(state: State, batch: Batch, cause: str, numbers: Sequence[int]) -> str:
    origins = state.bins.origins
    name = origins[numbers[0]].name
    match cause:
        case "node not available":
            return f"{name} {origins[numbers[0]].excuse}"
        case "node taints":
            taint = next(t for t in origins[numbers[0]].taints if not tolerated((t,), batch.needs.shape.tolerations))
            return f"{name} has taint {_taint(taint)}, which is not tolerated"
        case "node full":
            free = np.maximum(state.free(batch)[list(numbers)], 0)
            row, words = _nearest(state, batch, free)
            return f"{origins[numbers[row]].name} lacks {words}"
        case "node labels":
            return _label_miss(state, batch, numbers)
        case "resource claims" | "host port taken":
            return f"{name} {_OF_A_NODE[cause]}"
        case _:
            return f"{name}: {_topology_words(state, batch)}"


_MATCHES_NOTHING = "its required node affinity has none but empty terms, and an empty term matches no node"
_MOST_LOOKED_AT = 200
"""Nodes among which the one with the fewest wrong labels is looked for."""


def _label_miss(state: State, batch: Batch, numbers: Sequence[int]) -> str:
    """What the node with the fewest wrong labels has, or lacks."""
    if not batch.needs.terms:
        return _MATCHES_NOTHING
    misses = [
        _wrong_labels(state.bins.origins[number], term)
        for number in numbers[:_MOST_LOOKED_AT]
        for term in batch.needs.terms
    ]
    fewest = min(misses, key=_length)
    return " and ".join(fewest)


def _length(words: Sequence[str]) -> int:
    return sum(part.count(" and ") + 1 for part in words)


def _wrong_labels(origin: BinOrigin, term: NodeTerm) -> list[str]:
    wrong = []
    for key, values in term.literal.entries:
        cell = origin.labels.get(key)
        possible = cell if isinstance(cell, tuple) else (cell,)
        if not all(values.allows(value) for value in possible):
            wrong.append(f"no label {key}" if cell is None else f"{key}={' or '.join(map(str, possible))}")
    found = [f"{origin.name} has {' and '.join(wrong)}"] if wrong else []
    if not all(values.allows(origin.name) for _, values in term.names.entries):
        found.append(f"{origin.name} is not the node that is asked for by name")
    return found


def _nearest(state: State, batch: Batch, free: Amounts) -> tuple[int, str]:
    """The row that lacks the smallest share of the request, and what it lacks."""
    request = batch.needs.request
    lacking = np.maximum(request - free, 0)
    shares = (lacking / np.maximum(request, 1)).sum(axis=1)
    row = int(np.argmin(shares))
    words = [
        _amount(name, int(lacking[row][column]))
        for column, name in enumerate(state.columns.names)
        if lacking[row][column] > 0
    ]
    return row, " and ".join(words) or "room"


def _pools(state: State, batch: Batch) -> Iterable[Excuse]:
    for offers in state.offers:
        if is_reservation(offers):
            continue  # its NodePool is told of
        name = offers.pool.name
        taints = [t for t in offers.taints if not tolerated((t,), batch.needs.shape.tolerations)]
        if taints:
            yield Excuse("NodePool taints", 1, f"NodePool {name} has taint {_taint(taints[0])}, which is not tolerated")
            continue
        yield _pool_excuse(state, batch, offers)


def _pool_excuse(state: State, batch: Batch, offers: PoolOffers) -> Excuse:
    name = offers.pool.name
    if not batch.needs.wishes:
        by_name = "a node by name is asked for, which no new node can be"
        return Excuse("node labels", 1, by_name if batch.needs.terms else _MATCHES_NOTHING)
    rows = offers.rows_for(batch.needs.wishes[-1].wanted)
    if isinstance(rows, NoRows):
        return Excuse("NodePool labels", 1, f"NodePool {name} {_label_words(rows)}")
    if not rows.any():
        return _no_offering(state, batch, offers)
    kinds = np.flatnonzero(offers.offerings.types_in(rows))
    fits = times(offers.room[kinds], batch.needs.request) > 0
    if not fits.any():
        return Excuse(
            "instance type too small",
            len(kinds),
            f"NodePool {name}: {_too_small(state, batch, offers, kinds.tolist())}",
        )
    shortages = [state.limits.shortage(name, offers.capacities[kind]) for kind in kinds[fits].tolist()]
    missing = [shortage for shortage in shortages if shortage is not None]
    if len(missing) == len(shortages):
        return _limit_excuse(offers, missing)
    return _rule_excuse(state, batch, offers)


def _no_offering(state: State, batch: Batch, offers: PoolOffers) -> Excuse:
    """Offerings that would do but cannot be had now come first; else the label that none has."""
    name, wanted = offers.pool.name, batch.needs.wishes[-1].wanted
    sold_out = _sold_out(batch, offers, wanted)
    if sold_out:
        first = sold_out[0]
        place = f"{first[INSTANCE_TYPE_LABEL]} in {first[ZONE_LABEL]} as {first[CAPACITY_TYPE_LABEL]}"
        rest = len(sold_out) - 1
        others = f" and {rest} other{'s' if rest > 1 else ''}" if rest else ""
        words = f"what would do is not available now: {place}{others}"
        return Excuse("offering not available", len(sold_out), f"NodePool {name}: {words}")
    used_up = _used_up(state, batch, offers)
    if used_up:
        names = f"reservation{'s' if len(used_up) > 1 else ''} {', '.join(used_up)}"
        return Excuse("offering not available", len(used_up), f"NodePool {name}: nothing is left of {names}")
    if not any(item.rows.any() for item in state.offers if item.pool.name.partition(RESERVATION_MARK)[0] == name):
        having = " that has what the NodePool itself requires" if len(offers.rows) else ""
        return Excuse("no instance type", 1, f"NodePool {name}: nothing is for sale now{having}")
    table = offers.offerings.table
    for key, values in wanted.only(table.keys).entries:
        if not (offers.rows & table.allowed(key, values)).any():
            return Excuse("no instance type", 1, f"NodePool {name}: no offering has the {key} asked for")
    return Excuse("no instance type", 1, f"NodePool {name}: no offering has all the labels asked for together")


def _used_up(state: State, batch: Batch, offers: PoolOffers) -> list[str]:
    """Reservations that hold the chunk and have what it wants, and that other nodes have all of."""
    found = []
    for item in state.offers:
        pool, mark, reservation = item.pool.name.partition(RESERVATION_MARK)
        shortage = state.limits.shortage(item.pool.name, NOTHING) if mark and pool == offers.pool.name else None
        if shortage is not None and shortage.resource not in (NODES, MINIMUMS):
            rows = item.rows_for(batch.needs.wishes[-1].wanted)
            if not isinstance(rows, NoRows) and (rows & item.rows_holding(batch.needs.request)).any():
                found.append(reservation)
    return found


def _sold_out(batch: Batch, offers: PoolOffers, wanted: Requirements) -> list[Mapping[str, str]]:
    rows = offers.offerings.unavailable
    keys = frozenset(key for row in rows for key in row)
    asked = wanted.only(keys).both(offers.template.only(keys))
    fits = times(offers.room, batch.needs.request) > 0
    large = {kind.name for kind, enough in zip(offers.offerings.types, fits.tolist(), strict=True) if enough}
    return [row for row in rows if row[INSTANCE_TYPE_LABEL] in large and asked.match(row)]


def _too_small(state: State, batch: Batch, offers: PoolOffers, kinds: Sequence[int]) -> str:
    """How many types would do if the chunk asked for that much less, and how many lack more."""
    rooms = np.maximum(offers.room[list(kinds)], 0)
    row, words = _nearest(state, batch, rooms)
    reduced = np.minimum(batch.needs.request, rooms[row])
    count = int(np.all(rooms >= reduced, axis=1).sum())
    rest = len(kinds) - count
    plural = "type fits" if count == 1 else "types fit"
    return f"{count} {plural} but for {words}" + (
        f", {rest} more {'lacks' if rest == 1 else 'lack'} more" if rest else ""
    )


def _rule_excuse(state: State, batch: Batch, offers: PoolOffers) -> Excuse:
    name = offers.pool.name
    if ports_clash(batch.needs.shape.host_ports, offers.host_ports):
        return Excuse("host port taken", 1, f"NodePool {name}: a daemon set uses a host port that is asked for")
    if offers.minimums:
        return Excuse("minValues", 1, f"NodePool {name}: {_minimum_words(offers)}")
    return Excuse("topology", 1, f"NodePool {name}: {_topology_words(state, batch)}")


def _minimum_words(offers: PoolOffers) -> str:
    for key, minimum in offers.minimums:
        if key not in offers.offerings.table.keys:
            return f"no instance type has label {key}, of which its minValues asks for {minimum}"
    return f"too few values of {', '.join(key for key, _ in offers.minimums)} are left for its minValues"


def _label_words(missing: NoRows) -> str:
    if not missing.undefined:
        return f"allows other values of label {missing.key}"
    if missing.key == HOSTNAME_LABEL:
        return "makes nodes whose names are not known before, and one is asked for by name"
    return f"does not define label {missing.key}, nor does any instance type"


def _limit_excuse(offers: PoolOffers, missing: Sequence[Shortage]) -> Excuse:
    name = offers.pool.name
    if any(shortage.resource == MINIMUMS for shortage in missing):
        words = "of one more node too few values would be left for its minValues"
        return Excuse("minValues", 1, f"NodePool {name}: {words}{' within its limits' if offers.pool.limits else ''}")
    return Excuse("NodePool limit", len(missing), _limit_words(name, missing))


def _limit_words(pool: str, shortages: Sequence[Shortage]) -> str:
    least = min(shortages, key=lambda item: item.resource)
    limit = format_amount(least.resource, least.limit)
    if least.used >= least.limit:
        return f"NodePool {pool} is at its {least.resource} limit of {limit}"
    used = format_amount(least.resource, least.used)
    return f"NodePool {pool} has used {used} of its {least.resource} limit of {limit}, and no type is small enough"


def _topology_words(state: State, batch: Batch) -> str:
    rules = state.course(batch).rules
    if not rules:
        return "no more than is there may be placed on one node"
    words = []
    for rule in rules:
        if isinstance(rule, SpreadRule):
            words.append(f"spread over {rule.key} (maxSkew {rule.max_skew}{_too_few_domains(state, rule)})")
        elif isinstance(rule, ApartRule):
            words.append(f"anti-affinity by {rule.key}")
        else:
            words.append(f"affinity by {rule.key}")
    return "ruled out by " + ", ".join(sorted(set(words)))


def _too_few_domains(state: State, rule: SpreadRule) -> str:
    """`; minDomains 5, 3 zones are there`: the least count is then taken for 0 (KEP-3022), whatever the domains hold."""
    inclusion = state.topology.counters[rule.counter].counted.inclusion
    domains = state.topology.existing_domains(rule)
    if rule.key == HOSTNAME_LABEL:
        there = len(domains) + (len(state.planned_hosts(inclusion)) if state.planned.count else 0)
    else:
        there = len(domains | state.planned_domains(rule.key, inclusion))
    if there >= rule.min_domains:
        return ""
    noun = {ZONE_LABEL: "zone", HOSTNAME_LABEL: "node"}.get(rule.key, "domain")
    if rule.min_domains == 1:  # as if nothing were written
        return f"; no {noun} is there"
    return f"; minDomains {rule.min_domains}, {there} {noun}{' is' if there == 1 else 's are'} there"


def _general(state: State, batch: Batch, circumstances: Circumstances) -> Iterable[Excuse]:
    if batch.whole is not None:
        yield Excuse("all or nothing", 1, f"{batch.demand} is placed as a whole or not at all")
    if batch.needs.shape.resource_claims:
        yield Excuse("resource claims", 1, "resource claims are not judged, so no node is made for them")
    elif batch.opens_nodes and _wants_unknown_devices(state, batch):
        yield Excuse(
            "resource claims",
            1,
            "what devices a new node has is known where nodes of its NodePool and instance type are up and agree: here of none",
        )
    if circumstances.per_node is not None and not batch.pods and state.offers:
        yield Excuse("share of a node", 1, f"at most {circumstances.per_node} chunks of one demand go on a node")


def _wants_unknown_devices(state: State, batch: Batch) -> bool:
    """Whether it asks for devices of which no new node is known to have any."""
    columns = [number for number, name in enumerate(state.columns.names) if name.startswith(DEVICES)]
    wanted = [number for number in columns if batch.needs.request[number]]
    return any(not any((offers.room[:, number] > 0).any() for offers in state.offers) for number in wanted)


def _taint(taint: Taint) -> str:
    value = f"={taint.value}" if taint.value else ""
    return f"{taint.key}{value}:{taint.effect}"


def _amount(name: str, amount: int) -> str:
    """`100m CPU`, `1 device of class gpu`, `2 volumes of ebs.csi.aws.com`."""
    plural = "" if amount == 1 else "s"
    if name.startswith(DEVICES):
        return f"{amount} device{plural} of class {name.removeprefix(DEVICES)}"
    if name.startswith(ATTACHABLE):
        return f"{amount} volume{plural} of {name.removeprefix(ATTACHABLE)}"
    return f"{readable_amount(name, amount)} {'CPU' if name == 'cpu' else name}"

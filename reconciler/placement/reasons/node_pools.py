"""Why no NodePool makes a node for a chunk: for each pool the causes for the alternative of node affinity that comes nearest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from reconciler.model.nodes import CAPACITY_TYPE_LABEL, HOSTNAME_LABEL, INSTANCE_TYPE_LABEL, ZONE_LABEL, NodePool
from reconciler.model.placement import Cause, UnplacedReason
from reconciler.model.quantity import readable_amount
from reconciler.placement.arrays import times
from reconciler.placement.batches import Batch
from reconciler.placement.constraints.limits import NODES, RESERVATION_MARK, is_reservation
from reconciler.placement.constraints.min_values import min_values_reason
from reconciler.placement.constraints.node_rules import (
    MATCHES_NOTHING,
    taint_words,
    taken_on_each_node,
    tolerated,
)
from reconciler.placement.constraints.resources_fit import lack_words, nearest
from reconciler.placement.engine.state import State
from reconciler.placement.offers.pool_offers import PoolOffers
from reconciler.placement.phrases import amount_words, instead_words, labelled, listed, resource_words, suggestion
from reconciler.placement.requirements import WELL_KNOWN, Mask, Requirements, Values

_MOST_LOOKED_AT = 32
"""How many alternatives are looked at to find the nearest. Volumes may lead to hundreds."""
_ALLOWED = 5
"""How far an alternative comes if some offering would do, so that only topology rules are in the way."""
_REFUSED_AT_ONCE = 1
"""The nearness of a pool that takes no such chunk at all. It is not the reason if another pool came nearer."""
NEAREST = _REFUSED_AT_ONCE + 1 + _ALLOWED + 1
"""The nearness of a reason that holds for every pool."""
_Judged = tuple[int, list[UnplacedReason]]
"""How far an alternative came, and the reasons why it came no further."""


def unused(pool: NodePool) -> UnplacedReason:
    """Why a pool takes no placeholders."""
    words = "is being deleted" if pool.deleting else f"is not ready ({pool.unready})"
    if pool.replicas is not None:
        words = f"is static: it has a fixed number of nodes (spec.replicas: {pool.replicas}) and makes none for pods"
    sentence = f"NodePool {pool.name} {words}"
    return UnplacedReason(Cause.NODE_POOL_NOT_USABLE, 1, sentence, _REFUSED_AT_ONCE, node_pool=pool.name)


Words = Callable[[], str]
"""Says which rules between pods keep chunks off all nodes that could be made."""


def pool_reasons(state: State, batch: Batch, between_pods: Words) -> Iterable[UnplacedReason]:
    for offers in state.offers:
        if is_reservation(offers):
            continue  # its NodePool has reasons of its own
        name, tolerations = offers.pool.name, batch.needs.shape.tolerations
        taints = [taint for taint in offers.taints if not tolerated((taint,), tolerations)]
        far, found = _nearest_alternative(state, batch, offers, between_pods)
        if taints:
            beside = "" if far == _ALLOWED else _beside(name, found[0].example)
            words = f"NodePool {name} {taint_words(taints, tolerations)}{beside}"
            yield UnplacedReason(Cause.NODE_POOL_TAINTS, 1, words, _REFUSED_AT_ONCE, node_pool=name)
        else:
            yield from (replace(item, nearness=_REFUSED_AT_ONCE + 1 + far, node_pool=name) for item in found)


def _beside(pool: str, example: str) -> str:
    """What else is in the way, so that whoever removes the taint is not surprised by the next reason."""
    rest = example.removeprefix(f"NodePool {pool}")
    return f"; apart from that, {rest.removeprefix(': ') if rest.startswith(': ') else f'it{rest}'}"


def _nearest_alternative(state: State, batch: Batch, offers: PoolOffers, between_pods: Words) -> _Judged:
    alternatives = list(
        dict.fromkeys(relaxation.wanted for relaxation in batch.needs.relaxations if relaxation.soft_taints)
    )[:_MOST_LOOKED_AT]
    if not alternatives:
        by_name = "a node by name is asked for, which no new node can be"
        words = f"NodePool {offers.pool.name}: {by_name if batch.needs.terms else MATCHES_NOTHING}"
        return 0, [UnplacedReason(Cause.NODE_POOL_LABELS, 1, words)]
    judged = [_judged(state, batch, offers, wanted, between_pods) for wanted in alternatives]
    far, found = max(judged, key=lambda item: item[0])
    if len(alternatives) == 1 or batch.needs.shape.attachment_terms:
        return far, found
    words = f"the nearest of the {len(alternatives)} alternatives of its node affinity"
    return far, [UnplacedReason(item.cause, item.count, f"{item.example} ({words})") for item in found]


def _judged(state: State, batch: Batch, offers: PoolOffers, wanted: Requirements, between_pods: Words) -> _Judged:
    name = offers.pool.name
    rows, ruled_out_by = offers.rows_for(wanted), offers.ruled_out_by(wanted)
    if ruled_out_by is not None:
        return 0, [
            UnplacedReason(Cause.NODE_POOL_LABELS, 1, f"NodePool {name} {_label_words(offers, wanted, *ruled_out_by)}")
        ]
    if not rows.any():
        return 1, [_no_offering(state, batch, offers, wanted)]
    instance_types = np.flatnonzero(offers.offerings.types_in(rows))
    fits = times(offers.room[instance_types], batch.needs.request) > 0
    if not fits.any():
        small = f"NodePool {name}: {_too_small(state, batch, offers, instance_types.tolist())}"
        sold_out = _sold_out(batch, offers, wanted)
        gone = [_sold_out_reason(name, sold_out)] if sold_out else []
        return 2 + len(gone), [*gone, UnplacedReason(Cause.INSTANCE_TYPE_TOO_SMALL, len(instance_types), small)]
    fitting = instance_types[fits].tolist()
    shortages = [state.limits.shortage(name, offers.capacities[number]) for number in fitting]
    missing = [shortage for shortage in shortages if shortage is not None]
    if len(missing) == len(shortages):
        words = f"NodePool {name} {state.limits.words(offers, missing, fitting)}"
        return _ALLOWED - 1, [UnplacedReason(Cause.AT_LIMIT, len(missing), words)]
    short = min_values_reason(offers, rows & offers.rows_holding(batch.needs.request), state.limits)
    if short is not None:
        return _ALLOWED - 1, [short]
    ports = taken_on_each_node(batch, offers.host_ports)
    cause, words = (Cause.PORT_TAKEN, ports) if ports else (Cause.TOPOLOGY, between_pods())
    return _ALLOWED, [UnplacedReason(cause, 1, f"NodePool {name}: {words}")]


def _label_words(offers: PoolOffers, wanted: Requirements, key: str, undefined: bool) -> str:  # noqa: FBT001 - as found
    if key == HOSTNAME_LABEL:
        return "makes nodes whose names are not known before, and one is asked for by name"
    if undefined:
        known = offers.offerings.table.keys | {name for name, _ in offers.template.entries} | WELL_KNOWN
        return f"does not define label {key}, nor does any instance type{suggestion(key, known)}"
    own, asked = offers.template.get(key) or Values(), wanted.get(key) or Values()
    return f"makes nodes with {labelled(key, own)}, {instead_words(asked)}"


def _no_offering(state: State, batch: Batch, offers: PoolOffers, wanted: Requirements) -> UnplacedReason:
    """Offerings that would do but are not available now come first; otherwise the label that no offering has."""
    name, sold_out = offers.pool.name, _sold_out(batch, offers, wanted)
    if sold_out:
        return _sold_out_reason(name, sold_out)
    used_up = _used_up(state, batch, offers, wanted)
    if used_up:
        names = f"reservation{'s' if len(used_up) > 1 else ''} {', '.join(used_up)}"
        return UnplacedReason(Cause.NOT_AVAILABLE, len(used_up), f"NodePool {name}: nothing is left of {names}")
    return UnplacedReason(Cause.NO_INSTANCE_TYPE, 1, f"NodePool {name}: {_missing_label(offers, wanted)}")


def _missing_label(offers: PoolOffers, wanted: Requirements) -> str:
    table = offers.offerings.table
    if not len(offers.rows):
        return "the catalog has no offering that can be had now"
    if not offers.rows.any():
        return _own_requirements(offers)
    asked = wanted.only(table.keys)
    for key, values in asked.entries:
        if not (offers.rows & table.allowed(key, values)).any():
            return f"no offering has {labelled(key, values)}: there {_there(offers, key)}"
    together = list(asked.entries)
    for entry in asked.entries:  # leaves out what rules nothing out
        rest = [item for item in together if item is not entry]
        if not (offers.rows & table.matching(Requirements(tuple(rest)))).any():
            together = rest
    return f"no offering has {listed(labelled(key, values) for key, values in together)} together"


def _own_requirements(offers: PoolOffers) -> str:
    """Which of the NodePool's own requirements no offering of the catalog meets; several where only all together rule out everything."""
    table = offers.offerings.table
    for item in offers.pool.template.requirements:
        asked = Requirements.of((item,)).only(table.keys)
        if asked.entries and not table.matching(asked).any():
            return f"the catalog has no instance type with {labelled(*asked.entries[0])}, which the NodePool requires"
    return "no offering that can be had now meets all of its own requirements"


def _there(offers: PoolOffers, key: str) -> str:
    names = sorted(cell for cell in offers.offerings.table.seen(key, offers.rows) if isinstance(cell, str))
    return f"{'is' if len(names) == 1 else 'are'} {listed(names)}" if names else "is none with that label"


def _sold_out_reason(pool: str, sold_out: Sequence[Mapping[str, str]]) -> UnplacedReason:
    first = sold_out[0]
    place = f"{first[INSTANCE_TYPE_LABEL]} in {first[ZONE_LABEL]} as {first[CAPACITY_TYPE_LABEL]}"
    rest = len(sold_out) - 1
    others = f" and {rest} other{'s' if rest > 1 else ''}" if rest else ""
    words = f"what would do is not available now: {place}{others}"
    return UnplacedReason(Cause.NOT_AVAILABLE, len(sold_out), f"NodePool {pool}: {words}")


def _used_up(state: State, batch: Batch, offers: PoolOffers, wanted: Requirements) -> list[str]:
    """Reservations that would do for the chunk, but are used up by other nodes."""
    found = []
    for item in state.offers:
        pool, mark, reservation = item.pool.name.partition(RESERVATION_MARK)
        used_up = mark and pool == offers.pool.name and state.limits.left(mark + reservation)[NODES] <= 0
        if used_up and (item.rows_for(wanted) & item.rows_holding(batch.needs.request)).any():
            found.append(reservation)
    return found


def _sold_out(batch: Batch, offers: PoolOffers, wanted: Requirements) -> list[Mapping[str, str]]:
    rows = offers.offerings.unavailable
    keys = frozenset(key for row in rows for key in row)
    asked = wanted.only(keys).both(offers.template.only(keys))
    fits = times(offers.room, batch.needs.request) > 0
    large = {item.name for item, enough in zip(offers.offerings.types, fits.tolist(), strict=True) if enough}
    return [row for row in rows if row[INSTANCE_TYPE_LABEL] in large and asked.match(row)]


def _too_small(state: State, batch: Batch, offers: PoolOffers, instance_types: Sequence[int]) -> str:
    """What types lack: how many come nearest, the first of these by name with its room, and then what others lack."""
    names, request = state.columns.names, batch.needs.request
    rooms = np.maximum(offers.room[list(instance_types)], 0)
    absent = [column for column in np.flatnonzero(request).tolist() if not rooms[:, column].any()]
    if absent:
        asked = listed(
            f"{resource_words(names[n])} ({readable_amount(names[n], int(request[n]))} asked for)" for n in absent
        )
        several = len(instance_types) > 1
        return f"none of {len(instance_types)} types has any {asked}" if several else f"its one type has no {asked}"
    row, lacking = nearest(batch, rooms)
    reduced = np.minimum(request, rooms[row])
    near: Mask = np.all(rooms >= reduced, axis=1)
    count = int(near.sum())
    has = listed(amount_words(names[column], int(rooms[row][column])) for column in lacking)
    words = f"{count} {'type fits' if count == 1 else 'types fit'} but for {lack_words(state.columns, lacking)}"
    others = Counter(tuple(np.flatnonzero(request > room).tolist()) for room in rooms[~near])
    instance_type = offers.offerings.types[instance_types[row]].name
    rest = [_others_lack(state, columns, number, lacking) for columns, number in others.most_common()]
    return ", ".join([f"{words} ({instance_type} has {has} for pods)", *rest])


def _others_lack(state: State, columns: Sequence[int], count: int, lacking: Mapping[int, int]) -> str:
    verb = "lacks" if count == 1 else "lack"
    if list(columns) == list(lacking):
        return f"{count} more {verb} more"
    return f"{count} {verb} {listed(resource_words(state.columns.names[column]) for column in columns)}"

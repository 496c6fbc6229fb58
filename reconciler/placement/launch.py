"""What the NodeClaim of a planned node lists in the end: types, zones, capacity types, labels, requests.

Karpenter may launch any listed type in any listed zone and capacity type. So each combination must hold the node's chunks, be
available now, and stay within the pool's limits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from operator import add

import numpy as np

from reconciler.model.nodes import CAPACITY_TYPE_LABEL, HOSTNAME_LABEL, INSTANCE_TYPE_LABEL, NODEPOOL_LABEL, ZONE_LABEL
from reconciler.model.placement import Holding, PlannedNode
from reconciler.model.quantity import Resources
from reconciler.model.requirements import Requirement
from reconciler.placement.constraints.limits import NOTHING
from reconciler.placement.constraints.min_values import largest_of
from reconciler.placement.engine.state import State
from reconciler.placement.offers.node_templates import NodeTemplate
from reconciler.placement.offers.offerings import NANODOLLARS
from reconciler.placement.offers.pool_offers import Place, listable, node_class_label, sold_in
from reconciler.placement.requirements import STABLE_KEYS, Mask, Requirements, Values, one_of


@dataclass(frozen=True, slots=True)
class Offer:
    """What a NodeClaim lists, whatever the node holds.

    node: without its chunks and their requests.
    daemons: what daemon pods take on the largest of the types, by resource.
    largest: the largest amount of each resource among the types; a pool with limits is charged for that.
    """

    node: PlannedNode
    daemons: tuple[int, ...]
    largest: Resources


@dataclass(frozen=True, slots=True)
class _Words:
    """What all NodeClaims of a node template have in common. asked: the requirements of pool and chunks. labels: one value for each
    that the pool requires and the catalog does not decide.
    said: labels of the NodeClaim, which need no requirement."""

    asked: Requirements
    labels: dict[str, str]
    said: frozenset[str]


class Offerer:
    """Makes the planned nodes of one placement. What nodes have in common is computed once. most_types: how many types a node may
    list."""

    def __init__(self, state: State, most_types: int) -> None:
        self._most_types = most_types
        self._state = state
        planned = state.planned
        self._template: list[int] = planned.template[: planned.count].tolist()
        self._position: list[int] = planned.position[: planned.count].tolist()
        self._type: list[int] = planned.type[: planned.count].tolist()
        self._used: list[list[int]] = planned.used[: planned.count].tolist()
        self._words: dict[int, _Words] = {}
        self._known: dict[tuple[object, ...], Offer] = {}
        self._holding: dict[int, list[bytes]] = {}
        """By pool, which of its types hold the chunks of each planned node."""
        self._requests: dict[tuple[int, ...], Resources] = {}

    def planned_node(self, index: int, holdings: tuple[Holding, ...]) -> PlannedNode:
        """The planned node with this number. Charges the pool for larger alternatives."""
        template = self._state.templates.list[self._template[index]]
        offer = self._offer(index, template)
        asked = tuple(map(add, self._used[index], offer.daemons))
        requests = self._requests.get(asked)
        if requests is None:
            requests = self._requests[asked] = self._state.columns.asked(asked)
        return replace(offer.node, requests=requests, holdings=holdings)

    def _offer(self, index: int, template: NodeTemplate) -> Offer:
        state, offers, pool = self._state, template.offers, template.pool
        is_limited = pool in state.limited
        charged = state.charged(index) if is_limited else NOTHING
        allowed = state.running_limits.larger_types(pool, charged) if is_limited else None
        key = (
            template.number,
            self._position[index],
            self._types_holding(pool)[index],
            None if allowed is None else allowed.tobytes(),
        )
        offer = self._known.get(key)
        if offer is None:
            offer = self._known[key] = self._made(index, template, allowed)
        if is_limited:
            state.charge(offers.pool.name, offer.largest, charged, nodes=0)
        return offer

    def _made(self, index: int, template: NodeTemplate, allowed: Mask | None) -> Offer:
        """allowed: the types within the pool's limits, None for all. More than the most types are listed only if minValues needs more."""
        planned, offers, words = self._state.planned, template.offers, self._words_of(template)
        primary = planned.primary(index)
        own = int(offers.offerings.types_of[primary])
        best: tuple[Place, list[int], Mask] | None = None
        for listed_rows, place in listable(offers, planned.rows(index), primary):
            rows, sold = sold_in(offers, listed_rows, place)
            instance_types = [item for item in sold if allowed is None or item == own or allowed[item]]
            few = instance_types[: self._most_types]
            if few == instance_types or offers.meets_minimums(rows & offers.offerings.rows_of(few)):
                instance_types = few
            listed = rows & offers.offerings.rows_of(instance_types)
            best = best or (place, instance_types, listed)
            if offers.meets_minimums(listed):
                best = (place, instance_types, listed)
                break
        assert best is not None
        (zones, capacity_types), instance_types, listed = best
        priced = bool(offers.priced[listed].all())
        names = tuple(offers.offerings.types[instance_type].name for instance_type in instance_types)
        decided = {
            INSTANCE_TYPE_LABEL: one_of(*names),
            ZONE_LABEL: one_of(*zones),
            CAPACITY_TYPE_LABEL: one_of(*capacity_types),
        }
        node = PlannedNode(
            node_pool=offers.pool.name,
            instance_types=names,
            zones=zones,
            capacity_types=capacity_types,
            price=int(offers.prices[listed].min()) / NANODOLLARS if priced else 0.0,
            requests=Resources(),
            requirements=_requirements(words, decided),
            holdings=(),
            labels=tuple(sorted(words.labels.items())),
            price_known=priced,
            taints=template.taints,
        )
        held = self._type[index] - self._state.templates.type_base[template.pool]
        return Offer(
            node=node,
            daemons=tuple(offers.daemon_load[instance_types].max(axis=0).tolist()),
            largest=NOTHING if allowed is None else largest_of(offers, (held, *instance_types)),
        )

    def _words_of(self, template: NodeTemplate) -> _Words:
        words = self._words.get(template.number)
        if words is None:
            pool = template.offers.pool
            asked = Requirements.of(pool.template.requirements).both(Requirements.labels([(NODEPOOL_LABEL, pool.name)]))
            fixed = {*dict(pool.template.labels), HOSTNAME_LABEL}
            required = {STABLE_KEYS.get(item.key, item.key) for item in pool.template.requirements} - fixed
            examples = {key: values.example() for key, values in template.own.entries if key in required}
            labels = {key: value for key, value in examples.items() if value is not None}
            said = {*fixed, node_class_label(pool)}
            words = _Words(asked.both(template.wanted), labels, frozenset(said - labels.keys()))
            self._words[template.number] = words
        return words

    def _types_holding(self, pool: int) -> list[bytes]:
        if pool not in self._holding:
            used = self._state.planned.used[: self._state.planned.count]
            room = self._state.offers[pool].room
            holds = np.ones((len(used), len(room)), dtype=np.bool_)
            for resource in range(used.shape[1]):
                holds &= room[None, :, resource] >= used[:, resource, None]
            self._holding[pool] = [bytes(row) for row in np.packbits(holds, axis=1)]
        return self._holding[pool]


def _requirements(words: _Words, decided: Mapping[str, Values]) -> tuple[Requirement, ...]:
    """The requirements of pool and chunks, narrowed to what was decided, sorted by label. A requirement that a label of the NodeClaim
    already expresses is left out."""
    settled = {**decided, **{key: one_of(value) for key, value in words.labels.items()}}
    capacity_types = words.asked.get(CAPACITY_TYPE_LABEL)
    listed = decided[CAPACITY_TYPE_LABEL]
    asked = words.asked
    if capacity_types is not None and (capacity_types.min_values or 0) > len(listed.names):
        # Reserved capacity counted for minValues, but has NodeClaims of its own. The API server refuses fewer values than minValues.
        asked = asked.without(frozenset({CAPACITY_TYPE_LABEL}))
    merged = asked.both(Requirements(tuple(sorted(settled.items())))).without(frozenset(words.said - decided.keys()))
    return tuple(requirement for key, values in merged.entries for requirement in values.requirements(key))

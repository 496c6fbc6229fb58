"""Every destination of one more chunk: existing bins, planned nodes, and new nodes by domain.

The rest of the engine chooses by heuristics. Here every choice is listed, for few chunks and under the same rules.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from reconciler.placement.batches import Batch
from reconciler.placement.constraints.domain_counters import TopologyRule
from reconciler.placement.constraints.rule_table import ConstraintSet
from reconciler.placement.engine.domains import Combination, combinations_of
from reconciler.placement.engine.fill import Task, existing_fits, host_caps
from reconciler.placement.engine.grow import grow, growable, most_with_minimums
from reconciler.placement.engine.open import empty_node, most_on_new, size_options_of
from reconciler.placement.engine.over_domains import Shares
from reconciler.placement.engine.state import State
from reconciler.placement.needs import RelaxationStep
from reconciler.placement.offers.cheapest_sizes import SizeOptions
from reconciler.placement.offers.node_templates import NodeTemplate
from reconciler.placement.requirements import ANYWHERE, Requirements


@dataclass(frozen=True, slots=True)
class Destination:
    """Where one chunk may go.

    bin: number of an existing or planned bin; one past the last stands for a new node.
    extra: added price, in billionths of a USD an hour.
    template: a planned or new node's from then on. instance_type: number of a new node's type.
    """

    batch: Batch
    bin: int
    extra: int
    template: NodeTemplate | None = None
    instance_type: int | None = None

    def take(self, state: State) -> None:
        """Places one chunk."""
        batch = self.batch
        if self.template is None:
            state.add_existing(batch, self.bin, 1)
        elif self.instance_type is None:
            grow(state, batch, self.bin - state.base, self.template, 1)
        else:
            state.open_planned(batch, self.template, (1,))
            state.charge(self.template.offers.pool.name, state.charged(self.bin - state.base))


def destinations_of(
    state: State,
    batch: Batch,
    constraints: ConstraintSet,
    *,
    closed: Mapping[Combination, int],
    opening: bool,
) -> list[Destination]:
    """The destinations of one chunk in the present state: existing bins first, in their order of preference.

    closed: see `Shares.allowed`. opening: whether new nodes are among them."""
    domains = _domains(state, batch, constraints, closed)
    task = Task(
        batch,
        ANYWHERE,
        constraints,
        bare=bool(state.planned.count),
        single=bool(state.topology.bootstrapping(constraints.host_affinity)),
    )
    found = list(_existing(state, task, constraints.keys, domains))
    if batch.opens_nodes:
        for relaxation in batch.needs.relaxations:
            new = [*_planned(state, task, relaxation, domains)]
            new += _new(state, task, relaxation, domains) if opening else ()
            if new:
                return found + new
    return found


def closed_to(state: State, batch: Batch, constraints: ConstraintSet) -> dict[Combination, int]:
    """Combinations of topology domains that some NodePool offers, but where no new node takes a chunk of this batch now.

    Taints, sizes or limits are in the way. The values are 0, the number of chunks that each takes."""
    if not constraints.spread or not constraints.keys:
        return {}
    closed = {}
    for item in combinations_of(state, batch, constraints.keys):
        if item.makeable:
            task = Task(batch, item.where, constraints, bare=True, single=False)
            sizes = (
                size_options_of(state, task, relaxation, pools)
                for relaxation in batch.needs.relaxations
                for pools in state.weights
            )
            if not any(options.chunks.any() for options in sizes):
                closed[item] = 0
    return closed


def _domains(
    state: State, batch: Batch, constraints: ConstraintSet, closed: Mapping[Combination, int]
) -> list[Combination] | None:
    """Where rules on labels other than the hostname allow a chunk. None stands for anywhere, when there are no such rules."""
    if not constraints.keys:
        return None
    judged: Sequence[TopologyRule] = constraints.on_labels
    combinations = combinations_of(state, batch, constraints.keys)
    bootstrapping = state.topology.bootstrapping(constraints.affinity)
    if bootstrapping:
        together = {rule.key for rule in bootstrapping}
        judged = [rule for rule in judged if rule not in bootstrapping]
        combinations = [item for item in combinations if None not in {item.value(key) for key in together}]
    return Shares(state, judged, combinations, opening=batch.opens_nodes).allowed(closed)


def _wheres(domains: Sequence[Combination] | None) -> list[Requirements]:
    return [ANYWHERE] if domains is None else [item.where for item in domains]


def _existing(
    state: State, task: Task, keys: Sequence[str], domains: Sequence[Combination] | None
) -> Iterator[Destination]:
    fits = existing_fits(state, task)
    if fits is None:
        return
    allowed = None if domains is None else {tuple(item.value(key) for key in keys) for item in domains}
    able = np.flatnonzero(fits > 0)
    order = able[np.lexsort((able, state.fullness[able], state.bins.rank[able]))]
    for number in order.tolist():
        labels = state.bins.origins[number].labels
        if allowed is None or tuple(labels.get(key) for key in keys) in allowed:
            yield Destination(task.batch, number, 0)


def _planned(
    state: State, task: Task, relaxation: RelaxationStep, domains: Sequence[Combination] | None
) -> Iterator[Destination]:
    planned, batch = state.planned, task.batch
    if not planned.count:
        return
    caps = host_caps(state, task)
    on_all = caps.on(state.topology.hosts.table, state.base, planned.count)
    taken = state.taken(batch)
    for where in _wheres(domains):
        joined = state.compatibilities.get(batch.needs, relaxation, where).joined()
        for index in range(planned.count):
            number = int(joined[planned.template[index]])
            if number < 0 or (on_all is not None and on_all[index] < 1) or (len(caps.more) and caps.more[index] < 1):
                continue
            template = growable(state, index, state.templates.list[number])
            free = template.room - taken[index]
            able = (free >= batch.needs.request).all(axis=1) & (template.room >= planned.used[index]).all(axis=1)
            if able.any() and most_with_minimums(state, template, index, batch, 1):
                extra = int(template.type_prices[able.argmax()] - planned.price[index])
                yield Destination(batch, state.base + index, extra, template=template)


def _new(
    state: State, task: Task, relaxation: RelaxationStep, domains: Sequence[Combination] | None
) -> Iterator[Destination]:
    """New nodes: in each domain the cheapest type of each pool, among the heaviest pools that can make a node."""
    for where in _wheres(domains):
        placed = Task(task.batch, where, task.constraints, bare=True, single=task.single)
        for pools in state.weights:
            options = size_options_of(state, placed, relaxation, pools)
            found = _cheapest_of_pools(state, task.batch, options)
            yield from found
            if found:
                break


def _cheapest_of_pools(state: State, batch: Batch, options: SizeOptions) -> list[Destination]:
    cheapest: dict[int, Destination] = {}
    for place in np.flatnonzero(options.chunks).tolist():
        instance_type, price = int(options.types[place]), int(options.prices[place])
        pool = int(state.templates.pool_of[instance_type])
        known = cheapest.get(pool)
        if known is not None and known.extra <= price:
            continue
        template = empty_node(state, pool, options)
        if most_on_new(template, batch, 1):
            number = state.base + state.planned.count
            cheapest[pool] = Destination(
                batch, number, price, template, instance_type - state.templates.type_base[pool]
            )
    return list(cheapest.values())

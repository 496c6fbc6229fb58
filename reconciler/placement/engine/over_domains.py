"""Divides chunks among topology domains, such as zones.

Shares are first computed as if every domain had room, and then tried. A domain that takes less than its share is capped at what it
took, and the shares are computed again. So the skew is right in the end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from reconciler.model.pods import PodShape
from reconciler.placement.arrays import COUNTER, KEY, PLENTY, Amounts
from reconciler.placement.batches import Batch
from reconciler.placement.constraints.domain_counters import TopologyRule
from reconciler.placement.constraints.topology import ConstraintSet, Topology
from reconciler.placement.engine.domains import (
    Combination,
    Cost,
    combinations_of,
    cost_of,
    cost_together,
    prices_differ,
)
from reconciler.placement.engine.fill import Task, fill_existing, rule_row
from reconciler.placement.engine.open import make_nodes
from reconciler.placement.engine.state import State
from reconciler.placement.loops.walk import DOMAIN, MAKEABLE, distribute, load_of
from reconciler.placement.requirements import Requirements


def option_row(topology: Topology, combination: Combination, compatibility: int = -1) -> list[int]:
    """A combination as the loops take it (see `loops/walk.py`)."""
    values = combination.by_key
    known = ((key, values.get(key)) for key in topology.numbers)
    domains = [-1 if value is None else topology.column_of(key, value) for key, value in known]
    return [compatibility, int(combination.makeable), *domains]


class Shares:
    """The rules on labels other than the hostname, applied to chunks before they are placed."""

    def __init__(
        self, state: State, rules: Sequence[TopologyRule], combinations: Sequence[Combination], *, opening: bool
    ) -> None:
        topology = state.topology
        self._combinations, self._opening = combinations, opening
        self._rules = [rule_row(topology, rule) for rule in rules]
        self._options = [option_row(topology, item) for item in combinations]
        self._counts: list[list[int]] = []
        self._there: list[list[bool]] = []
        for rule, row in zip(rules, self._rules, strict=True):
            columns = set(state.domains_of(rule).tolist()) if rule.by_minimum else set()
            width = len(topology.numbers[rule.key])
            self._counts.append(topology.labels.table[row[COUNTER], :width].tolist())
            self._there.append([column in columns for column in range(width)])

    def allowed(self, closed: Mapping[Combination, int] | None = None) -> list[Combination]:
        """Where one more chunk may go, assuming a node everywhere that one can be made. closed: where none can be made, each with 0.

        Without it, where a chunk may go as things are: a node that is made for it is in its own domain only."""
        joins = self._opening and closed is None
        there = self._there if joins else self._with_new(closed or {})
        return [
            item
            for item, option in zip(self._combinations, self._options, strict=True)
            if load_of(self._rules, self._counts, there, option, option[MAKEABLE] if joins else 0) >= 0
        ]

    def distribute(self, count: int, caps: Mapping[Combination, int]) -> dict[Combination, int]:
        """The share of each combination: chunk by chunk, where the fewest count so far."""
        shares, most = [0] * len(self._options), [caps.get(item, PLENTY) for item in self._combinations]
        counts = [list(row) for row in self._counts]
        distribute(self._rules, self._options, counts, self._with_new(caps), most, count, shares)
        return {item: share for item, share in zip(self._combinations, shares, strict=True) if share}

    def _with_new(self, caps: Mapping[Combination, int]) -> list[list[bool]]:
        """Domains that count for the minimum: those that exist, and those where a node can be made.

        Karpenter counts the latter too, while kube-scheduler looks at existing nodes only. A domain where no node turned out to
        be possible does not count."""
        found = [list(row) for row in self._there]
        for item, option in zip(self._combinations, self._options, strict=True):
            if item.makeable and (not self._opening or caps.get(item, PLENTY) > 0):
                for row, rule in zip(found, self._rules, strict=True):
                    domain = option[DOMAIN + rule[KEY]]
                    if domain >= 0:
                        row[domain] = True
        return found


_Rules: TypeAlias = Sequence[TopologyRule]
_Domains: TypeAlias = Sequence[Combination]


@dataclass(frozen=True, slots=True)
class OverDomains:
    """Places chunks of one batch in the domains that rules on labels leave: existing bins first, then new nodes where they cost least.

    opening: whether planned nodes may take them, and new ones be made. settled: no new one can be made. The minimum for spread over hosts
    is then what existing and planned nodes hold. others: all batches; some may have to follow these chunks into their domain."""

    state: State
    batch: Batch
    opening: bool
    settled: bool
    others: Sequence[Batch]

    @property
    def constraints(self) -> ConstraintSet:
        return self.state.constraints(self.batch)

    def place(self, count: int) -> int:
        """Places at most `count` chunks; returns how many."""
        state, constraints, combinations = self.state, self.constraints, combinations_of(self.state, self.batch)
        alike = not self.opening or not prices_differ(state, self.batch)
        if constraints.affinity and state.topology.nobody_yet(constraints.affinity):
            return self._first_together(combinations, count, alike=alike)
        if not alike:
            combinations = sorted(combinations, key=lambda item: cost_of(state, self.batch, item.where, count))
        joins_all = alike or joins_dearer(self.batch.needs.shape)
        return self._place(constraints.on_labels, combinations, count, joins_all=joins_all)

    def _first_together(self, combinations: _Domains, count: int, *, alike: bool) -> int:
        """The self-affinity bootstrap: pods that must be together and have no domain yet go to the one that takes most of them.

        Among equal domains the cheapest wins, counting the pods that must follow them. alike: whether all cost the same."""
        state, affinity = self.state, self.constraints.affinity
        together = {rule.key for rule in affinity}
        rules = [rule for rule in self.constraints.on_labels if rule not in affinity]
        groups: dict[tuple[str | None, ...], list[Combination]] = {}
        for combination in combinations:
            values = tuple(combination.by_key[key] for key in sorted(together))
            if None not in values:
                groups.setdefault(values, []).append(combination)
        following = None if alike else self._following()
        best: tuple[tuple[int, ...], list[Combination]] = ((0,), [])
        for group in groups.values():
            saved, before = state.save(), state.planned.total_price
            placed = self._place(rules, group, count, joins_all=alike)
            if placed == count and alike:
                return placed
            score: tuple[int, ...] = (-placed,)
            if not alike:
                extra = state.planned.total_price - before
                score = (-placed, *self._cost_of(group, count, following, extra))
            state.roll_back(saved)
            if placed and score < best[0]:
                best = (score, group)
        return self._place(rules, best[1], count, joins_all=alike) if best[1] else 0

    def _following(self) -> Amounts | None:
        """The requests of all chunks that must share one domain; None where no other batch has to."""
        wanted = {rule.counter for rule in self.constraints.affinity}
        constraints = self.state.constraints
        found = [item for item in self.others if wanted & {rule.counter for rule in constraints(item).affinity}]
        if all(item.number == self.batch.number for item in found):
            return None
        return np.asarray(sum(item.needs.request * item.count for item in found), dtype=np.int64)

    def _cost_of(self, group: _Domains, count: int, following: Amounts | None, extra: int) -> Cost:
        """extra: what the chunks themselves added to the price."""
        if following is not None:
            return min(cost_together(self.state, self.batch, item.where, following) for item in group)
        relaxation, weight, _ = min(cost_of(self.state, self.batch, item.where, count) for item in group)
        return (relaxation, weight, extra)

    def _place(self, rules: _Rules, combinations: _Domains, count: int, *, joins_all: bool) -> int:
        """joins_all: whether chunks that no rule counts join nodes of dearer domains too."""
        if self.constraints.shared:
            return self._in_shares(rules, combinations, count)
        return self._freely(rules, combinations, count, joins_all=joins_all)

    def _shares(self, rules: _Rules, combinations: _Domains) -> Shares:
        return Shares(self.state, rules, combinations, opening=self.opening)

    def _in_shares(self, rules: _Rules, combinations: _Domains, count: int) -> int:
        caps: dict[Combination, int] = {}
        for _ in range(2 * len(combinations) + 2):
            saved = self.state.save()
            shares = self._shares(rules, combinations).distribute(count, caps)
            short: dict[Combination, int] = {}
            for combination, share in shares.items():
                placed = self._fill((combination.where,), share, opening=self.opening)
                if placed < share:
                    short[combination] = placed
            if not short:
                placed = sum(shares.values())
                # What a domain took was measured while others used more of what all share, such as a pool's limit.
                return placed + self._one_by_one(rules, combinations, count - placed) if caps else placed
            caps |= short
            self.state.roll_back(saved)
        return self._one_by_one(rules, combinations, count)

    def _one_by_one(self, rules: _Rules, combinations: _Domains, count: int) -> int:
        """Places chunk by chunk. Needed where domains compete for the same room (a pool's limit), so that shares never settle."""
        placed, full = 0, dict[Combination, int]()
        while placed < count and (shares := self._shares(rules, combinations).distribute(1, full)):
            (combination,) = shares
            if self._fill((combination.where,), 1, opening=self.opening):
                placed += 1
            else:
                full[combination] = 0
        return placed

    def _freely(self, rules: _Rules, combinations: _Domains, count: int, *, joins_all: bool) -> int:
        """For rules that these chunks do not affect: every allowed domain takes as many as fit.

        Where new nodes cost the same in all domains, chunks join planned nodes of any of them before a new one is made. Otherwise
        chunks with rules leave the room in dearer domains to those that have to go there. Pods without rules come after these, and
        join whatever is left. Where a limit may leave others nothing else, all chunks keep to one domain after the other."""
        allowed = self._shares(rules, combinations).allowed() if rules else combinations
        wheres = [item.where for item in allowed]
        if not self.opening:
            return self._fill(wheres, count, opening=False) if wheres else 0
        placed = 0
        if wheres and self.constraints.keys and self.state.base:
            placed = self._fill(wheres, count, opening=False)
        for number in range(len(wheres)):
            if placed < count:
                together = wheres[number:] if joins_all and not self.state.near_limits else wheres[number : number + 1]
                placed += self._fill(together, count - placed, opening=True)
        return placed

    def _fill(self, wheres: Sequence[Requirements], count: int, *, opening: bool) -> int:
        """Places at most `count` chunks in these domains; returns how many. opening: whether new nodes may be made, in the first domain."""
        state, constraints = self.state, self.constraints
        task = Task(self.batch, wheres, constraints, bare=opening and not self.settled, single=False)
        if constraints.host_affinity and state.topology.bootstrapping(constraints.host_affinity):
            return _first_on_a_host(state, replace(task, single=True), count, opening=opening)
        placed = 0
        while placed < count:
            # Each round may raise the minimum over hosts, and then a spread constraint allows more on every host.
            step = fill_existing(state, task, count - placed)
            step += make_nodes(state, task, count - placed - step) if opening and self.settled else 0
            placed += step
            if not step or not constraints.on_hosts:
                break
        if task.bare and placed < count:
            placed += make_nodes(state, task, count - placed)
        return placed


def _first_on_a_host(state: State, task: Task, count: int, *, opening: bool) -> int:
    """Places pods that must share a host and have none yet, on the node that takes most of them."""
    saved = state.save()
    placed = fill_existing(state, task, count)
    if placed == count or not opening:
        return placed
    state.roll_back(saved)
    made = make_nodes(state, task, count)
    if made >= placed:
        return made
    state.roll_back(saved)
    return fill_existing(state, task, count)


def joins_dearer(shape: PodShape) -> bool:
    """Whether such chunks join nodes of dearer domains too: those without rules do (see `OverDomains`)."""
    return not (shape.pod_affinity or shape.pod_anti_affinity or shape.topology_spread)

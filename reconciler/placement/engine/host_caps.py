"""The most chunks that rules, ports and the share of one node allow on each bin."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reconciler.placement.amounts import PLENTY, Amounts, Numbers
from reconciler.placement.batches import Batch
from reconciler.placement.constraints.constraint_set import ConstraintSet, Rule, allowed_in
from reconciler.placement.constraints.inter_pod_affinity import AffinityRule, AntiAffinityRule
from reconciler.placement.constraints.topology_spread import SpreadRule
from reconciler.placement.engine.state import State
from reconciler.placement.loops.planned_nodes import allowed
from reconciler.placement.requirements import Requirements


@dataclass(slots=True, eq=False)
class Task:
    """One round of placing a batch. Never changed.

    where: domains that chunks must go to. constraints: the rules between pods that they are under.
    bare: new nodes may come up empty, so that spread over hosts starts at none.
    single: everything goes on one node, for the first of pods with affinity to each other.
    """

    batch: Batch
    where: Requirements
    constraints: ConstraintSet
    bare: bool
    single: bool


@dataclass(frozen=True, slots=True)
class HostCaps:
    """The most chunks that may come to planned nodes, as the loops take it.

    rules: 3 × rules: row of the topology's host counts, code and bound of each.
    more: further caps by planned node; empty when there are none.
    on_empty: most chunks that the rules let come where nothing is yet.
    """

    rules: NDArray[np.int64]
    more: Amounts
    on_empty: int

    def on(self, hosts: Amounts, first: int, count: int) -> Amounts | None:
        """By bin for `count` of them from number `first`; None for no cap at all. `more` is not looked at."""
        caps: Amounts | None = None
        for row, code, bound in self.rules.T.tolist():
            counted = hosts[row, first : first + count]
            by_count = [allowed(code, bound, number) for number in range(int(counted.max(initial=0)) + 1)]
            of_rule = np.array(by_count, dtype=np.int64)[counted]
            caps = of_rule if caps is None else np.minimum(caps, of_rule)
        return caps


_NONE = np.zeros(0, dtype=np.int64)
UNCAPPED = HostCaps(np.zeros((3, 0), dtype=np.int64), _NONE, PLENTY)


def host_caps(state: State, task: Task) -> HostCaps:
    """For planned nodes."""
    rules = rule_caps(state, task) if task.constraints.on_hosts else UNCAPPED
    concerned = state.concerned(task.batch)
    if not concerned:
        return rules
    planned = np.arange(state.base, state.base + state.planned.count)
    more = np.full(len(planned), PLENTY, dtype=np.int64)
    for constraint in concerned:
        more = np.minimum(more, constraint.most(task.batch, planned))
    return HostCaps(rules.rules, more, rules.on_empty)


def rule_caps(state: State, task: Task) -> HostCaps:
    bootstrapping = state.topology.bootstrapping(task.constraints.host_affinity) if task.single else ()
    if not task.bare:
        return _rule_caps(state, task, bootstrapping)
    # Where new nodes come up empty the bounds never change.
    known = state.bare_caps.get((task.constraints, bootstrapping))
    if known is None:
        known = state.bare_caps[task.constraints, bootstrapping] = _rule_caps(state, task, bootstrapping)
    caps: HostCaps = known
    return caps


def _rule_caps(state: State, task: Task, bootstrapping: Sequence[AffinityRule]) -> HostCaps:
    """bootstrapping: rules that do not bind the first."""
    rules = [rule for rule in task.constraints.on_hosts if rule not in bootstrapping]
    if not rules:
        return UNCAPPED
    rows = [state.topology.counters[rule.counter].host_row for rule in rules]
    bounds = [host_bound(state, rule, bare=task.bare) for rule in rules]
    codes = [rule.code for rule in rules]
    on_empty = min(allowed_in(rule, 0, host_bound(state, rule, bare=True)) for rule in rules)
    return HostCaps(np.array([rows, codes, bounds], dtype=np.int64), _NONE, on_empty)


def host_bound(state: State, rule: Rule, *, bare: bool) -> int:
    """How many counted pods a host may come to have under a spread rule."""
    if not isinstance(rule, SpreadRule):
        return 0
    return rule.bound(0 if bare else least_on_hosts(state, rule))


def least_on_hosts(state: State, rule: SpreadRule) -> int:
    """The fewest that count on any host which the rule sees; 0 while those are fewer than it asks for."""
    counter = state.topology.counters[rule.counter]
    assert counter.included is not None
    expected = state.topology.expected.get(rule.counter, set())
    existing = np.flatnonzero(counter.included)
    planned = state.planned_hosts(counter.counted.inclusion) if state.planned.count else _NONE
    hosts = len(existing)
    if state.bins.hostnames.sharing:
        hosts = len({state.bins.hostnames.domains[number] for number in existing.tolist()})
    if (expected and state.may_make_nodes()) or not rule.has_enough(hosts + len(planned)):
        return 0
    # A planned node that may come to be where the rule does not look is not one to rely on, but may be the emptiest.
    if rule.min_domains > 1 and not rule.has_enough(hosts + state.sure_hosts(counter.counted.inclusion)):
        return 0
    table = state.topology.hosts.table[counter.host_row]
    return min((int(table[numbers].min()) for numbers in (existing, planned) if len(numbers)), default=0)


def existing_caps(state: State, task: Task, bins: Numbers) -> Amounts | None:
    """By bin, what the rules on the hostname let come; None where there are none."""
    if not task.constraints.on_hosts:
        return None
    on_all = rule_caps(state, task).on(state.topology.hosts.table, 0, state.base)
    missing = state.bins.hostnames.missing
    if missing is not None:
        # kube-scheduler: anti-affinity does not see such a node; spread and affinity refuse it, the first of its kind too.
        apart = all(isinstance(rule, AntiAffinityRule) for rule in task.constraints.on_hosts)
        on_all = np.where(missing, PLENTY if apart else 0, PLENTY if on_all is None else on_all)
    return None if on_all is None else on_all[bins]

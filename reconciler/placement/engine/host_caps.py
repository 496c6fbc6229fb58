"""The most chunks that rules, ports and the share of one node allow on each bin. Used by fill and make."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reconciler.placement.amounts import PLENTY, Amounts, Numbers
from reconciler.placement.batches import Batch
from reconciler.placement.constraints.constraint_set import ConstraintSet
from reconciler.placement.constraints.topology_counters import AffinityRule, AntiAffinityRule, Rule, SpreadRule
from reconciler.placement.engine.loops import (
    AFFINITY,
    ANTI_AFFINITY_ITSELF,
    ANTI_AFFINITY_OTHERS,
    SPREAD_ITSELF,
    SPREAD_OTHERS,
)
from reconciler.placement.engine.state import State
from reconciler.placement.requirements import Requirements


@dataclass(slots=True, eq=False)
class Task:
    """One round of placing a batch; never changed. where: domains that chunks must go to; course: the rules they are under; bare:
    new nodes may come up empty, so that no host can be taken for granted; single: everything on one node (the first of
    pods that want to be together); per_node: most chunks of one demand on a node."""

    batch: Batch
    where: Requirements
    constraints: ConstraintSet
    bare: bool
    single: bool


@dataclass(frozen=True, slots=True)
class HostCaps:
    """rules: row of the topology's host counts, kind and bound of each, as the loops take them; more: further caps by planned
    node, empty when there are none; on_empty: most chunks that the rules allow where nothing is yet."""

    rules: NDArray[np.int64]
    more: Amounts
    on_empty: int

    def on(self, hosts: Amounts, first: int, count: int) -> Amounts | None:
        """By bin for `count` of them from number `first`; None for no cap at all. `more` is not looked at."""
        caps: Amounts | None = None
        for row, kind, bound in self.rules.T.tolist():
            allowed = _allowed(hosts[row, first : first + count], kind, bound)
            caps = allowed if caps is None else np.minimum(caps, allowed)
        return caps


def _allowed(counted: Amounts, kind: int, bound: int) -> Amounts:
    """As `allowed_on`, for many bins."""
    if kind == SPREAD_ITSELF:
        return np.maximum(bound - counted, 0)
    if kind == SPREAD_OTHERS:
        return np.where(counted <= bound, PLENTY, 0)
    if kind == AFFINITY:
        return np.where(counted > 0, PLENTY, 0)
    return np.where(counted > 0, 0, 1 if kind == ANTI_AFFINITY_ITSELF else PLENTY)


_NONE = np.zeros(0, dtype=np.int64)
UNCAPPED = HostCaps(np.zeros((3, 0), dtype=np.int64), _NONE, PLENTY)


def host_caps(state: State, task: Task) -> HostCaps:
    """For planned nodes."""
    rules = rule_caps(state, task) if task.constraints.on_hosts else UNCAPPED
    concerned = [item for item in (state.ports, state.share) if item.concerns(task.batch)]
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
    """founding: rules that do not hold the first."""
    rules = [rule for rule in task.constraints.on_hosts if rule not in bootstrapping]
    if not rules:
        return UNCAPPED
    rows = [state.topology.counters[rule.counter].host_row for rule in rules]
    bounds = [host_bound(state, rule, bare=task.bare) for rule in rules]
    kinds = [_kind(rule) for rule in rules]
    on_empty = min(allowed_on(rule, 0, host_bound(state, rule, bare=True), first=False) for rule in rules)
    return HostCaps(np.array([rows, kinds, bounds], dtype=np.int64), _NONE, on_empty)


def _kind(rule: Rule) -> int:
    if isinstance(rule, AffinityRule):
        return AFFINITY
    if isinstance(rule, AntiAffinityRule):
        return ANTI_AFFINITY_ITSELF if rule.counts_itself else ANTI_AFFINITY_OTHERS
    return SPREAD_ITSELF if rule.counts_itself else SPREAD_OTHERS


def host_bound(state: State, rule: Rule, *, bare: bool) -> int:
    """How many counted pods a host may come to have under a spread rule."""
    if not isinstance(rule, SpreadRule):
        return 0
    return rule.max_skew + (0 if bare else least_on_hosts(state, rule))


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
    if (expected and state.may_make_nodes()) or hosts + len(planned) < rule.min_domains:
        return 0
    # A planned node that may come to be where the rule does not look is not one to rely on, but may be the emptiest.
    if rule.min_domains > 1 and hosts + state.sure_hosts(counter.counted.inclusion) < rule.min_domains:
        return 0
    table = state.topology.hosts.table[counter.host_row]
    return min((int(table[numbers].min()) for numbers in (existing, planned) if len(numbers)), default=0)


def allowed_on(rule: Rule, counted: int, bound: int, first: bool) -> int:  # noqa: FBT001 - one of four plain facts
    """How many more chunks a rule allows where `counted` pods count already."""
    if isinstance(rule, AffinityRule):
        return PLENTY if counted > 0 or first else 0
    if isinstance(rule, AntiAffinityRule):
        return 0 if counted else 1 if rule.counts_itself else PLENTY
    if not rule.counts_itself:
        return PLENTY if counted <= bound else 0
    return max(0, bound - counted)


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

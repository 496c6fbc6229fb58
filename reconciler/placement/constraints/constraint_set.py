"""The rules between pods that a shape is under, and what is cached for all shapes of its equivalence class.

Whichever plugin judges them, all of these rules depend on how many pods count in a domain.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from reconciler.model.nodes import HOSTNAME_LABEL
from reconciler.model.pods import PodShape
from reconciler.placement.amounts import PLENTY
from reconciler.placement.constraints.inter_pod_affinity import AffinityRule, AntiAffinityRule
from reconciler.placement.constraints.topology_spread import SpreadRule
from reconciler.placement.loops.planned_nodes import allowed

Rule: TypeAlias = SpreadRule | AntiAffinityRule | AffinityRule


def allowed_in(rule: Rule, counted: int, bound: int, *, first: bool = False) -> int:
    """How many more chunks may come to a domain where so many pods count.

    bound: of a spread rule, the most that may count there. first: whether these are the first of pods with affinity to each other.
    """
    if first and isinstance(rule, AffinityRule):
        return PLENTY
    return allowed(rule.code, bound, counted)


@dataclass(frozen=True, slots=True, eq=False)
class ConstraintSet:
    """The rules of one shape, grouped as placing needs them."""

    rules: tuple[Rule, ...]
    """The shape's own, and those of pods that keep it off."""
    keys: tuple[str, ...]
    """Labels of the rules other than the hostname, and of other pods' rules that count these chunks."""
    on_labels: tuple[Rule, ...]
    """Rules on labels other than the hostname."""
    on_hosts: tuple[Rule, ...]
    """Rules on the hostname."""
    spread: tuple[SpreadRule, ...]
    host_spread: tuple[SpreadRule, ...]
    """Spread rules on the hostname."""
    affinity: tuple[AffinityRule, ...]
    """Affinity rules on labels other than the hostname."""
    host_affinity: tuple[AffinityRule, ...]
    shared: bool
    """Whether placing one of these chunks changes where the next may go."""
    by_domain: bool
    """Whether any rule depends on more than whether some pod counts in the domain."""


def constraint_set_of(rules: tuple[Rule, ...], deciding_keys: tuple[str, ...]) -> ConstraintSet:
    on_labels = tuple(rule for rule in rules if rule.key != HOSTNAME_LABEL)
    on_hosts = tuple(rule for rule in rules if rule.key == HOSTNAME_LABEL)
    return ConstraintSet(
        rules=rules,
        keys=tuple(sorted({*deciding_keys, *(rule.key for rule in on_labels)})),
        on_labels=on_labels,
        on_hosts=on_hosts,
        spread=tuple(rule for rule in rules if isinstance(rule, SpreadRule)),
        host_spread=tuple(rule for rule in on_hosts if isinstance(rule, SpreadRule)),
        affinity=tuple(rule for rule in on_labels if isinstance(rule, AffinityRule)),
        host_affinity=tuple(rule for rule in on_hosts if isinstance(rule, AffinityRule)),
        shared=any(rule.counts_itself and not isinstance(rule, AffinityRule) for rule in on_labels),
        by_domain=any(not isinstance(rule, AntiAffinityRule) for rule in rules),
    )


@dataclass(slots=True)
class EquivalenceClass:
    """What is cached for all shapes of the class."""

    shape: PodShape

    deciding_keys: tuple[str, ...] | None = None
    counts_of: tuple[int, ...] | None = None

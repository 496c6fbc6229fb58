"""Rules between pods, whichever plugin judges them: all go by how many pods count in a domain."""

from __future__ import annotations

from typing import TypeAlias

from reconciler.placement.amounts import PLENTY
from reconciler.placement.constraints.inter_pod_affinity import AffinityRule, AntiAffinityRule
from reconciler.placement.constraints.topology_spread import SpreadRule
from reconciler.placement.engine.loops import allowed

Rule: TypeAlias = SpreadRule | AntiAffinityRule | AffinityRule


def allowed_in(rule: Rule, counted: int, bound: int, *, first: bool = False) -> int:
    """How many more chunks may come to a domain where so many pods count. bound: of a spread rule, the most that may count there; first:
    whether these are the first of pods with affinity to each other."""
    if first and isinstance(rule, AffinityRule):
        return PLENTY
    return allowed(rule.code, bound, counted)

"""Where the chunks of a demand are by topology domain, in words."""

from __future__ import annotations

from collections.abc import Iterable

from reconciler.model.changes import DemandOutcome, DomainCount, Plan
from reconciler.model.nodes import CAPACITY_TYPE_LABEL, ZONE_LABEL
from reconciler.report.plan.words import MOST_ZONES
from reconciler.report.words import listed

_MOST_DOMAINS = 8
"""The most domains to name in one sentence; the rest is counted."""


def domain_totals(outcome: DemandOutcome) -> dict[str, dict[str, int]]:
    """How many chunks, by label and value in words. Labels are sorted, and single values come before undecided ones."""
    totals: dict[str, dict[str, int]] = {}
    for item in sorted(outcome.domains, key=lambda item: (item.key, len(item.values) != 1, item.values)):
        of_key = totals.setdefault(item.key, {})
        words = value_words(item)
        of_key[words] = of_key.get(words, 0) + item.count
    return totals


def value_words(item: DomainCount) -> str:
    """`r1`; `zone-a or zone-b` if several are possible; many are counted."""
    if not item.values:
        return "no such label"
    return " or ".join(item.values) if len(item.values) <= MOST_ZONES else f"any of {len(item.values)}"


def domain_lines(outcome: DemandOutcome) -> list[str]:
    """`by example.com/rack: 3 in r1 and 2 in r2`, one line for each label."""
    return [f"by {key}: {_counts(values.items())}" for key, values in domain_totals(outcome).items()]


def _counts(values: Iterable[tuple[str, int]]) -> str:
    items = list(values)
    parts = [f"{count:,} {'with' if name == 'no such label' else 'in'} {name}" for name, count in items[:_MOST_DOMAINS]]
    rest = items[_MOST_DOMAINS:]
    if rest:
        parts.append(f"{sum(count for _, count in rest):,} in {len(rest)} others")
    return listed(parts)


def bin_words(outcome: DemandOutcome, name: str) -> str:
    """The node's values of the labels that the demand's constraints use: `example.com/rack=r1, topology.kubernetes.io/zone=zone-a`."""
    pairs = dict.fromkeys((item.key, value_words(item)) for item in outcome.domains if item.bin == name)
    return ", ".join(f"{key}={value}" if value != "no such label" else f"no {key}" for key, value in pairs)


def own_domains(plan: Plan) -> dict[str, str]:
    """By new node, its values of the labels in its chunks' constraints, except zone and capacity type, which are always shown."""
    found: dict[str, dict[str, None]] = {}
    for outcome in plan.demands:
        for item in outcome.domains:
            if item.key not in {ZONE_LABEL, CAPACITY_TYPE_LABEL} and item.values:
                found.setdefault(item.bin, {})[f"{item.key}={value_words(item)}"] = None
    return {name: ", ".join(sorted(words)) for name, words in found.items()}

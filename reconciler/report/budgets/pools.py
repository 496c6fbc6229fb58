"""Budgets by NodePool and reason, and the words for when there is no NodePool."""

from __future__ import annotations

from collections.abc import Sequence

from reconciler.model.findings import Finding
from reconciler.model.timelines import BudgetSpan
from reconciler.report.words import listed


def no_pool_words(findings: Sequence[Finding]) -> str:
    """Why there is no row: no NodePool is declared, or all were left out because of findings."""
    left_out = list(dict.fromkeys(str(item.ref) for item in findings if item.ref is not None))
    if not left_out:
        return "There is no NodePool."
    words = "is left out; see the finding" if len(left_out) == 1 else "are left out; see the findings"
    return f"{listed(left_out)} {words}."


def by_row(spans: Sequence[BudgetSpan]) -> dict[str, dict[str, tuple[BudgetSpan, ...]]]:
    """Spans by NodePool and reason. Pools are sorted by name; reasons and spans keep their order."""
    pools: dict[str, dict[str, tuple[BudgetSpan, ...]]] = {}
    for pool in sorted({span.outcome.node_pool for span in spans}):
        own = [span for span in spans if span.outcome.node_pool == pool]
        reasons = dict.fromkeys(span.outcome.reason for span in own)
        pools[pool] = {reason: tuple(span for span in own if span.outcome.reason == reason) for reason in reasons}
    return pools

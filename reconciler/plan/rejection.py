"""Findings about a placement that the checker rejects."""

from __future__ import annotations

from collections.abc import Sequence

from reconciler.model.findings import Finding
from reconciler.plan.codes import PLACEMENT_REJECTED

MOST_SHOWN = 20
"""Findings for one rejected placement, since one error may break a rule at every node."""


def rejections(broken: Sequence[str]) -> tuple[Finding, ...]:
    """One for each broken rule, up to a limit."""
    hint = "nothing of this plan is applied; report it as a defect of headroom, with the cluster's `headroom snapshot`"
    shown = [f"the placement breaks a rule: {sentence}" for sentence in broken[:MOST_SHOWN]]
    more = len(broken) - MOST_SHOWN
    if more > 0:
        shown.append(f"the placement breaks {more:,} more {'rule' if more == 1 else 'rules'}")
    return tuple(Finding(PLACEMENT_REJECTED.name, PLACEMENT_REJECTED.severity, message, hint=hint) for message in shown)

"""Which pods may not be evicted, as Karpenter 1.14 judges it. Used by demand and plan.

Its own rules are `IsDoNotDisruptActive` (pkg/utils/pod) and the limits of disruption budgets (pkg/utils/pdb).
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from reconciler.model.durations import parse_duration
from reconciler.model.errors import Invalid
from reconciler.model.nodes import DISRUPTED_TAINT, DO_NOT_DISRUPT
from reconciler.model.pods import Pod
from reconciler.model.requirements import Taint
from reconciler.model.view import PodDisruptionBudget

_DISRUPTED = Taint(DISRUPTED_TAINT, "", "NoSchedule")


def is_kept(pod: Pod, now: datetime) -> bool:
    """do-not-disrupt: `true`, or a duration since the pod's start; its creation is what is known of that."""
    text = dict(pod.annotations).get(DO_NOT_DISRUPT)
    if text is None or text == "true":
        return text is not None
    try:
        duration = parse_duration(text)
    except Invalid:
        return False  # Karpenter passes over what is neither
    return pod.created is None or now - pod.created < duration


def is_never_evicted(pod: Pod, budgets: Iterable[PodDisruptionBudget]) -> bool:
    """By one budget that lets none of its pods go ever, or by several at once, which the eviction API refuses.

    Pods that tolerate the taint of disrupted nodes are not evicted at all, so that no budget is asked. Karpenter also lets
    pods go that are not ready where their budget has `unhealthyPodEvictionPolicy: AlwaysAllow`; that is not looked at.
    """
    if any(toleration.tolerates(_DISRUPTED) for toleration in pod.shape.tolerations):
        return False
    covering = [budget for budget in budgets if budget.covers(pod)]
    return len(covering) > 1 or any(budget.allows_none for budget in covering)

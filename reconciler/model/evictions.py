"""Which pods may not be evicted, as Karpenter 1.14 judges it.

Karpenter's own code is `IsDoNotDisruptActive` (pkg/utils/pod) and the PodDisruptionBudget limits of pkg/utils/pdb.
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
    """Whether do-not-disrupt is `true`, or a duration from the pod's start that has not passed.

    The view has no start times, so the creation time is used.
    """
    text = dict(pod.annotations).get(DO_NOT_DISRUPT)
    if text is None or text == "true":
        return text is not None
    try:
        duration = parse_duration(text)
    except Invalid:
        return False  # Karpenter ignores any other value
    return pod.created is None or now - pod.created < duration


def is_never_evicted(pod: Pod, budgets: Iterable[PodDisruptionBudget]) -> bool:
    """Whether a budget allows none of its pods to go, or several budgets cover the pod, which the eviction API refuses.

    Pods that tolerate the taint of disrupted nodes are not evicted, so no budget applies to them. Unlike Karpenter, this
    ignores `unhealthyPodEvictionPolicy: AlwaysAllow`, under which unready pods may go.
    """
    covering = _covering(pod, budgets)
    return len(covering) > 1 or any(budget.allows_none for budget in covering)


def why_not_evicted_now(pod: Pod, budgets: Iterable[PodDisruptionBudget], now: datetime) -> str:
    """Why Karpenter cannot evict the pod at present; "" if it can. Daemons and pods that are ending never stop it."""
    if pod.is_daemon or pod.deleting:
        return ""
    if is_kept(pod, now):
        return "do-not-disrupt"
    covering = _covering(pod, budgets)
    if len(covering) > 1:
        return f"{len(covering)} PodDisruptionBudgets, where one at most may cover a pod"
    return next((f"PodDisruptionBudget {budget.name}" for budget in covering if budget.allowed <= 0), "")


def _covering(pod: Pod, budgets: Iterable[PodDisruptionBudget]) -> list[PodDisruptionBudget]:
    """The budgets that apply to the pod: none where it tolerates the taint of disrupted nodes, since then nothing evicts it."""
    if any(toleration.tolerates(_DISRUPTED) for toleration in pod.shape.tolerations):
        return []
    return [budget for budget in budgets if budget.covers(pod)]

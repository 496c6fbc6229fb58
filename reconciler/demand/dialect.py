"""The two readings of a CapacityBuffer, and in words where they differ."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from reconciler.model.pods import PodShape
from reconciler.model.quantity import PODS, Resources

_FIELDS: Mapping[str, str] = {
    "node_selector": "node selector",
    "required_node_terms": "node affinity",
    "pod_affinity": "pod affinity",
    "pod_anti_affinity": "pod anti-affinity",
    "topology_spread": "topology spread",
}
"""Fields of a shape that decide where chunks go. Labels and tolerations are left out: every live pod has some of its own."""


class Dialect(StrEnum):
    """Whose reading counts where Karpenter and Cluster Autoscaler size the same buffer differently (`--dialect`)."""

    KARPENTER = "karpenter"
    CLUSTER_AUTOSCALER = "ca"

    @property
    def spoken(self) -> str:
        return "Karpenter" if self is Dialect.KARPENTER else "Cluster Autoscaler"


def difference_of_shapes(shapes: Mapping[Dialect, PodShape], dialect: Dialect, *, pod: str) -> str:
    """How a chunk of the template differs from one like the newest live pod; "" if they are equal.

    pod: the live pod, "" where none gave a shape.
    """
    template, live = shapes.get(Dialect.KARPENTER), shapes.get(Dialect.CLUSTER_AUTOSCALER)
    if template is None or live is None or not pod:
        return ""
    parts = []
    if template.requests != live.requests:
        parts.append(f"{_words(template.requests)} in the template, {_words(live.requests)} in {pod}")
    named = [words for name, words in _FIELDS.items() if getattr(template, name) != getattr(live, name)]
    if named:
        parts.append(f"{' and '.join(named)} of {pod} {'are' if len(named) > 1 else 'is'} not the template's")
    if not parts:
        return ""
    used = "the template" if dialect is Dialect.KARPENTER else "the newest live pod"
    return f"chunks are like {used} here: {'; '.join(parts)}"


def _words(requests: Resources) -> str:
    shown = Resources.of((name, amount) for name, amount in requests if name != PODS).quantities()
    return ", ".join(f"{name} {text}" for name, text in shown.items()) or "no requests"

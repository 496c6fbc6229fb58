"""Whether a pod may be on a node with certain labels and taints.

Only concrete labels are judged, one node at a time. That is simpler than the planner's algebra and independent of it, so that each
can reveal errors of the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from reconciler.model.pods import NodeSelectorTerm, PodShape
from reconciler.model.requirements import Requirement, Taint

METADATA_NAME = "metadata.name"
_KEEPS_OUT = {"NoSchedule", "NoExecute"}


def all_hold(requirements: Iterable[Requirement], labels: Mapping[str, str]) -> bool:
    return all(requirement.holds(labels.get(requirement.key)) for requirement in requirements)


def selects(shape: PodShape, labels: Mapping[str, str], node: str = "") -> bool:
    """Whether node selector and required node affinity match. Terms are alternatives; an empty one matches nothing."""
    if any(labels.get(key) != value for key, value in shape.node_selector):
        return False
    return not shape.required_node_terms or any(_term_holds(term, labels, node) for term in shape.required_node_terms)


def _term_holds(term: NodeSelectorTerm, labels: Mapping[str, str], node: str) -> bool:
    if not term.expressions and not term.fields:
        return False
    return all_hold(term.expressions, labels) and all_hold(term.fields, {METADATA_NAME: node})


def tolerates(shape: PodShape, taints: Iterable[Taint]) -> bool:
    """Whether every taint that keeps pods off is tolerated."""
    return all(
        any(toleration.tolerates(taint) for toleration in shape.tolerations)
        for taint in taints
        if taint.effect in _KEEPS_OUT
    )

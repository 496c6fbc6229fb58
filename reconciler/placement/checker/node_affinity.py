"""Node selector and required node affinity (kube-scheduler's plugin NodeAffinity, Filter).

A label that is undecided must suit the pod with every possible value.
"""

from __future__ import annotations

from collections.abc import Iterable

from reconciler.model.pods import NodeSelectorTerm, PodShape
from reconciler.model.requirements import Operator, Requirement
from reconciler.placement.checker.checked_node import CheckedNode
from reconciler.placement.checker.labels import holds


def affinity_violations(node: CheckedNode, shape: PodShape) -> Iterable[str]:
    if not accepts(node, shape):
        yield f"labels are not those that {shape.namespace} asks for"


def accepts(node: CheckedNode, shape: PodShape) -> bool:
    if any(node.values(key) != {value} for key, value in shape.node_selector):
        return False
    return not shape.required_node_terms or any(term_holds(node, term) for term in shape.required_node_terms)


def term_holds(node: CheckedNode, term: NodeSelectorTerm) -> bool:
    """Whether a node meets a term. An empty term matches no node (component-helpers, nodeaffinity.nodeSelectorTerm.match)."""
    if not term.expressions and not term.fields:
        return False
    name = node.name if node.exists else None
    return all(surely_holds(node, item) for item in term.expressions) and all(holds(item, name) for item in term.fields)


def surely_holds(node: CheckedNode, requirement: Requirement) -> bool:
    return all(holds(requirement, value) for value in node.values(requirement.key))


def may_accept(node: CheckedNode, shape: PodShape) -> bool:
    """Whether selector and affinity accept the node with some of the values that its labels may get."""
    selector = [Requirement(key, Operator.IN, (value,)) for key, value in shape.node_selector]
    terms = [term.expressions for term in shape.required_node_terms if term.expressions or term.fields]
    return all(_may_hold(node, item) for item in selector) and (
        not shape.required_node_terms or any(all(_may_hold(node, item) for item in term) for term in terms)
    )


def _may_hold(node: CheckedNode, requirement: Requirement) -> bool:
    return any(holds(requirement, value) for value in node.values(requirement.key))

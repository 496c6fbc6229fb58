"""Which pods and chunks are on which node, indexed by equivalence class, by labels and by topology domain.

Shapes of one equivalence class differ only in their requests, so no topology rule distinguishes them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from reconciler.model.nodes import HOSTNAME_LABEL
from reconciler.model.pods import PodAffinityTerm, PodShape
from reconciler.model.quantity import Resources
from reconciler.model.requirements import LabelSelector, Operator, Requirement
from reconciler.placement.checker.checked_nodes import CheckedNode, Occupant

UNDECIDED = "\0undecided"
"""Stands for the domain of a node that may still be in one of several."""

Namespaces = Mapping[str, Mapping[str, str]]
"""Labels of namespaces."""


@dataclass(frozen=True, slots=True)
class Placed:
    """An occupant, with numbers for what is compared often: its node, its shape, the shape's equivalence class, and its namespace
    with its labels."""

    occupant: Occupant
    node: int
    shape: int
    equivalence: int
    labelled: int


class Occupancy:
    """classes: the number of each equivalence class, by its shape without requests. labelled: the number of each namespace with
    labels. of_class, of_labelled: the occupants by these numbers.
    """

    def __init__(self, nodes: Sequence[CheckedNode]) -> None:
        self.nodes = nodes
        self.all: list[Placed] = []
        self.classes: dict[PodShape, int] = {}
        self.labelled: dict[tuple[str, tuple[tuple[str, str], ...]], int] = {}
        self._shapes: dict[PodShape, int] = {}
        self._domains: dict[str, list[str | None]] = {}
        self.of_class: dict[int, list[Placed]] = {}
        self.of_labelled: dict[int, list[Placed]] = {}
        known: dict[int, tuple[int, int, int]] = {}  # by identity, since comparing shapes is slow
        for number, node in enumerate(nodes):
            for occupant in node.occupants:
                if id(occupant.shape) not in known:
                    known[id(occupant.shape)] = self._numbers(occupant.shape)
                placed = Placed(occupant, number, *known[id(occupant.shape)])
                self.all.append(placed)
                self.of_class.setdefault(placed.equivalence, []).append(placed)
                self.of_labelled.setdefault(placed.labelled, []).append(placed)
        self._with_label: dict[tuple[str, str], list[int]] = {}
        for (_, labels), labelled in self.labelled.items():
            for label in labels:
                self._with_label.setdefault(label, []).append(labelled)
        self._sets = list(self.labelled)

    def _numbers(self, shape: PodShape) -> tuple[int, int, int]:
        plain = replace(shape, requests=Resources())
        return (
            self._shapes.setdefault(shape, len(self._shapes)),
            self.classes.setdefault(plain, len(self.classes)),
            self.labelled.setdefault((shape.namespace, shape.labels), len(self.labelled)),
        )

    def domains(self, key: str) -> Sequence[str | None]:
        """The domain of each node, by its number."""
        if key not in self._domains:
            self._domains[key] = [_domain(node, key) for node in self.nodes]
        return self._domains[key]

    def matched(self, selector: LabelSelector) -> list[tuple[int, str]]:
        """The numbers of label sets that a selector matches in any namespace, each with its namespace."""
        candidates = (self._with_label.get(label, []) for label in selector.match_labels)
        first = min(candidates, key=len, default=range(len(self._sets)))
        sets = ((number, *self._sets[number]) for number in first)
        return [(number, namespace) for number, namespace, labels in sets if selector.matches(dict(labels))]

    def selected(self, term: PodAffinityTerm, owner: PodShape, namespaces: Namespaces) -> frozenset[int]:
        """The numbers of label sets that an affinity term of this owner selects."""
        if term.selector is None:
            return frozenset()
        selector = with_keys(term.selector, owner, term.match_label_keys, Operator.IN)
        selector = with_keys(selector, owner, term.mismatch_label_keys, Operator.NOT_IN)
        found = self.matched(selector)
        return frozenset(number for number, name in found if _is_meant(term, owner.namespace, name, namespaces))


def _domain(node: CheckedNode, key: str) -> str | None:
    """The node's domain. Each node is taken for a host of its own, also where two carry one hostname."""
    if key == HOSTNAME_LABEL:
        return f"\0{node.name}"
    values = node.values(key)
    return next(iter(values)) if len(values) == 1 else UNDECIDED


def _is_meant(term: PodAffinityTerm, own: str, other: str, namespaces: Namespaces) -> bool:
    if term.namespace_selector is None:
        return other in (term.namespaces or (own,))
    chosen = term.namespace_selector == LabelSelector() or term.namespace_selector.matches(namespaces.get(other, {}))
    return chosen or other in term.namespaces


def with_keys(selector: LabelSelector, shape: PodShape, keys: Iterable[str], operator: Operator) -> LabelSelector:
    """The selector with matchLabelKeys or mismatchLabelKeys (KEP-3243, KEP-3633): it requires or excludes the owner's values."""
    labels = dict(shape.labels)
    extra = tuple(Requirement(key, operator, (labels[key],)) for key in keys if key in labels)
    return LabelSelector(selector.match_labels, (*selector.expressions, *extra))

"""What a pod shape asks of a node, prepared for comparison. Computed once for each distinct shape."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from reconciler.model.pods import NodeSelectorTerm, PodShape
from reconciler.model.quantity import Resources
from reconciler.model.requirements import Requirement
from reconciler.placement.amounts import Amounts
from reconciler.placement.equivalence import EquivalenceClasses
from reconciler.placement.requirements import Requirements

NODE_NAME_FIELD = "metadata.name"


@dataclass(frozen=True, slots=True)
class NodeTerm:
    """One alternative of a node's requirements. literal: labels as written, for existing nodes. stable: with older label names
    replaced by the stable ones, for new nodes. names: requirements on the node's own name."""

    literal: Requirements
    stable: Requirements
    names: Requirements


@dataclass(frozen=True, slots=True)
class RelaxationStep:
    """One way to make a new node for a shape. wanted: one of its alternatives, with at most one preference added. soft_taints:
    whether the node may have PreferNoSchedule taints that are not tolerated."""

    wanted: Requirements
    soft_taints: bool


@dataclass(slots=True, eq=False)
class Needs:
    """A shape and what follows from it; never modified. terms: at least one must hold. equivalence_class: its number (see
    `equivalence.py`), -1 for daemons, which need none."""

    shape: PodShape
    request: Amounts
    terms: tuple[NodeTerm, ...]
    relaxations: tuple[RelaxationStep, ...]
    equivalence_class: int = -1

    @property
    def affinity_terms(self) -> tuple[NodeTerm, ...]:
        """The terms from selector and affinity alone, without volumes, as spread constraints look at them."""
        shape = self.shape
        return tuple(terms_of(shape, ())) if shape.attachment_terms or shape.obstacle else self.terms


def needs_of(shape: PodShape, request: Amounts) -> Needs:
    terms = () if shape.obstacle else tuple(terms_of(shape, shape.attachment_terms))
    return Needs(shape, request, terms, tuple(_relaxations(shape, terms)))


class KnownNeeds:
    """The needs of every shape seen, computed once. Shapes that ask for the same nodes share their terms and relaxation steps."""

    def __init__(self, request: Callable[[Resources], Amounts]) -> None:
        self.equivalence_classes = EquivalenceClasses()
        self._request = request
        self._known: dict[int, Needs] = {}
        """By identity, since hashing a shape is slow. Needs keep their shape alive, so that no other object gets its identity."""
        self._of_class: dict[int, Needs] = {}
        self._alike: dict[tuple[object, ...], Needs] = {}

    def of(self, shape: PodShape) -> Needs:
        needs = self._known.get(id(shape))
        if needs is None:
            equivalence_class = self.equivalence_classes.number(shape)
            alike = self._of_class.get(equivalence_class)
            if alike is None:
                alike = self._of_class[equivalence_class] = self._alike_of(shape)
            request = self._request(shape.requests)
            needs = self._known[id(shape)] = Needs(shape, request, alike.terms, alike.relaxations, equivalence_class)
        return needs

    def _alike_of(self, shape: PodShape) -> Needs:
        parts = (
            *(shape.node_selector, shape.required_node_terms, shape.preferred_node_terms),
            *(shape.attachment_terms, shape.obstacle),
        )
        if parts not in self._alike:
            self._alike[parts] = needs_of(shape, self._request(shape.requests))
        return self._alike[parts]


def terms_of(shape: PodShape, places: Sequence[NodeSelectorTerm]) -> Iterable[NodeTerm]:
    for term in shape.required_node_terms or (NodeSelectorTerm(),):
        if shape.required_node_terms and not term.expressions and not term.fields:
            continue  # an empty term matches no node
        for place in places or (NodeSelectorTerm(),):
            expressions = (*term.expressions, *place.expressions)
            yield NodeTerm(
                literal=_wanted(shape, expressions, stable=False),
                stable=_wanted(shape, expressions, stable=True),
                names=Requirements.of((*term.fields, *place.fields), stable=False),
            )


def _wanted(shape: PodShape, expressions: Sequence[Requirement], *, stable: bool) -> Requirements:
    selector = Requirements.labels(shape.node_selector, stable=stable)
    return selector.both(Requirements.of(expressions, stable=stable))


def _relaxations(shape: PodShape, terms: Sequence[NodeTerm]) -> Iterable[RelaxationStep]:
    """The relaxation steps in Karpenter's order, which gives up one preference at a time, then soft taints."""
    # A new node has no name yet, so it can meet only requirements that exclude names.
    makeable = [term.stable for term in terms if all(values.absent for _, values in term.names.entries)]
    preferred = sorted(shape.preferred_node_terms, key=lambda term: -term.weight)
    for preference in preferred:
        extra = Requirements.of(preference.term.expressions)
        for wanted in makeable:
            if wanted.conflict(extra) is None:
                yield RelaxationStep(wanted.both(extra), soft_taints=False)
    for soft_taints in (False, True):
        for wanted in makeable:
            yield RelaxationStep(wanted, soft_taints)

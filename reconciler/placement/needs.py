"""What a pod shape asks of a node, prepared for comparison: once for each class of shapes that differ only in requests and host ports.

Preferences are rules to try first. They count for new nodes only. On existing nodes kube-scheduler weighs preferences itself, and never
leaves a pod without a place because of them. They are given up in Karpenter's order: preferred pod affinity, the heaviest first, then
spread with `ScheduleAnyway`. Preferred node affinity and soft taints come after these (`RelaxationStep`). Spread over hosts and
preferred anti-affinity are ignored here: as rules they would buy a node for each pod.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter

from reconciler.model.nodes import HOSTNAME_LABEL
from reconciler.model.pods import NodeSelectorTerm, PodShape
from reconciler.model.quantity import Resources
from reconciler.model.requirements import Requirement
from reconciler.placement.arrays import Amounts
from reconciler.placement.requirements import Requirements

_Parts = tuple[object, ...]


_apart_from_amounts = attrgetter(
    *("namespace", "labels", "node_selector", "required_node_terms", "preferred_node_terms", "tolerations"),
    *("topology_spread", "pod_affinity", "pod_anti_affinity", "attachment_terms", "obstacle", "own_taint"),
)


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
    `KnownNeeds`), -1 for daemons, which need none."""

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
    """The needs of every shape seen, computed once. Shapes that ask for the same nodes share their terms and relaxation steps. Shapes that
    differ only in requests and host ports are of one equivalence class, which has a number."""

    def __init__(self, request: Callable[[Resources], Amounts]) -> None:
        self._request = request
        self._numbers: dict[_Parts, int] = {}
        self._same: dict[tuple[int, ...], tuple[_Parts, int]] = {}
        """Numbers of classes by identity of the parts of a shape, which many shapes share and which are slow to hash. The parts are kept
        alive with the number, so that no other object gets their identity."""
        self._known: dict[int, Needs] = {}
        """By identity, since hashing a shape is slow. Needs keep their shape alive, so that no other object gets its identity."""
        self._of_class: dict[int, Needs] = {}
        self._alike: dict[tuple[object, ...], Needs] = {}

    def class_of(self, shape: PodShape) -> int:
        """The number of its equivalence class."""
        parts = _apart_from_amounts(shape)
        same = tuple(map(id, parts))
        known = self._same.get(same)
        if known is None:
            known = self._same[same] = parts, self._numbers.setdefault(parts, len(self._numbers))
        return known[1]

    def of(self, shape: PodShape) -> Needs:
        needs = self._known.get(id(shape))
        if needs is None:
            equivalence_class = self.class_of(shape)
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


_SOFT, _HARD = "ScheduleAnyway", "DoNotSchedule"


def firmer_shapes(shape: PodShape) -> tuple[PodShape, ...]:
    """The shapes with preferences as rules, the strictest first, without the shape itself; empty if it has no such preference."""
    soft = [item for item in shape.topology_spread if item.when_unsatisfiable == _SOFT]
    spread = [item for item in soft if item.topology_key != HOSTNAME_LABEL]
    if not shape.preferred_pod_affinity and not spread:
        return ()
    preferred = sorted(shape.preferred_pod_affinity, key=lambda item: -item.weight)
    rungs = [(number, len(spread)) for number in range(len(preferred))]
    rungs += [(len(preferred), count) for count in range(len(spread), 0, -1)]
    return tuple(
        replace(
            shape,
            pod_affinity=(*shape.pod_affinity, *(item.term for item in preferred[dropped:])),
            topology_spread=tuple(
                replace(item, when_unsatisfiable=_HARD) if item in spread[:kept] else item
                for item in shape.topology_spread
            ),
        )
        for dropped, kept in rungs
    )

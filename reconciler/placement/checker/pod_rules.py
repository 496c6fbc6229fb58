"""Rules between pods: topology spread constraints with DoNotSchedule, required affinity and anti-affinity (the filters of kube-scheduler's
plugins PodTopologySpread and InterPodAffinity).

Occupants are indexed by equivalence class, by labels and by topology domain. Shapes of one equivalence class differ only in their requests,
so no topology rule distinguishes them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from reconciler.model.nodes import HOSTNAME_LABEL
from reconciler.model.pods import PodAffinityTerm, PodShape, TopologySpread
from reconciler.model.quantity import Resources
from reconciler.model.refs import by_key
from reconciler.model.requirements import LabelSelector, Operator, Requirement
from reconciler.placement.checker.checked_nodes import CheckedNode, Occupant
from reconciler.placement.checker.node_rules import accepts, may_accept, untolerated

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


@dataclass(frozen=True, slots=True)
class _Chunks:
    """Chunks of one equivalence class for which the same pods count.

    first: they are pods that no node is made for, which are bound before any planned node comes up.
    """

    shape: PodShape
    placed: Sequence[Placed]
    first: bool

    def constraints(self) -> list[TopologySpread]:
        return [item for item in self.shape.topology_spread if item.when_unsatisfiable == "DoNotSchedule"]


@dataclass(frozen=True, slots=True)
class _Scope:
    """The nodes that a constraint looks at. counts: by node number, whether it counts. tolerated: whether its taints allow that."""

    counts: Sequence[bool]
    tolerated: Sequence[bool]
    possible: dict[str, frozenset[str]] = field(default_factory=dict)
    """By topology key, filled as it is asked for."""


def spread_violations(occupancy: Occupancy) -> Iterable[str]:
    spread = _Spread(occupancy)
    for shape, number in occupancy.classes.items():
        for chunks in _alike(occupancy, shape, number):
            for constraint in chunks.constraints():
                yield from spread.violations(chunks, constraint)


def _alike(occupancy: Occupancy, shape: PodShape, number: int) -> Iterable[_Chunks]:
    """The class's chunks in groups that are judged together. All chunks of a shape are in one group, and so are shapes whose chunks
    agree on which are bound first and which are KeepMinimum."""
    placed = occupancy.of_class[number] if shape.topology_spread else ()
    of_shape = by_key((item.shape, item) for item in placed if item.occupant.is_chunk)
    found: dict[frozenset[tuple[bool, bool]], list[Placed]] = {}
    for members in of_shape.values():
        ways = frozenset(
            (item.occupant.opens_none and not occupancy.nodes[item.node].is_planned, item.occupant.keeps_minimum)
            for item in members
        )
        found.setdefault(ways, []).extend(members)
    for ways, members in found.items():
        yield _Chunks(shape, members, all(first for first, _ in ways))


class _Spread:
    """Judges all constraints. Which nodes count depends on little of a constraint, so most constraints share one scope."""

    def __init__(self, occupancy: Occupancy) -> None:
        self._occupancy = occupancy
        self._scopes: dict[tuple[object, ...], _Scope] = {}

    def violations(self, chunks: _Chunks, constraint: TopologySpread) -> Iterable[str]:
        nodes, key = self._occupancy.nodes, constraint.topology_key
        keys = sorted({item.topology_key for item in chunks.constraints()})
        scope = self._scope(chunks, constraint, keys)
        counted = self._counted(scope, chunks.shape, constraint)
        domains = self._occupancy.domains(key)
        bare = sorted({nodes[item.node].name for item in chunks.placed if domains[item.node] is None})
        if bare:
            yield f"spread over {key}: {', '.join(bare)} is without that label"
        if any(self._is_undecided(item.node, other, key) for item in counted for other in keys):
            yield f"spread over {key}: a node that counts is not decided"
        elif self._is_too_skewed(scope, chunks, constraint, counted):
            yield f"spread over {key} exceeds maxSkew {constraint.max_skew}"

    def _scope(self, chunks: _Chunks, constraint: TopologySpread, keys: Sequence[str]) -> _Scope:
        """The nodes that count: with the labels of all constraints, by nodeAffinityPolicy and nodeTaintsPolicy (KEP-3094)."""
        shape = chunks.shape
        by_affinity = constraint.node_affinity_policy == "Honor"
        by_taints = constraint.node_taints_policy == "Honor"
        case = (
            *(chunks.first, *keys),
            (shape.node_selector, shape.required_node_terms) if by_affinity else None,
            shape.tolerations if by_taints else None,
        )
        if case not in self._scopes:
            domains = [self._occupancy.domains(key) for key in keys]
            tolerated = [not (by_taints and untolerated(node.taints, shape)) for node in self._occupancy.nodes]
            counts = [
                tolerated[number]
                and not (chunks.first and node.is_planned)
                and all(of_key[number] is not None for of_key in domains)
                and (not by_affinity or accepts(node, shape))
                for number, node in enumerate(self._occupancy.nodes)
            ]
            self._scopes[case] = _Scope(counts, tolerated)
        return self._scopes[case]

    def _counted(self, scope: _Scope, shape: PodShape, constraint: TopologySpread) -> list[Placed]:
        """The pods and chunks that count, in any domain."""
        if constraint.selector is None:
            return []
        selector = with_keys(constraint.selector, shape, constraint.match_label_keys, Operator.IN)
        if selector == LabelSelector():  # which counts nothing there (podtopologyspread, countPodsMatchSelector)
            return []
        return [
            item
            for labelled, namespace in self._occupancy.matched(selector)
            if namespace == shape.namespace
            for item in self._occupancy.of_labelled[labelled]
            if scope.counts[item.node]
        ]

    def _is_undecided(self, node: int, key: str, own: str) -> bool:
        """Whether the node's domain is undecided. Labels of other constraints only have to exist."""
        undecided = self._occupancy.domains(key)[node] == UNDECIDED
        return undecided and (key == own or None in self._occupancy.nodes[node].values(key))

    def _is_too_skewed(
        self, scope: _Scope, chunks: _Chunks, constraint: TopologySpread, counted: Sequence[Placed]
    ) -> bool:
        """Whether a domain is too full. Chunks that count but are not under the constraint may be bound at any time: first in the
        emptiest domain, last elsewhere. So a domain is too full only if it is so without them."""
        domains = self._occupancy.domains(constraint.topology_key)
        there = [item for item in chunks.placed if scope.counts[item.node]]
        minimum_only = any(item.occupant.keeps_minimum for item in there)
        totals, free = Counter[str](), Counter[str]()
        for item in counted:
            occupant, domain = item.occupant, domains[item.node] or ""
            if occupant.is_leaving or (minimum_only and not occupant.is_chunk):
                continue
            if chunks.first and occupant.is_chunk and not occupant.opens_none:
                continue
            totals[domain] += occupant.count
            if occupant.is_chunk and constraint not in occupant.shape.topology_spread:
                free[domain] += occupant.count
        possible = self._possible(scope, chunks.shape, constraint)
        none_empty = len(totals) == len(possible) >= (constraint.min_domains or 1)
        least = min(totals.values(), default=0) if none_empty else 0
        used = {domains[item.node] or "" for item in there}
        return any(totals[domain] - free[domain] - least > constraint.max_skew for domain in used)

    def _possible(self, scope: _Scope, shape: PodShape, constraint: TopologySpread) -> frozenset[str]:
        """The domains that exist or may come about: those of undecided nodes that count, and of NodeClaims that may count there."""
        key = constraint.topology_key
        if key not in scope.possible:
            domains = self._occupancy.domains(key)
            found: set[str] = set()
            for number, node in enumerate(self._occupancy.nodes):
                undecided = domains[number] == UNDECIDED
                if scope.counts[number]:
                    found.update(node.possible(key) if undecided else [domains[number] or ""])
                elif undecided and scope.tolerated[number] and not node.is_planned:
                    found.update(item for item in node.possible(key) if _may_count(node, shape, constraint, item))
            scope.possible[key] = frozenset(found)
        return scope.possible[key]


def _may_count(node: CheckedNode, shape: PodShape, constraint: TopologySpread, domain: str) -> bool:
    """Whether the node counts if it ends up in the domain."""
    decided = replace(node, labels={**node.labels, constraint.topology_key: frozenset({domain})})
    return constraint.node_affinity_policy != "Honor" or may_accept(decided, shape)


def inter_pod_violations(occupancy: Occupancy, namespaces: Namespaces) -> Iterable[str]:
    for shape, number in occupancy.classes.items():
        placed = occupancy.of_class[number]
        if shape.pod_affinity and any(item.occupant.is_chunk for item in placed):
            yield from _affinity(occupancy, shape, number, namespaces)
        for term in shape.pod_anti_affinity:
            yield from _anti_affinity(occupancy, placed, term, occupancy.selected(term, shape, namespaces))


def _anti_affinity(
    occupancy: Occupancy, owners: Sequence[Placed], term: PodAffinityTerm, selected: frozenset[int]
) -> Iterable[str]:
    """Judged in both directions: a chunk must stay out of the domain of a pod with such a rule, even if it has none itself. An undecided
    domain may be any."""
    domains = occupancy.domains(term.topology_key)
    near: dict[str | None, Counter[_Standing]] = {}
    for item in (item for number in selected for item in occupancy.of_labelled[number]):
        near.setdefault(domains[item.node], Counter())[_standing(item)] += item.occupant.count
    near.pop(None, None)
    for owner in owners if near else ():
        domain, own = domains[owner.node], _standing(owner)
        if domain is not None:
            there = near if domain == UNDECIDED else (domain, UNDECIDED)
            found = sum((near[where] for where in there if where in near), Counter[_Standing]())
            found[own] -= owner.labelled in selected
            if any(count > 0 and _keep_off(own, other) for other, count in found.items()):
                yield f"{occupancy.nodes[owner.node].name}: anti-affinity by {term.topology_key} is broken"


_Standing = tuple[bool, bool]
"""Whether it is a chunk, and whether it is KeepMinimum."""


def _standing(placed: Placed) -> _Standing:
    return placed.occupant.is_chunk, placed.occupant.keeps_minimum


def _keep_off(one: _Standing, other: _Standing) -> bool:
    """Whether the rule applies between these two. It does not between running pods, which headroom did not place, nor between
    running pods and KeepMinimum chunks, which may stand for them."""
    (one_is_chunk, one_keeps), (other_is_chunk, other_keeps) = one, other
    if not (one_is_chunk and other_is_chunk) and (one_keeps or other_keeps):
        return False
    return one_is_chunk or other_is_chunk


def _affinity(occupancy: Occupancy, shape: PodShape, number: int, namespaces: Namespaces) -> Iterable[str]:
    """Chunks of one class may start one domain without any pod that their term selects, if it selects themselves
    (satisfyPodAffinity in the plugin)."""
    meant = frozenset.intersection(*(occupancy.selected(term, shape, namespaces) for term in shape.pod_affinity))
    keys = [term.topology_key for term in shape.pod_affinity]
    others = [
        item
        for labelled in sorted(meant)
        for item in occupancy.of_labelled[labelled]
        if not (item.occupant.is_chunk and item.equivalence == number) and not item.occupant.is_leaving
        if any(occupancy.domains(key)[item.node] is not None for key in keys)
    ]
    # Chunks without affinity may come after those that started a domain.
    anybody = any(not item.occupant.is_chunk for item in others)
    allowed = 1 if occupancy.labelled[shape.namespace, shape.labels] in meant and not anybody else 0
    for key in keys:
        domains = occupancy.domains(key)
        used = {domains[item.node] for item in occupancy.of_class[number] if item.occupant.is_chunk}
        lonely = used - ({domains[item.node] for item in others} - {None, UNDECIDED})
        if len(lonely) > allowed or lonely & {None, UNDECIDED}:
            yield f"affinity by {key} has no company in {sorted(map(str, lonely))}"

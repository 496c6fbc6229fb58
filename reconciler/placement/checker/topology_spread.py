"""Topology spread constraints with DoNotSchedule (kube-scheduler's plugin PodTopologySpread, Filter)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from reconciler.model.pods import PodShape, TopologySpread
from reconciler.model.requirements import LabelSelector, Operator
from reconciler.placement.checker.checked_nodes import UNDECIDED, CheckedNode, Occupancy, Placed, with_keys
from reconciler.placement.checker.node_rules import accepts, may_accept, untolerated


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
    of_shape: dict[int, list[Placed]] = {}
    for item in occupancy.of_class[number] if shape.topology_spread else ():
        if item.occupant.is_chunk:
            of_shape.setdefault(item.shape, []).append(item)
    found: dict[frozenset[tuple[bool, bool]], list[Placed]] = {}
    for members in of_shape.values():
        ways = frozenset(
            (
                item.occupant.opens_none and not occupancy.nodes[item.node].is_planned,
                item.occupant.keeps_minimum,
            )
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

"""Required affinity and anti-affinity between pods (kube-scheduler's plugin InterPodAffinity, Filter)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from reconciler.model.pods import PodAffinityTerm, PodShape
from reconciler.placement.checker.checked_nodes import UNDECIDED, Namespaces, Occupancy, Occupant, Placed

_Standing = tuple[bool, bool]
"""Whether it is a chunk, and whether it is KeepMinimum."""


def inter_pod_violations(occupancy: Occupancy, namespaces: Namespaces) -> Iterable[str]:
    domains: dict[str, _Domains] = {}
    for shape, number in occupancy.classes.items():
        placed = occupancy.of_class[number]
        if shape.pod_affinity and any(item.occupant.is_chunk for item in placed):
            yield from _affinity(occupancy, shape, number, namespaces)
        for term in shape.pod_anti_affinity:
            if term.topology_key not in domains:
                domains[term.topology_key] = _Domains(occupancy, term.topology_key)
            selected = occupancy.selected(term, shape, namespaces)
            if selected:
                yield from _anti_affinity(occupancy, domains[term.topology_key], placed, term, selected)


class _Domains:
    """By domain of a topology key, how many pods and chunks of each label set and standing are there."""

    def __init__(self, occupancy: Occupancy, key: str) -> None:
        self.of_node = occupancy.domains(key)
        self._counts: dict[str, dict[int, dict[_Standing, int]]] = {}
        for item in occupancy.all:
            domain = self.of_node[item.node]
            if domain is not None:
                counts = self._counts.setdefault(domain, {}).setdefault(item.labelled, {})
                standing = _standing(item.occupant)
                counts[standing] = counts.get(standing, 0) + item.occupant.count

    def others(self, owner: Placed, domain: str, selected: frozenset[int]) -> Iterable[tuple[_Standing, int]]:
        """How many besides the owner are, or may be, in its domain. An undecided domain may be any."""
        for where in self._counts if domain == UNDECIDED else (domain, UNDECIDED):
            there = self._counts.get(where, {})
            for number in selected if len(selected) < len(there) else selected & there.keys():
                for standing, count in there.get(number, {}).items():
                    itself = (where, number, standing) == (domain, owner.labelled, _standing(owner.occupant))
                    yield standing, count - itself


def _anti_affinity(
    occupancy: Occupancy, domains: _Domains, owners: Sequence[Placed], term: PodAffinityTerm, selected: frozenset[int]
) -> Iterable[str]:
    """Judged in both directions: a chunk must stay out of the domain of a pod with such a rule, even if it has none itself."""
    judged: dict[tuple[str, int, _Standing], bool] = {}
    for owner in owners:
        domain, own = domains.of_node[owner.node], _standing(owner.occupant)
        if domain is None:
            continue
        case = (domain, owner.labelled, own)
        if case not in judged:
            near = domains.others(owner, domain, selected)
            judged[case] = any(count > 0 and _keep_off(own, other) for other, count in near)
        if judged[case]:
            yield f"{occupancy.nodes[owner.node].name}: anti-affinity by {term.topology_key} is broken"


def _standing(occupant: Occupant) -> _Standing:
    return occupant.is_chunk, occupant.keeps_minimum


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

"""Checks inter-pod affinity and anti-affinity of a placement over all sites at once. Used by violations."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from reconciler.model.pods import PodAffinityTerm, PodShape
from reconciler.placement.checker.residents import Namespaces, Resident, Residents
from reconciler.placement.checker.sites import OPEN, Site, Tenant
from reconciler.placement.checker.spread import spread_violations

_Way = tuple[bool, bool]
"""Chunk or not, KeepMinimum or not."""


def topology_violations(sites: Sequence[Site], namespaces: Namespaces) -> Iterable[str]:
    residents = Residents(sites)
    yield from spread_violations(residents)
    for shape, kin in residents.kin.items():
        if shape.pod_affinity and any(resident.tenant.chunk for resident in residents.of_kin(kin)):
            yield from _together(residents, shape, kin, namespaces)
    crowds: dict[str, _Crowds] = {}
    for shape, kin in residents.kin.items():
        for term in shape.pod_anti_affinity:
            if term.topology_key not in crowds:
                crowds[term.topology_key] = _Crowds(residents, term.topology_key)
            met = residents.selected(term, shape, namespaces)
            if met:
                yield from _apart(residents, crowds[term.topology_key], residents.of_kin(kin), term, met)


class _Crowds:
    """How many tenants of each folk and way are in each domain of a key."""

    def __init__(self, residents: Residents, key: str) -> None:
        self.domains = residents.domains(key)
        self._counts: dict[str, dict[int, dict[_Way, int]]] = {}
        for resident in residents.all:
            domain = self.domains[resident.site]
            if domain is not None:
                ways = self._counts.setdefault(domain, {}).setdefault(resident.folk, {})
                way = _way(resident.tenant)
                ways[way] = ways.get(way, 0) + 1

    def about(self, domain: str, folk: frozenset[int]) -> Iterable[tuple[str, int, _Way, int]]:
        """Those that are or may come to be in the domain, and where: an open label may take any value."""
        for where in self._counts if domain == OPEN else (domain, OPEN):
            there = self._counts.get(where, {})
            for number in folk if len(folk) < len(there) else folk & there.keys():
                for way, count in there.get(number, {}).items():
                    yield where, number, way, count


def _apart(
    residents: Residents, crowds: _Crowds, owners: Sequence[Resident], term: PodAffinityTerm, met: frozenset[int]
) -> Iterable[str]:
    judged: dict[tuple[str, _Way, bool], bool] = {}
    for owner in owners:
        domain = crowds.domains[owner.site]
        if domain is None:
            continue
        single = owner.tenant.count == 1
        case = (domain, _way(owner.tenant), single)
        if case not in judged:
            itself = (domain, owner.folk, case[1]) if single else None
            judged[case] = any(
                count > (1 if (where, folk, way) == itself else 0) and _meet(case[1], way)
                for where, folk, way, count in crowds.about(domain, met)
            )
        if judged[case]:
            yield f"{residents.sites[owner.site].name}: anti-affinity by {term.topology_key} is broken"


def _way(tenant: Tenant) -> _Way:
    return tenant.chunk, tenant.keeps_minimum


def _meet(one: _Way, other: _Way) -> bool:
    """Of two pods that run nothing is our doing; and KeepMinimum chunks may be the very pods that run, so that the two do not
    keep each other off."""
    return (one[0] or other[0]) and not ((one[1] and not other[0]) or (other[1] and not one[0]))


def _together(residents: Residents, shape: PodShape, kin: int, namespaces: Namespaces) -> Iterable[str]:
    selected = [residents.selected(term, shape, namespaces) for term in shape.pod_affinity]
    meant = frozenset.intersection(*selected)
    others = [
        resident
        for folk in sorted(meant)
        for resident in residents.of_folk(folk)
        if not (resident.tenant.chunk and resident.kin == kin) and not resident.tenant.leaving
        if any(residents.domains(term.topology_key)[resident.site] is not None for term in shape.pod_affinity)
    ]
    # Chunks that need no company may come after those that started a domain of their own.
    anywhere = any(not resident.tenant.chunk for resident in others)
    allowed = 1 if residents.folk[shape.namespace, shape.labels] in meant and not anywhere else 0
    for term in shape.pod_affinity:
        domains = residents.domains(term.topology_key)
        used = {domains[resident.site] for resident in residents.of_kin(kin) if resident.tenant.chunk}
        supported = {domains[resident.site] for resident in others}
        lonely = used - (supported - {None, OPEN})
        if len(lonely) > allowed or lonely & {None, OPEN}:
            yield f"affinity by {term.topology_key} has no company in {sorted(map(str, lonely))}"

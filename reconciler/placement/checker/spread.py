"""Checks topology spread constraints of a placement over all sites at once. Used by topology."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from reconciler.model.pods import PodShape, TopologySpread
from reconciler.model.requirements import Operator
from reconciler.placement.checker.residents import Resident, Residents, with_keys
from reconciler.placement.checker.sites import OPEN, Site, accepts, may_accept, untolerated

_Way = tuple[bool, bool, bool]


@dataclass(frozen=True, slots=True)
class _Alike:
    """Chunks under spread constraints that differ in requests only, and are placed as pods that no node is made for, as KeepMinimum
    chunks and on planned nodes or not in the same way: what holds for one of them holds for all. waiting: they are such pods, bound
    before any planned node comes."""

    shape: PodShape
    chunks: Sequence[Resident]
    waiting: bool


def spread_violations(residents: Residents) -> Iterable[str]:
    fields = _Fields(residents.sites)
    for shape, kin in residents.kin.items():
        if any(item.when_unsatisfiable == "DoNotSchedule" for item in shape.topology_spread):
            for alike in _alike(residents, shape, kin):
                for constraint in shape.topology_spread:
                    if constraint.when_unsatisfiable == "DoNotSchedule":
                        yield from _spread(residents, fields, alike, constraint)


def _alike(residents: Residents, shape: PodShape, kin: int) -> Iterable[_Alike]:
    chunks: dict[int, list[Resident]] = {}
    for resident in residents.of_kin(kin):
        if resident.tenant.chunk:
            chunks.setdefault(resident.shape, []).append(resident)
    groups: dict[frozenset[_Way], list[Resident]] = {}
    for members in chunks.values():
        ways = frozenset(
            (member.tenant.waits, member.tenant.keeps_minimum, residents.sites[member.site].planned)
            for member in members
        )
        groups.setdefault(ways, []).extend(members)
    for ways, members in groups.items():
        yield _Alike(shape, members, all(waits and not planned for waits, _, planned in ways))


class _Field:
    """The sites that a constraint looks at: whether each is one of them, by number. coming: NodeClaims on their way that it may
    come to look at; likes: those of them that it does look at with these labels."""

    def __init__(
        self, sites: Sequence[Site], has: Sequence[bool], coming: Sequence[int], likes: Callable[[Site], bool]
    ) -> None:
        self._sites = sites
        self.has = has
        self._coming = coming
        self._likes = likes
        self._possible: dict[str, frozenset[str]] = {}

    def possible(self, key: str, domains: Sequence[str | None]) -> frozenset[str]:
        """All domains that there are, those included that an open label may come to be, and those that NodeClaims on their way
        may come to be in, if the constraint looks at them there."""
        if key not in self._possible:
            found: set[str] = set()
            for number, site in enumerate(self._sites):
                if self.has[number]:
                    domain = domains[number]
                    options = site.options.get(key, frozenset()) if domain == OPEN else (domain,)
                    found.update(option or "" for option in options)
            for number in self._coming:
                site = self._sites[number]
                for option in site.possible(key) if domains[number] == OPEN else ():
                    if option not in found and self._likes(replace(site, labels={**site.labels, key: option})):
                        found.add(option)
            self._possible[key] = frozenset(found)
        return self._possible[key]


class _Fields:
    """What is looked at depends on little of a constraint, so that most share one field."""

    def __init__(self, sites: Sequence[Site]) -> None:
        self._sites = sites
        self._known: dict[tuple[object, ...], _Field] = {}

    def of(self, residents: Residents, alike: _Alike, constraint: TopologySpread, keys: frozenset[str]) -> _Field:
        shape = alike.shape
        placed = constraint.node_affinity_policy == "Honor"
        tolerant = constraint.node_taints_policy == "Honor"
        key = (
            *(alike.waiting, keys),
            (shape.node_selector, shape.required_node_terms) if placed else None,
            shape.tolerations if tolerant else None,
        )
        if key not in self._known:
            domains = [residents.domains(name) for name in sorted(keys)]
            has = [
                not (alike.waiting and site.planned)
                and all(of_key[number] is not None for of_key in domains)
                and (not placed or accepts(site, shape))
                and (not tolerant or not untolerated(site.taints, shape))
                for number, site in enumerate(self._sites)
            ]
            coming = [
                number
                for number, site in enumerate(self._sites)
                if not site.exists and not site.planned and not (tolerant and untolerated(site.taints, shape))
            ]
            self._known[key] = _Field(self._sites, has, coming, lambda site: not placed or may_accept(site, shape))
        return self._known[key]


def _spread(residents: Residents, fields: _Fields, alike: _Alike, constraint: TopologySpread) -> Iterable[str]:
    shape = alike.shape
    keys = frozenset(item.topology_key for item in shape.topology_spread if item.when_unsatisfiable == "DoNotSchedule")
    field = fields.of(residents, alike, constraint, keys)
    counted = _counted(residents, field, shape, constraint)
    domains = residents.domains(constraint.topology_key)
    bare = sorted({residents.sites[chunk.site].name for chunk in alike.chunks if domains[chunk.site] is None})
    if bare:
        yield f"spread over {constraint.topology_key}: {', '.join(bare)} is without that label"
    if any(_undecided(residents, resident.site, key, constraint) for resident in counted for key in sorted(keys)):
        yield f"spread over {constraint.topology_key}: a node that counts is not decided"
    elif _too_skewed(residents, field, alike, constraint, counted):
        yield f"spread over {constraint.topology_key} exceeds maxSkew {constraint.max_skew}"


def _undecided(residents: Residents, site: int, key: str, constraint: TopologySpread) -> bool:
    """In which domain a node is that counts; of the labels of other constraints all that matters is that it has them."""
    if residents.domains(key)[site] != OPEN:
        return False
    options = residents.sites[site].options.get(key, frozenset())
    return key == constraint.topology_key or not options or None in options


def _counted(residents: Residents, field: _Field, shape: PodShape, constraint: TopologySpread) -> list[Resident]:
    """Who counts under a constraint, of those on sites that it looks at."""
    if constraint.selector is None:
        return []
    selector = with_keys(constraint.selector, shape, constraint.match_label_keys, Operator.IN)
    return [
        resident
        for folk, namespace in residents.matched(selector)
        if namespace == shape.namespace
        for resident in residents.of_folk(folk)
        if field.has[resident.site]
    ]


def _too_skewed(
    residents: Residents, field: _Field, alike: _Alike, constraint: TopologySpread, counted: Sequence[Resident]
) -> bool:
    """Pods that no node is made for are bound before any other chunk comes. Chunks that count but are under no such rule are bound when it suits: where they raise the emptiest domain before the
    others, elsewhere after them. So a domain is too full only if it is without them."""
    domains = residents.domains(constraint.topology_key)
    there = [chunk for chunk in alike.chunks if field.has[chunk.site]]
    minimum_only = any(chunk.tenant.keeps_minimum for chunk in there)
    totals: dict[str, int] = {}
    free: dict[str, int] = {}
    for resident in counted:
        tenant, domain = resident.tenant, domains[resident.site] or ""
        if tenant.leaving or (minimum_only and not tenant.chunk):
            continue
        if alike.waiting and tenant.chunk and not tenant.waits:
            continue
        totals[domain] = totals.get(domain, 0) + tenant.count
        if tenant.chunk and constraint not in tenant.shape.topology_spread:
            free[domain] = free.get(domain, 0) + tenant.count
    possible = field.possible(constraint.topology_key, domains)
    none_empty = len(totals) == len(possible) >= (constraint.min_domains or 1)
    least = min(totals.values(), default=0) if none_empty else 0
    used = {domains[chunk.site] or "" for chunk in there}
    return any(totals.get(domain, 0) - free.get(domain, 0) - least > constraint.max_skew for domain in used)

"""Checks spread and inter-pod (anti-)affinity of a placement over all sites at once. Used by checker; independent of topology."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from reconciler.model.nodes import HOSTNAME_LABEL
from reconciler.model.pods import PodAffinityTerm, PodShape, TopologySpread
from reconciler.model.quantity import Resources
from reconciler.model.requirements import LabelSelector, Operator, Requirement
from reconciler.placement.checked_sites import OPEN, Site, Tenant, accepts, label_of, may_accept, untolerated

Namespaces = Mapping[str, Mapping[str, str]]


def topology_violations(sites: Sequence[Site], namespaces: Namespaces) -> Iterable[str]:
    for alike in _alike(sites):
        for constraint in alike.shape.topology_spread:
            if constraint.when_unsatisfiable == "DoNotSchedule":
                yield from _spread(sites, alike, constraint)
    for shape in {tenant.shape for site in sites for tenant in site.tenants if tenant.chunk}:
        if shape.pod_affinity:
            yield from _together(sites, shape, namespaces)
    for site in sites:
        for tenant in site.tenants:
            for term in tenant.shape.pod_anti_affinity:
                yield from _apart(sites, site, tenant, term, namespaces)


@dataclass(frozen=True, slots=True)
class _Alike:
    """Shapes under spread constraints that differ in requests only, and are placed as pending pods, as KeepMinimum chunks and
    on planned nodes or not in the same way: what holds for one of them holds for all. identities: of all objects that are one of
    them, since to compare shapes takes long."""

    shape: PodShape
    identities: frozenset[int]

    def has(self, tenant: Tenant) -> bool:
        return tenant.chunk and id(tenant.shape) in self.identities


def _alike(sites: Sequence[Site]) -> list[_Alike]:
    placed: dict[PodShape, tuple[set[int], set[tuple[bool, bool, bool]]]] = {}
    for site in sites:
        for tenant in site.tenants:
            if tenant.chunk and tenant.shape.topology_spread:
                identities, ways = placed.setdefault(tenant.shape, (set(), set()))
                identities.add(id(tenant.shape))
                ways.add((tenant.pending, tenant.keeps_minimum, site.planned))
    groups: dict[tuple[PodShape, frozenset[tuple[bool, bool, bool]]], set[int]] = {}
    for shape, (identities, ways) in placed.items():
        groups.setdefault((replace(shape, requests=Resources()), frozenset(ways)), set()).update(identities)
    return [_Alike(shape, frozenset(identities)) for (shape, _), identities in groups.items()]


def _domain(site: Site, key: str) -> str | None:
    return site.name if key == HOSTNAME_LABEL else label_of(site, key)


def _with_keys(selector: LabelSelector, shape: PodShape, keys: Iterable[str], operator: Operator) -> LabelSelector:
    labels = dict(shape.labels)
    extra = tuple(Requirement(key, operator, (labels[key],)) for key in keys if key in labels)
    return LabelSelector(selector.match_labels, (*selector.expressions, *extra))


def _selected(term: PodAffinityTerm, owner: PodShape, other: PodShape, namespaces: Namespaces) -> bool:
    if term.selector is None:
        return False
    selector = _with_keys(term.selector, owner, term.match_label_keys, Operator.IN)
    selector = _with_keys(selector, owner, term.mismatch_label_keys, Operator.NOT_IN)
    if not selector.matches(dict(other.labels)):
        return False
    if term.namespace_selector is None:
        return other.namespace in (term.namespaces or (owner.namespace,))
    chosen = term.namespace_selector == LabelSelector() or term.namespace_selector.matches(
        namespaces.get(other.namespace, {})
    )
    return chosen or other.namespace in term.namespaces


def _apart(
    sites: Sequence[Site], site: Site, owner: Tenant, term: PodAffinityTerm, namespaces: Namespaces
) -> Iterable[str]:
    domain = _domain(site, term.topology_key)
    if domain is None:
        return
    for other_site in sites:
        other_domain = _domain(other_site, term.topology_key)
        unsure = OPEN in {domain, other_domain} and other_domain is not None
        if other_domain != domain and not unsure:
            continue
        for other in other_site.tenants:
            alone = other is owner and owner.count == 1
            if alone or not (other.chunk or owner.chunk) or not _meet(owner, other):
                continue
            if _selected(term, owner.shape, other.shape, namespaces):
                yield f"{site.name}: anti-affinity by {term.topology_key} is broken with {other_site.name}"


def _meet(one: Tenant, other: Tenant) -> bool:
    """KeepMinimum chunks may be the very pods that run, so that the two do not keep each other off."""
    return not ((one.keeps_minimum and not other.chunk) or (other.keeps_minimum and not one.chunk))


def _together(sites: Sequence[Site], shape: PodShape, namespaces: Namespaces) -> Iterable[str]:
    known: dict[tuple[str, tuple[tuple[str, str], ...]], bool] = {}

    def matches(other: PodShape) -> bool:
        key = (other.namespace, other.labels)
        if key not in known:
            known[key] = all(_selected(term, shape, other, namespaces) for term in shape.pod_affinity)
        return known[key]

    for term in shape.pod_affinity:
        used, supported, anywhere = set(), set(), False
        for site in sites:
            domain = _domain(site, term.topology_key)
            for tenant in site.tenants:
                if tenant.chunk and tenant.shape == shape:
                    used.add(domain)
                elif matches(tenant.shape) and not tenant.leaving:
                    # Chunks that need no company may come after those that started a domain of their own.
                    anywhere = anywhere or not tenant.chunk
                    supported.add(domain)
        lonely = used - (supported - {None, OPEN})
        allowed = 1 if matches(shape) and not anywhere else 0
        if len(lonely) > allowed or lonely & {None, OPEN}:
            yield f"affinity by {term.topology_key} has no company in {sorted(map(str, lonely))}"


def _spread(sites: Sequence[Site], alike: _Alike, constraint: TopologySpread) -> Iterable[str]:
    shape = alike.shape
    keys = {item.topology_key for item in shape.topology_spread if item.when_unsatisfiable == "DoNotSchedule"}
    hosts = [site for site in sites if any(alike.has(tenant) for tenant in site.tenants)]
    waiting = all(tenant.pending for site in hosts for tenant in site.tenants if alike.has(tenant))
    if waiting and not any(site.planned for site in hosts):
        sites = [site for site in sites if not site.planned]  # they are bound before any planned node comes
    counted = _Counted(shape, constraint)
    looked_at = [site for site in sites if _is_looked_at(site, shape, constraint, keys)]
    if any(_domain(site, key) == OPEN for site in looked_at for key in keys if counted.is_on(site)):
        yield f"spread over {constraint.topology_key}: a node that counts is not decided"
        return
    if _too_skewed(looked_at, alike, constraint, counted, _domains_to_come(sites, shape, constraint)):
        yield f"spread over {constraint.topology_key} exceeds maxSkew {constraint.max_skew}"


def _is_looked_at(site: Site, shape: PodShape, constraint: TopologySpread, keys: Iterable[str]) -> bool:
    if any(_domain(site, key) is None for key in keys):
        return False
    if constraint.node_affinity_policy == "Honor" and not accepts(site, shape):
        return False
    return constraint.node_taints_policy != "Honor" or not untolerated(site.taints, shape)


def _domains_to_come(sites: Sequence[Site], shape: PodShape, constraint: TopologySpread) -> set[str]:
    """Domains that NodeClaims on their way may come to be in, if the constraint looks at them there."""
    key = constraint.topology_key
    found = set()
    for site in sites:
        coming = not site.exists and not site.planned and _domain(site, key) == OPEN
        if not coming or (constraint.node_taints_policy == "Honor" and untolerated(site.taints, shape)):
            continue
        for value in site.options.get(key, frozenset()) - {None}:
            there = replace(site, labels={**site.labels, key: value or ""})
            if constraint.node_affinity_policy != "Honor" or may_accept(there, shape):
                found.add(value or "")
    return found


class _Counted:
    """Which pods count under a constraint of a shape; pods of the same labels are looked at once."""

    def __init__(self, shape: PodShape, constraint: TopologySpread) -> None:
        self._namespace = shape.namespace
        self._selector = constraint.selector and _with_keys(
            constraint.selector, shape, constraint.match_label_keys, Operator.IN
        )
        self._known: dict[tuple[tuple[str, str], ...], bool] = {}

    def has(self, other: PodShape) -> bool:
        if self._selector is None or other.namespace != self._namespace:
            return False
        known = self._known.get(other.labels)
        if known is None:
            known = self._known[other.labels] = self._selector.matches(dict(other.labels))
        return known

    def is_on(self, site: Site) -> bool:
        return any(self.has(tenant.shape) for tenant in site.tenants)


def _too_skewed(
    sites: Sequence[Site], alike: _Alike, constraint: TopologySpread, counted: _Counted, more: Iterable[str]
) -> bool:
    """Chunks that count but are under no such rule are bound when it suits: where they raise the emptiest domain before the
    others, elsewhere after them. So a domain is too full only if it is without them."""
    totals = dict.fromkeys(more, 0)
    free: dict[str, int] = {}
    used: set[str] = set()
    minimum_only = any(tenant.keeps_minimum and alike.has(tenant) for site in sites for tenant in site.tenants)
    for site in sites:
        domain = _domain(site, constraint.topology_key) or ""
        for possible in site.options.get(constraint.topology_key, ()) if domain == OPEN else (domain,):
            totals.setdefault(possible or "", 0)
        for tenant in site.tenants:
            if alike.has(tenant):
                used.add(domain)
            if tenant.leaving or domain == OPEN or (minimum_only and not tenant.chunk):
                continue
            if counted.has(tenant.shape):
                totals[domain] += tenant.count
                if tenant.chunk and constraint not in tenant.shape.topology_spread:
                    free[domain] = free.get(domain, 0) + tenant.count
    least = min(totals.values(), default=0) if len(totals) >= (constraint.min_domains or 1) else 0
    return any(totals.get(domain, 0) - free.get(domain, 0) - least > constraint.max_skew for domain in used)

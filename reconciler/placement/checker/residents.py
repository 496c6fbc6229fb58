"""Who is on which site, looked up by what rules ask for: the same rules, the same labels, a topology domain. Used by
topology and spread.

Everything is walked once. Shapes that differ in requests only are kin: no topology rule tells them apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from reconciler.model.nodes import HOSTNAME_LABEL
from reconciler.model.pods import PodAffinityTerm, PodShape
from reconciler.model.quantity import Resources
from reconciler.model.requirements import LabelSelector, Operator, Requirement
from reconciler.placement.checker.sites import Site, Tenant, label_of

Namespaces = Mapping[str, Mapping[str, str]]
Labels = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Resident:
    """site: its number; shape, kin, folk: numbers of the shape, of the shape whatever it requests, and of namespace and labels."""

    site: int
    tenant: Tenant
    shape: int
    kin: int
    folk: int


class Residents:
    """shapes, kin, folk: by number, each one once; all: everybody, site by site."""

    def __init__(self, sites: Sequence[Site]) -> None:
        self.sites = sites
        self.all: list[Resident] = []
        self.kin: dict[PodShape, int] = {}
        self.folk: dict[tuple[str, Labels], int] = {}
        self._shapes: dict[PodShape, int] = {}
        self._of_class: dict[int, list[Resident]] = {}
        self._of_folk: dict[int, list[Resident]] = {}
        self._domains: dict[str, list[str | None]] = {}
        known: dict[int, tuple[int, int, int]] = {}  # by identity: to compare shapes takes long
        for number, site in enumerate(sites):
            for tenant in site.tenants:
                numbers = known.get(id(tenant.shape))
                if numbers is None:
                    numbers = known[id(tenant.shape)] = self._numbers(tenant.shape)
                resident = Resident(number, tenant, *numbers)
                self.all.append(resident)
                self._of_class.setdefault(resident.kin, []).append(resident)
                self._of_folk.setdefault(resident.folk, []).append(resident)
        self._with_label: dict[tuple[str, str], list[int]] = {}
        for (_, labels), folk in self.folk.items():
            for label in labels:
                self._with_label.setdefault(label, []).append(folk)
        self._folk = list(self.folk)

    def _numbers(self, shape: PodShape) -> tuple[int, int, int]:
        kin = replace(shape, requests=Resources())
        return (
            self._shapes.setdefault(shape, len(self._shapes)),
            self.kin.setdefault(kin, len(self.kin)),
            self.folk.setdefault((shape.namespace, shape.labels), len(self.folk)),
        )

    def of_kin(self, kin: int) -> Sequence[Resident]:
        return self._of_class[kin]

    def of_folk(self, folk: int) -> Sequence[Resident]:
        return self._of_folk[folk]

    def domains(self, key: str) -> Sequence[str | None]:
        """Of each site, by number."""
        if key not in self._domains:
            self._domains[key] = [_domain(site, key) for site in self.sites]
        return self._domains[key]

    def matched(self, selector: LabelSelector) -> list[tuple[int, str]]:
        """Numbers of folk with such labels, in whatever namespace, and that namespace."""
        first = min(
            (self._with_label.get(label, []) for label in selector.match_labels),
            key=len,
            default=range(len(self._folk)),
        )
        return [
            (folk, namespace)
            for folk, (namespace, labels) in ((folk, self._folk[folk]) for folk in first)
            if selector.matches(dict(labels))
        ]

    def selected(self, term: PodAffinityTerm, owner: PodShape, namespaces: Namespaces) -> frozenset[int]:
        """Numbers of folk that an affinity term of this owner means."""
        if term.selector is None:
            return frozenset()
        selector = with_keys(term.selector, owner, term.match_label_keys, Operator.IN)
        selector = with_keys(selector, owner, term.mismatch_label_keys, Operator.NOT_IN)
        return frozenset(
            folk
            for folk, namespace in self.matched(selector)
            if _is_meant(term, owner.namespace, namespace, namespaces)
        )


def _domain(site: Site, key: str) -> str | None:
    """A node that is still to come will have a hostname that no other has."""
    if key == HOSTNAME_LABEL and not site.exists:
        return f"\0{site.name}"
    return label_of(site, key)


def _is_meant(term: PodAffinityTerm, own: str, other: str, namespaces: Namespaces) -> bool:
    if term.namespace_selector is None:
        return other in (term.namespaces or (own,))
    chosen = term.namespace_selector == LabelSelector() or term.namespace_selector.matches(namespaces.get(other, {}))
    return chosen or other in term.namespaces


def with_keys(selector: LabelSelector, shape: PodShape, keys: Iterable[str], operator: Operator) -> LabelSelector:
    """The selector with matchLabelKeys or mismatchLabelKeys: the owner's own values of these labels are asked for too, or ruled
    out."""
    labels = dict(shape.labels)
    extra = tuple(Requirement(key, operator, (labels[key],)) for key in keys if key in labels)
    return LabelSelector(selector.match_labels, (*selector.expressions, *extra))

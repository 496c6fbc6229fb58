"""Checks that pods are where their volumes can be. Used by violations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from reconciler.model.nodes import NODEPOOL_LABEL, REGION_LABEL, ZONE_LABEL
from reconciler.model.pods import Pod, PodShape
from reconciler.model.requirements import Operator, Requirement
from reconciler.model.storage import (
    NO_PROVISIONER,
    PersistentVolume,
    Storage,
    StorageClass,
    VolumeClaim,
)
from reconciler.placement.checker.examples import Examples, possible_types
from reconciler.placement.checker.sites import OPEN, Site, label_of, stable_label, surely_holds, term_holds


@dataclass(frozen=True, slots=True)
class Shelves:
    """What is stored and how, by what it is asked for: claims by namespace and name, volumes also by their class."""

    claims: Mapping[tuple[str, str], VolumeClaim] = field(default_factory=dict)
    volumes: Mapping[str, PersistentVolume] = field(default_factory=dict)
    volumes_of: Mapping[str, Sequence[PersistentVolume]] = field(default_factory=dict)
    classes: Mapping[str, StorageClass] = field(default_factory=dict)
    default: StorageClass | None = None
    limits: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """By node and driver."""
    topology: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """By driver, the labels that its nodes are told apart by."""

    @classmethod
    def of(cls, storage: Storage) -> Shelves:
        """Of several with one name the first counts, and of default classes and of limits the last."""
        volumes_of: dict[str, list[PersistentVolume]] = {}
        for volume in storage.volumes:
            volumes_of.setdefault(volume.storage_class, []).append(volume)
        return cls(
            {(item.namespace, item.name): item for item in reversed(storage.claims)},
            {item.name: item for item in reversed(storage.volumes)},
            volumes_of,
            {item.name: item for item in reversed(storage.classes)},
            next((item for item in reversed(storage.classes) if item.default), None),
            {item.node: dict(item.limits) for item in storage.limits},
            {
                driver: frozenset(key for item in storage.limits for key in dict(item.topology).get(driver, ()))
                for driver in {name for item in storage.limits for name, _ in item.topology}
            },
        )

    def class_of(self, claim: VolumeClaim) -> StorageClass | None:
        return self.default if claim.storage_class is None else self.classes.get(claim.storage_class)


def misplaced_volumes(shelves: Shelves, site: Site, shape: PodShape) -> Iterable[str]:
    """What is wrong with a pod of this shape on a site whose labels are all decided."""
    made_for = dict(shape.ephemeral_claims)
    for name in shape.volume_claims:
        claim = shelves.claims.get((shape.namespace, name))
        if claim is None or claim.deleting or claim.lost or made_for.get(name, claim.controller) != claim.controller:
            yield f"claim {shape.namespace}/{name} cannot be used"
        elif claim.volume:
            volume = shelves.volumes.get(claim.volume)
            if volume is None or not claim.bound or not _reaches(site, volume):
                yield f"the volume of claim {shape.namespace}/{name} cannot be had there"
        elif not _can_be_made(shelves, site, claim):
            yield f"no volume for claim {shape.namespace}/{name} can be had there"


def _reaches(site: Site, volume: PersistentVolume) -> bool:
    if volume.terms and not any(term_holds(site, term) for term in volume.terms):
        return False
    if all(label_of(site, key) is None for key, _ in volume.labels):
        return True
    asked = [Requirement(key, Operator.IN, tuple(value.split("__"))) for key, value in volume.labels]
    return all(surely_holds(site, item) for item in asked)


def _can_be_made(shelves: Shelves, site: Site, claim: VolumeClaim) -> bool:
    found = shelves.class_of(claim)
    if found is None or not found.waits:
        return False
    if claim.selected_node:
        there = site.exists and site.name == claim.selected_node
        return there and found.provisioner != NO_PROVISIONER and _is_allowed(found, site)
    if any(_reaches(site, volume) for volume in _candidates(shelves, claim, found)):
        return True
    return found.provisioner != NO_PROVISIONER and _is_allowed(found, site)


def _candidates(shelves: Shelves, claim: VolumeClaim, found: StorageClass) -> Iterable[PersistentVolume]:
    for volume in shelves.volumes_of.get(found.name, ()):
        ours = volume.claim in {None, (claim.namespace, claim.name)}
        enough = volume.capacity >= claim.requested and set(claim.access_modes) <= set(volume.access_modes)
        if ours and enough:
            yield volume


def _is_allowed(found: StorageClass, site: Site) -> bool:
    return not found.topologies or any(term_holds(site, term) for term in found.topologies)


def volume_violations(
    pods: Iterable[Pod], shelves: Shelves, examples: Examples, sites: Sequence[Site]
) -> Iterable[str]:
    """Claims for one pod that several have, and nodes with more volumes than their drivers attach."""
    users: dict[tuple[str, str], int] = {}
    for pod in pods:
        for name in pod.shape.volume_claims if pod.node_name is not None else ():
            users[pod.namespace, name] = users.get((pod.namespace, name), 0) + 1
    chunks = [tenant for site in sites for tenant in site.tenants if tenant.chunk]
    wanted = {(tenant.shape.namespace, name) for tenant in chunks for name in tenant.shape.volume_claims}
    for tenant in chunks:
        for name in tenant.shape.volume_claims:
            key = (tenant.shape.namespace, name)
            users[key] = users.get(key, 0) + tenant.count
    for namespace, name in sorted(wanted):
        claim = shelves.claims.get((namespace, name))
        if claim is not None and "ReadWriteOncePod" in claim.access_modes and users[namespace, name] > 1:
            yield f"claim {namespace}/{name} is for one pod and has {users[namespace, name]}"
    yield from _apart(shelves, sites)
    expected = _Expected(shelves, examples)
    for site in sites:
        if any(tenant.chunk and tenant.shape.volume_claims for tenant in site.tenants):
            yield from _overattached(shelves, expected, site)


def _apart(shelves: Shelves, sites: Sequence[Site]) -> Iterable[str]:
    """Claims that wait for a volume which no one place could give to all of their pods."""
    users: dict[tuple[str, str], list[Site]] = {}
    for site in sites:
        chunks = [tenant.shape for tenant in site.tenants if tenant.chunk]
        for key in {(shape.namespace, name) for shape in chunks for name in shape.volume_claims}:
            users.setdefault(key, []).append(site)
    for (namespace, name), there in sorted(users.items()):
        claim = shelves.claims.get((namespace, name))
        found = shelves.class_of(claim) if claim is not None and not claim.volume else None
        if claim is None or found is None or len(there) == 1:
            continue
        ready = any(all(_reaches(site, volume) for site in there) for volume in _candidates(shelves, claim, found))
        if not ready and not _is_made_for_all(shelves, found, there):
            names = ", ".join(site.name for site in there)
            yield f"claim {namespace}/{name} has no volume yet, and none would be reached from all of {names}"


def _is_made_for_all(shelves: Shelves, found: StorageClass, sites: Sequence[Site]) -> bool:
    """A volume that is made for one of the sites is reached from those that are like it in what its driver tells nodes apart by."""
    if found.provisioner == NO_PROVISIONER or not any(_is_allowed(found, site) for site in sites):
        return False
    named = frozenset(item.key for term in found.topologies for item in term.expressions)
    keys = {stable_label(key): key for key in shelves.topology.get(found.provisioner, named or frozenset({ZONE_LABEL}))}
    if ZONE_LABEL in keys:
        keys.pop(REGION_LABEL, None)
    for stable, key in keys.items():
        values = {label_of(site, key) or label_of(site, stable) for site in sites}
        if len(values) > 1 or values & {None, OPEN}:
            return False
    return True


def _overattached(shelves: Shelves, expected: _Expected, site: Site) -> Iterable[str]:
    limits = shelves.limits.get(site.name, {}) if site.exists else expected.limits(site)
    before, after = set(), set()
    for tenant in site.tenants:
        for name in tenant.shape.volume_claims:
            volume = _volume(shelves, (tenant.shape.namespace, name))
            after.add(volume)
            if not tenant.chunk:
                before.add(volume)
    attached = Counter(driver for driver, _ in after)
    more = {driver for driver, _ in after - before}
    for driver, limit in limits.items():
        if attached[driver] > limit and driver in more:
            yield f"{site.name}: {attached[driver]} volumes of {driver} are attached, {limit} can be"


class _Expected:
    """How many volumes nodes to come will attach: as many as nodes like them say."""

    def __init__(self, shelves: Shelves, examples: Examples) -> None:
        self._said = shelves.limits
        self._examples = examples
        self._least: dict[tuple[str | None, str | None], dict[str, int]] = {}

    def limits(self, site: Site) -> dict[str, int]:
        """By driver: of nodes of its NodePool and type, else of its type, else of its NodePool; the least that it may be."""
        pool = site.labels.get(NODEPOOL_LABEL, "")
        least: dict[str, int] = {}
        for kind in possible_types(site):
            said = self._least_of(pool, None) | self._least_of(None, kind) | self._least_of(pool, kind)
            for driver, limit in said.items():
                least[driver] = min(least.get(driver, limit), limit)
        return least

    def _least_of(self, pool: str | None, kind: str | None) -> dict[str, int]:
        if (pool, kind) not in self._least:
            least: dict[str, int] = {}
            for name in self._examples.names(pool=pool, instance_type=kind):
                for driver, limit in self._said.get(name, {}).items():
                    least[driver] = min(least.get(driver, limit), limit)
            self._least[pool, kind] = least
        return self._least[pool, kind]


def _volume(shelves: Shelves, key: tuple[str, str]) -> tuple[str, tuple[str, ...]]:
    """Driver and identity: claims may come to volumes that are one and the same to their driver."""
    claim = shelves.claims.get(key)
    volume = shelves.volumes.get(claim.volume) if claim is not None else None
    own = key if volume is None else (volume.handle,) if volume.handle else (volume.name, "")
    return _driver(shelves, claim), own


def _driver(shelves: Shelves, claim: VolumeClaim | None) -> str:
    if claim is None:
        return ""
    volume = shelves.volumes.get(claim.volume)
    if volume is not None:
        return volume.driver
    found = shelves.class_of(claim)
    return "" if found is None or found.provisioner == NO_PROVISIONER else found.provisioner

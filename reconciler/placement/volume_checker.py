"""Checks that pods are where their volumes can be. Used by checker; shares nothing with the engine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from reconciler.model.nodes import NODEPOOL_LABEL
from reconciler.model.pods import PodShape
from reconciler.model.requirements import Operator, Requirement
from reconciler.model.storage import NO_PROVISIONER, PersistentVolume, StorageClass, VolumeClaim
from reconciler.model.view import ClusterView
from reconciler.placement.checked_examples import names_up, possible_types
from reconciler.placement.checked_sites import Site, label_of, surely_holds, term_holds


def misplaced_volumes(view: ClusterView, site: Site, shape: PodShape) -> Iterable[str]:
    """What is wrong with a pod of this shape on a site whose labels are all decided."""
    for name in shape.volume_claims:
        claim = _claim(view, shape.namespace, name)
        if claim is None or claim.deleting or claim.lost:
            yield f"{site.name}: claim {shape.namespace}/{name} cannot be used"
        elif claim.volume:
            volume = next((item for item in view.storage.volumes if item.name == claim.volume), None)
            if volume is None or not claim.bound or not _reaches(site, volume):
                yield f"{site.name}: the volume of claim {shape.namespace}/{name} cannot be had there"
        elif not _can_be_made(view, site, claim):
            yield f"{site.name}: no volume for claim {shape.namespace}/{name} can be had there"


def _claim(view: ClusterView, namespace: str, name: str) -> VolumeClaim | None:
    return next((item for item in view.storage.claims if (item.namespace, item.name) == (namespace, name)), None)


def _reaches(site: Site, volume: PersistentVolume) -> bool:
    if volume.terms and not any(term_holds(site, term) for term in volume.terms):
        return False
    if all(label_of(site, key) is None for key, _ in volume.labels):
        return True
    asked = [Requirement(key, Operator.IN, tuple(value.split("__"))) for key, value in volume.labels]
    return all(surely_holds(site, item) for item in asked)


def _class_of(view: ClusterView, claim: VolumeClaim) -> StorageClass | None:
    if claim.storage_class is not None:
        return next((item for item in view.storage.classes if item.name == claim.storage_class), None)
    return next((item for item in reversed(view.storage.classes) if item.default), None)


def _can_be_made(view: ClusterView, site: Site, claim: VolumeClaim) -> bool:
    found = _class_of(view, claim)
    if found is None or not found.waits:
        return False
    for volume in view.storage.volumes:
        ours = volume.claim in {None, (claim.namespace, claim.name)} and volume.storage_class == found.name
        enough = volume.capacity >= claim.requested and set(claim.access_modes) <= set(volume.access_modes)
        if ours and enough and _reaches(site, volume):
            return True
    made = found.provisioner != NO_PROVISIONER
    return made and (not found.topologies or any(term_holds(site, term) for term in found.topologies))


def volume_violations(view: ClusterView, sites: Sequence[Site]) -> Iterable[str]:
    """Claims for one pod that several have, and nodes with more volumes than their drivers attach."""
    users: dict[tuple[str, str], int] = {}
    for pod in view.pods:
        for name in pod.shape.volume_claims if pod.node_name is not None else ():
            users[pod.namespace, name] = users.get((pod.namespace, name), 0) + 1
    chunks = [tenant for site in sites for tenant in site.tenants if tenant.chunk]
    wanted = {(tenant.shape.namespace, name) for tenant in chunks for name in tenant.shape.volume_claims}
    for tenant in chunks:
        for name in tenant.shape.volume_claims:
            key = (tenant.shape.namespace, name)
            users[key] = users.get(key, 0) + tenant.count
    for namespace, name in sorted(wanted):
        claim = _claim(view, namespace, name)
        if claim is not None and "ReadWriteOncePod" in claim.access_modes and users[namespace, name] > 1:
            yield f"claim {namespace}/{name} is for one pod and has {users[namespace, name]}"
    for site in sites:
        if any(tenant.chunk and tenant.shape.volume_claims for tenant in site.tenants):
            yield from _overattached(view, site)


def _overattached(view: ClusterView, site: Site) -> Iterable[str]:
    said = {item.node: dict(item.limits) for item in view.storage.limits}
    limits = said.get(site.name, {}) if site.exists else _to_come(view, site, said)
    claims = {(tenant.shape.namespace, name) for tenant in site.tenants for name in tenant.shape.volume_claims}
    drivers = [_driver(view, _claim(view, *claim)) for claim in claims]
    before = {
        (tenant.shape.namespace, name)
        for tenant in site.tenants
        if not tenant.chunk
        for name in tenant.shape.volume_claims
    }
    more = {_driver(view, _claim(view, *claim)) for claim in claims - before}
    for driver, limit in limits.items():
        attached = drivers.count(driver)
        if attached > limit and driver in more:
            yield f"{site.name}: {attached} volumes of {driver} are attached, {limit} can be"


def _to_come(view: ClusterView, site: Site, said: Mapping[str, Mapping[str, int]]) -> dict[str, int]:
    """What nodes like it say: of its NodePool and type, else of its type, else of its NodePool; the least of each driver."""
    pool = site.labels.get(NODEPOOL_LABEL, "")
    least: dict[str, int] = {}
    for kind in possible_types(site):
        alike = (
            names_up(view, pool=pool, instance_type=kind),
            names_up(view, instance_type=kind),
            names_up(view, pool=pool),
        )
        for driver in {driver for limits in said.values() for driver in limits}:
            found = [[said[name][driver] for name in names if driver in said.get(name, {})] for names in alike]
            first = next((min(limits) for limits in found if limits), None)
            if first is not None:
                least[driver] = min(least.get(driver, first), first)
    return least


def _driver(view: ClusterView, claim: VolumeClaim | None) -> str:
    if claim is None:
        return ""
    volume = next((item for item in view.storage.volumes if item.name == claim.volume), None)
    if volume is not None:
        return volume.driver
    found = _class_of(view, claim)
    return "" if found is None or found.provisioner == NO_PROVISIONER else found.provisioner

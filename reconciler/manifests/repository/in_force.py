"""What is in force: the repository's documents, those that were good before, and the cluster's objects below them.

Partial NodePools are merged into the live ones, and every manifest is converted to a version that the cluster serves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from reconciler.manifests.capacity_buffer import PROPOSED_FIELDS, with_annotations
from reconciler.manifests.crds import DEFINED
from reconciler.manifests.documents.document import mapping_at
from reconciler.manifests.kinds import kind_of
from reconciler.manifests.node_pool import lay_over
from reconciler.manifests.repository.declared import files_with_errors
from reconciler.manifests.repository.validate import refused_of_live
from reconciler.model import codes
from reconciler.model.buffers import Buffer
from reconciler.model.declared import SLOTS, Declared, DeclaredManifest, in_order
from reconciler.model.errors import Invalid
from reconciler.model.findings import Finding
from reconciler.model.marks import MODE_ANNOTATION
from reconciler.model.nodes import NodePool
from reconciler.model.refs import ObjectRef
from reconciler.model.view import LiveObject, Manifest

Served = Mapping[tuple[str, str], tuple[str, ...]]
"""Versions by (group, kind), preferred first; empty where unknown, as with a snapshot."""


@dataclass(frozen=True, slots=True)
class InForce:
    """effective: the repository merged over the cluster. repository: the repository alone, with manifests as they are applied.

    findings: kinds that the cluster does not serve, and partial pools that cannot be merged.
    """

    effective: Declared
    repository: Declared
    findings: tuple[Finding, ...] = ()


def as_served(declared: Declared, verdicts: Mapping[ObjectRef, tuple[Finding, ...]]) -> Declared:
    """What is declared once a cluster has said which fields it knows.

    verdicts: by object, the fields that the cluster does not know; none of them for an object that it accepts. The shipped schema decides
    about objects without a verdict. Where nothing but fields that are only proposed is not known, annotations take their place.
    """
    if not verdicts:
        return declared
    proposed = {ref for ref, found in verdicts.items() if found and all(item.path in PROPOSED_FIELDS for item in found)}
    verdicts = {ref: () if ref in proposed else found for ref, found in verdicts.items()}
    doubtful = {item.ref: item for item in declared.doubtful if item.ref in verdicts}
    doubts = {doubt for item in doubtful.values() for doubt in item.doubts}
    refused = {ref for ref, findings in verdicts.items() if findings}
    accepted = {ref: item for ref, item in doubtful.items() if ref not in refused}
    findings = [finding for finding in declared.findings if finding not in doubts]
    findings += [finding for found in verdicts.values() for finding in found]
    left = declared.without(refused)
    slots: dict[str, list[Any]] = {slot: list(getattr(left, slot)) for slot in SLOTS}
    slots["manifests"] = [item for item in left.manifests if item.ref not in accepted]
    for item in accepted.values():
        slots[item.slot] += [item.typed] if item.is_broken and item.typed is not None else []
        slots["manifests"] += [item.manifest] if item.manifest is not None else []
    slots["manifests"] = [
        replace(item, manifest=with_annotations(item.manifest)) if item.ref in proposed else item
        for item in slots["manifests"]
    ]
    return replace(
        declared,
        **in_order(slots),
        findings=tuple(sorted(findings, key=lambda finding: finding.sort_key)),
        broken_files=files_with_errors(findings),
        broken=(declared.broken - accepted.keys()) | refused,
    )


def in_force(repository: Declared, live: Declared, objects: Mapping[ObjectRef, LiveObject], served: Served) -> InForce:
    """Merges the repository over the cluster. objects: the cluster's. live: the same, typed."""
    pools, findings = _laid_over(repository, objects)
    scaled = _scaled(repository, objects)
    manifests: list[DeclaredManifest] = []
    broken = set(repository.broken)
    for item in repository.manifests:
        versions = served.get((item.ref.group, item.ref.kind), ())
        form = None if served and not versions else served_form(item, versions)
        if form is None:
            findings.append(_not_served(item, versions))
            continue
        present = objects.get(item.ref)
        problems = () if present is None else refused_of_live(item, present, form)
        findings += problems
        if problems:
            broken.add(item.ref)
        elif item.ref in scaled:
            spec = {name: value for name, value in mapping_at(form, "spec").items() if name != "replicas"}
            manifests.append(replace(item, manifest={**form, "spec": spec}))
        else:
            manifests.append(replace(item, manifest=form))
    # With a cluster, a demand with an unresolved reference is not ready, and its own conditions say so.
    kept = tuple(finding for finding in repository.findings if finding.code != codes.NOT_IN_REPOSITORY.name)
    buffers = tuple(scaled.get(buffer.ref, buffer) for buffer in repository.buffers)
    declared = replace(repository, node_pools=pools, buffers=buffers, findings=kept)
    return InForce(
        declared.over(live), replace(declared, manifests=tuple(manifests), broken=frozenset(broken)), tuple(findings)
    )


def _scaled(repository: Declared, objects: Mapping[ObjectRef, LiveObject]) -> dict[ObjectRef, Buffer]:
    """Declared buffers that somebody has sized through the scale subresource, with that size. Their manifests take no part in it."""
    scaled = {}
    for buffer in repository.buffers:
        live = objects.get(buffer.ref)
        size = None if live is None or buffer.annotation(MODE_ANNOTATION) == "Override" else live.scaled_to
        if live is not None and size is not None:
            by = f"{live.scaled_by} through /scale"
            scaled[buffer.ref] = replace(buffer, replicas=size, sized_by=by, is_scaled=True)
    return scaled


def _laid_over(
    repository: Declared, objects: Mapping[ObjectRef, LiveObject]
) -> tuple[tuple[NodePool, ...], list[Finding]]:
    pools, findings = list(repository.node_pools), []
    for item in repository.manifests:
        live = objects.get(item.ref)
        if not item.partial or live is None:
            continue
        try:
            pools.append(lay_over(item, live))
        except Invalid as error:
            findings.append(codes.INVALID_VALUE.finding(error.message, item.position, item.ref, hint=error.hint))
    return tuple(sorted(pools, key=lambda pool: pool.name)), findings


def _not_served(item: DeclaredManifest, versions: tuple[str, ...]) -> Finding:
    kind = f"{item.ref.kind} of {item.ref.group or 'the core API'}"
    serves = f"serves {kind} only in {', '.join(versions)}" if versions else f"does not serve {kind}"
    printed = item.ref.kind in DEFINED
    source = "`headroom crd` prints it" if printed else "it comes with the autoscaler that the kind belongs to"
    return codes.NOT_SERVED.finding(
        f"the cluster {serves}, so it is not applied",
        item.position,
        item.ref,
        "apiVersion",
        f"install its CustomResourceDefinition: {source}",
    )


def served_form(manifest: DeclaredManifest, served_versions: Sequence[str]) -> Manifest | None:
    """The manifest in a version that the cluster serves; None if it cannot be converted to any.

    served_versions: without the group (`v1beta1`), the preferred first. Empty when offline, which keeps the version as written.
    Once old spellings are corrected, all versions of a kind have the same fields, so only `apiVersion` changes. NodePools are
    corrected to v1 and cannot be converted back.
    """
    ref = manifest.ref
    kind = kind_of(ref.group, ref.kind)
    if kind is None:
        return None
    written = str(manifest.manifest.get("apiVersion", "")).rpartition("/")[2]
    version: str | None = written
    if served_versions and written not in served_versions:
        convertible = kind.versions if ref.kind != "NodePool" else kind.versions[:1]
        version = next((served for served in served_versions if served in convertible), None)
    if version is None:
        return None
    metadata = dict(mapping_at(manifest.manifest, "metadata"))
    if kind.namespaced:
        metadata["namespace"] = ref.namespace
    return {**manifest.manifest, "apiVersion": kind.api_version(version), "metadata": metadata}

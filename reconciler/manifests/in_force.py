"""What a pass works with: the repository's documents merged over the cluster's objects, and the manifests to apply.

Partial NodePools are merged into the live ones, and every manifest is converted to a version that the cluster serves.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from reconciler.manifests import codes
from reconciler.manifests.changed_since import refused
from reconciler.manifests.crds import KINDS
from reconciler.manifests.node_pool import lay_over
from reconciler.manifests.served import served_form
from reconciler.model.declared import Declared, DeclaredManifest
from reconciler.model.errors import Invalid
from reconciler.model.findings import Finding
from reconciler.model.nodes import NodePool
from reconciler.model.refs import ObjectRef
from reconciler.model.view import LiveObject

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


def in_force(repository: Declared, live: Declared, objects: Mapping[ObjectRef, LiveObject], served: Served) -> InForce:
    """Merges the repository over the cluster. objects: the cluster's. live: the same, typed."""
    pools, findings = _laid_over(repository, objects)
    manifests: list[DeclaredManifest] = []
    broken = set(repository.broken)
    for item in repository.manifests:
        versions = served.get((item.ref.group, item.ref.kind), ())
        form = None if served and not versions else served_form(item, versions)
        if form is None:
            findings.append(_not_served(item, versions))
            continue
        present = objects.get(item.ref)
        problems = () if present is None else refused(item, present.body, form)
        findings += problems
        if problems:
            broken.add(item.ref)
        else:
            manifests.append(replace(item, manifest=form))
    # With a cluster, a demand with an unresolved reference is not ready, and its own conditions say so.
    kept = tuple(finding for finding in repository.findings if finding.code != codes.NOT_IN_REPOSITORY.name)
    declared = replace(repository, node_pools=pools, findings=kept)
    return InForce(
        declared.over(live), replace(declared, manifests=tuple(manifests), broken=frozenset(broken)), tuple(findings)
    )


def _laid_over(
    repository: Declared,
    objects: Mapping[ObjectRef, LiveObject],
) -> tuple[tuple[NodePool, ...], list[Finding]]:
    pools, findings = list(repository.node_pools), []
    for item in repository.manifests:
        live = objects.get(item.ref)
        if not item.partial or live is None:
            continue
        try:
            pools.append(lay_over(item, live))
        except Invalid as error:
            code = codes.INVALID_VALUE
            findings.append(Finding(code.name, code.severity, error.message, item.position, item.ref, hint=error.hint))
    return tuple(sorted(pools, key=lambda pool: pool.name)), findings


def _not_served(item: DeclaredManifest, versions: tuple[str, ...]) -> Finding:
    code = codes.NOT_SERVED
    kind = f"{item.ref.kind} of {item.ref.group or 'the core API'}"
    serves = f"serves {kind} only in {', '.join(versions)}" if versions else f"does not serve {kind}"
    printed = item.ref.kind in KINDS
    source = "`headroom crd` prints it" if printed else "it comes with the autoscaler that the kind belongs to"
    return Finding(
        code.name,
        code.severity,
        f"the cluster {serves}, so it is not applied",
        item.position,
        item.ref,
        "apiVersion",
        f"install its CustomResourceDefinition: {source}",
    )

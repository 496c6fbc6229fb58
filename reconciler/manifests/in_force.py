"""What a pass works with: the repository's documents over the cluster's, and what is to be applied. Called by cycle.

Partial node pools are laid over their live ones, and every manifest is put into a version that the cluster serves.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from reconciler.manifests import codes
from reconciler.manifests.node_pool import lay_over
from reconciler.manifests.served import served_form
from reconciler.manifests.transitions import refused_changes
from reconciler.model.declared import Declared, DeclaredManifest
from reconciler.model.errors import Invalid
from reconciler.model.findings import Finding
from reconciler.model.nodes import NodePool
from reconciler.model.refs import ObjectRef
from reconciler.model.view import LiveObject, Manifest

Served = Mapping[tuple[str, str], tuple[str, ...]]
"""(group, kind) → versions, preferred first; empty where unknown (a snapshot)."""


@dataclass(frozen=True, slots=True)
class InForce:
    """effective: the repository over the cluster, typed. repository: its own, with the manifests as they are to be applied.

    findings: what the cluster does not serve, and partial pools that cannot be laid over theirs.
    """

    effective: Declared
    repository: Declared
    findings: tuple[Finding, ...] = ()


def in_force(repository: Declared, live: Declared, objects: Mapping[ObjectRef, LiveObject], served: Served) -> InForce:
    """`live` is the typed reading of `objects`."""
    pools, findings = _laid_over(repository, objects)
    manifests: list[DeclaredManifest] = []
    broken = set(repository.broken)
    for item in repository.manifests:
        versions = served.get((item.ref.group, item.ref.kind), ())
        form = None if served and not versions else served_form(item, versions)
        if form is None:
            findings.append(_not_served(item, versions))
            continue
        refused = _refused(item, form, objects.get(item.ref))
        findings += refused
        if refused:
            broken.add(item.ref)
        else:
            manifests.append(replace(item, manifest=form))
    # The cluster is known here: a reference that leads nowhere makes its demand not ready, and that says so.
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


def _refused(item: DeclaredManifest, form: Manifest, live: LiveObject | None) -> list[Finding]:
    """What the API server would refuse for good. Whether a pool is static is the plan's to say."""
    if live is None:
        return []
    code = codes.IMMUTABLE_FIELD
    return [
        Finding(code.name, code.severity, change.message, item.position, item.ref, change.path, change.hint)
        for change in refused_changes(live.body, form)
        if change.path != "spec.replicas"
    ]


def _not_served(item: DeclaredManifest, versions: tuple[str, ...]) -> Finding:
    code = codes.NOT_SERVED
    served = f"only in {', '.join(versions)}" if versions else "not at all"
    return Finding(
        code.name,
        code.severity,
        f"the cluster serves {item.ref.kind} of {item.ref.group or 'the core API'} {served}, so that it is not applied",
        item.position,
        item.ref,
        "apiVersion",
        "install its CustomResourceDefinition: `headroom crd` prints headroom's own, Karpenter brings the others",
    )

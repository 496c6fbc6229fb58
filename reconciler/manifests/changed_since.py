"""Changes of the repository that the API server would refuse on objects already applied.

They are found before the change is merged, from the two versions of the documents alone.
"""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.manifests import codes
from reconciler.manifests.declared import read
from reconciler.manifests.transitions import refused_changes
from reconciler.manifests.validate import scope_of
from reconciler.model.declared import DeclaredManifest
from reconciler.model.findings import Finding
from reconciler.model.view import Manifest


def changed_since(
    base: Mapping[str, bytes], head: Mapping[str, bytes], *, one_cluster: bool = True
) -> tuple[Finding, ...]:
    """base, head: content by path. one_cluster: see `declared.read`. Only files that differ are read."""
    before = {path: content for path, content in base.items() if head.get(path) != content}
    after = {path: content for path, content in head.items() if base.get(path) != content}
    known = {
        (scope_of(item.position.file, one_cluster=one_cluster), item.ref): item.manifest
        for item in read(before, one_cluster=one_cluster).manifests
    }
    findings: list[Finding] = []
    for item in read(after, one_cluster=one_cluster).manifests:
        old = known.get((scope_of(item.position.file, one_cluster=one_cluster), item.ref))
        if old is not None:
            findings += refused(item, old, item.manifest)
    return tuple(findings)


def refused(item: DeclaredManifest, old: Manifest, new: Manifest) -> tuple[Finding, ...]:
    """A finding for each change that the API server would refuse. Whether a NodePool is static is reported by the plan."""
    code = codes.IMMUTABLE_FIELD
    return tuple(
        Finding(
            code.name, code.severity, change.message, item.position_of(change.path), item.ref, change.path, change.hint
        )
        for change in refused_changes(old, new)
        if change.path != "spec.replicas"
    )

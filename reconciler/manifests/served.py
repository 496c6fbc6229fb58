"""A declared manifest in the form in which a cluster takes it: a version that is served, its namespace written out. Used by cycle."""

from __future__ import annotations

from collections.abc import Sequence

from reconciler.manifests.inspection import mapping_at
from reconciler.manifests.kinds import kind_of
from reconciler.model.declared import DeclaredManifest
from reconciler.model.view import Manifest


def served_form(manifest: DeclaredManifest, served_versions: Sequence[str]) -> Manifest | None:
    """The manifest in a version that the cluster serves, or None when it serves none that the manifest can be put into.

    served_versions: without the group (`v1beta1`), preferred first; none known (offline) leaves the version as written.
    Within a kind every version that headroom reads has the same fields once old spellings are corrected, so that only
    `apiVersion` changes; NodePools are corrected to v1 and cannot go back.
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

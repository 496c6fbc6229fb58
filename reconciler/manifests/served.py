"""A declared manifest as a cluster accepts it: in a version that the cluster serves, with an explicit namespace."""

from __future__ import annotations

from collections.abc import Sequence

from reconciler.manifests.inspection import mapping_at
from reconciler.manifests.kinds import kind_of
from reconciler.model.declared import DeclaredManifest
from reconciler.model.view import Manifest


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

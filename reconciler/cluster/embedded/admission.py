"""What the embedded cluster's API refuses, and what it fills in.

The rules are those of the API server and of Karpenter's CustomResourceDefinitions, as far as headroom can break them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reconciler.cluster.resources import APPS, BY_KIND, KARPENTER, Resource, group_of
from reconciler.manifests.documents.schema import schema_of, validator_of, with_defaults
from reconciler.manifests.kinds import kind_of
from reconciler.manifests.repository.transitions import refused_changes
from reconciler.model.errors import Invalid
from reconciler.model.refs import ObjectRef, path_text
from reconciler.model.requirements import Operator

NODE_CLASS = Resource("karpenter.kwok.sh", "KWOKNodeClass", "kwoknodeclasses", ("v1alpha1",), namespaced=False)
SERVED = {**BY_KIND, NODE_CLASS.key: NODE_CLASS}
"""By (group, kind), what the embedded cluster serves."""
_IMMUTABLE_SPEC = {(KARPENTER, "NodeClaim")}
_OPERATORS = {operator.value for operator in Operator}


def resource_of(ref: ObjectRef, scaled: Mapping[tuple[str, str], Resource]) -> Resource:
    """The kind of an object. scaled: what is served in addition to `SERVED`. Raises `Invalid` for one that is not served."""
    key = (ref.group, ref.kind)
    resource = SERVED.get(key) or scaled.get(key)
    if resource is None:
        raise Invalid(f"no matches for kind {ref.kind!r} in group {ref.group!r}")
    if bool(ref.namespace) != resource.namespaced:
        raise Invalid(f"{ref} {'needs a' if resource.namespaced else 'has no'} namespace")
    return resource


def check_version(resource: Resource, ref: ObjectRef, manifest: Mapping[str, Any]) -> None:
    """Raises `Invalid` unless the manifest is of the kind it is written to, in a version that is served."""
    group, kind = group_of(str(manifest.get("apiVersion", ""))), manifest.get("kind")
    if (group, kind) != resource.key:
        raise Invalid(f"{manifest.get('apiVersion')} {kind} was written to {ref}")
    version = str(manifest.get("apiVersion", "")).rpartition("/")[2]
    if resource.versions and version not in resource.versions[:1]:
        raise Invalid(
            f"{resource} is not served as {version}", hint=f"write {ref.group}/{resource.versions[0]}".lstrip("/")
        )
    name = (manifest.get("metadata") or {}).get("name")
    if name != ref.name:
        raise Invalid(f"metadata.name {name!r} was written to {ref}")


def admit(ref: ObjectRef, before: Mapping[str, Any] | None, after: Mapping[str, Any]) -> dict[str, Any]:
    """The object as stored, with defaults. before: None if it is new. Raises `Invalid` where the server would refuse it."""
    resource = (ref.group, ref.kind)
    if before is not None and resource in _IMMUTABLE_SPEC and before.get("spec") != after.get("spec"):
        raise Invalid(f"{ref} is invalid: spec is immutable")
    if before is not None:
        for refused in refused_changes(before, after):
            raise Invalid(f"{ref} is invalid: {refused.path}: {refused.message}", hint=refused.hint)
    kind = kind_of(ref.group, ref.kind)
    name = None if kind is None else kind.schema
    filled = dict(after)
    if name is not None:
        schema = schema_of(name)
        error = next(validator_of(name).iter_errors({**filled, "metadata": _named(filled)}), None)
        if error is not None:
            raise Invalid(f"{ref} is invalid: {path_text(tuple(error.instance_path))}: {error.message}")
        # Only the spec gets defaults. A status is what controllers write, whatever the schema says.
        spec = schema.get("properties", {}).get("spec")
        if spec is not None and "spec" in filled:
            filled["spec"] = with_defaults(spec, filled["spec"])
    if resource == (KARPENTER, "NodeClaim"):
        filled["spec"] = _node_claim_spec(ref, filled.get("spec") or {})
    if resource == (APPS, "Deployment"):
        filled["spec"] = {"replicas": 1, **filled.get("spec", {})}
    return filled


def _node_claim_spec(ref: ObjectRef, spec: Mapping[str, Any]) -> dict[str, Any]:
    """Checks what Karpenter's CustomResourceDefinition requires of a NodeClaim, and adds the default expireAfter."""
    node_class = spec.get("nodeClassRef") or {}
    missing = [f"spec.nodeClassRef.{name}" for name in ("group", "kind", "name") if not node_class.get(name)]
    if not isinstance(spec.get("requirements"), list):
        missing.append("spec.requirements")
    if missing:
        raise Invalid(f"{ref} is invalid: {', '.join(missing)}: required")
    for index, row in enumerate(spec["requirements"]):
        if not row.get("key") or row.get("operator") not in _OPERATORS:
            raise Invalid(f"{ref} is invalid: spec.requirements[{index}]: needs a key and an operator")
    return {"expireAfter": "720h", **spec}


def _named(body: Mapping[str, Any]) -> dict[str, Any]:
    """The object with the part of its metadata that people write; the server writes the rest."""
    metadata = body.get("metadata") or {}
    return {key: metadata[key] for key in ("name", "namespace", "labels", "annotations") if key in metadata}

"""The CustomResourceDefinitions that headroom ships, made from the schemas that validate manifests."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from reconciler.manifests.buffer import BUFFER
from reconciler.manifests.documents.load import schema_of
from reconciler.manifests.kind import Kind
from reconciler.manifests.metrics_producer import METRICS_PRODUCER
from reconciler.manifests.provisioning_request import PROVISIONING_CLASS, PROVISIONING_REQUEST
from reconciler.model.view import Manifest

_PART_OF, _HEADROOM = "app.kubernetes.io/part-of", "headroom"
_AGE = ("Age", "date", ".metadata.creationTimestamp")
_OBJECT_FIELDS: Mapping[str, Any] = {
    "apiVersion": {"type": "string", "description": "Version of this representation of the object."},
    "kind": {"type": "string", "description": "Kind of the object."},
    "metadata": {"type": "object"},
}
_SCALE = {
    "specReplicasPath": ".spec.replicas",
    "statusReplicasPath": ".status.replicas",
    "labelSelectorPath": ".status.selector",
}


@dataclass(frozen=True, slots=True)
class _Definition:
    """columns: name, type and JSONPath of each column of `kubectl get`. scale: whether `spec.replicas` is read and written through /scale."""

    kind: Kind
    plural: str
    short_names: tuple[str, ...]
    columns: tuple[tuple[str, str, str], ...]
    scale: bool = False

    def manifest(self) -> Manifest:
        kind = self.kind
        return {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {
                "name": f"{self.plural}.{kind.group}",
                "labels": {_PART_OF: _HEADROOM},
                # The API server requires this annotation of groups that end in k8s.io.
                "annotations": {"api-approved.kubernetes.io": "unapproved, defined by headroom"},
            },
            "spec": {
                "group": kind.group,
                "scope": "Namespaced" if kind.namespaced else "Cluster",
                "names": {
                    "kind": kind.name,
                    "listKind": f"{kind.name}List",
                    "plural": self.plural,
                    "singular": kind.name.lower(),
                    "shortNames": list(self.short_names),
                    "categories": ["headroom"],
                },
                "versions": [self._version(name, storage=name == kind.versions[0]) for name in kind.versions],
            },
        }

    def _version(self, name: str, *, storage: bool) -> dict[str, Any]:
        schema = schema_of(self.kind.schema)
        properties = schema["properties"]
        version: dict[str, Any] = {
            "name": name,
            "served": True,
            "storage": storage,
            "additionalPrinterColumns": [
                {"name": name, "type": type_name, "jsonPath": path} for name, type_name, path in (*self.columns, _AGE)
            ],
            "schema": {"openAPIV3Schema": _structural({**schema, "properties": {**_OBJECT_FIELDS, **properties}})},
        }
        if "status" in properties:
            version["subresources"] = {"status": {}, **({"scale": _SCALE} if self.scale else {})}
        return version


def _structural(schema: Any) -> Any:
    """The schema without `additionalProperties: false`, which the API server allows nowhere, since it prunes unknown fields, and without
    rules, which its CEL rules say."""
    if isinstance(schema, dict):
        return {
            key: _structural(value)
            for key, value in schema.items()
            if key != "allOf" and not (key == "additionalProperties" and value is False)
        }
    return [_structural(item) for item in schema] if isinstance(schema, list) else schema


_DEFINITIONS = (
    _Definition(
        BUFFER,
        "buffers",
        ("buf",),
        (
            ("Target", "string", ".spec.targetRef.name"),
            ("Replicas", "integer", ".status.replicas"),
            ("Ready", "string", '.status.conditions[?(@.type=="ReadyForProvisioning")].status'),
            ("Provisioning", "string", '.status.conditions[?(@.type=="Provisioning")].reason'),
        ),
        scale=True,
    ),
    _Definition(
        METRICS_PRODUCER,
        "metricsproducers",
        ("mp",),
        (
            ("Value", "integer", ".status.currentValue"),
            ("Next", "integer", ".status.nextValue"),
            ("At", "string", ".status.nextValueTime"),
        ),
    ),
    _Definition(PROVISIONING_CLASS, "provisioningclasses", ("provclass",), ()),
    _Definition(
        PROVISIONING_REQUEST,
        "provisioningrequests",
        ("provreq", "provreqs"),
        (
            ("Class", "string", ".spec.provisioningClassName"),
            ("Provisioned", "string", '.status.conditions[?(@.type=="Provisioned")].status'),
            ("Failed", "string", '.status.conditions[?(@.type=="Failed")].status'),
        ),
    ),
)
DEFINED = tuple(map(attrgetter("kind.name"), _DEFINITIONS))
"""ProvisioningRequest's definition is originally Cluster Autoscaler's. Headroom's is for clusters without one."""


def crds(kinds: Collection[str] = DEFINED) -> tuple[Manifest, ...]:
    """The definitions of these kinds. CapacityBuffer and NodePool are not among them: Karpenter ships them."""
    return tuple(definition.manifest() for definition in _DEFINITIONS if definition.kind.name in kinds)


def why_left_out(definition: Manifest, there: Manifest | None) -> str:
    """Why a definition must not be applied over the one that is there; "" if it may be."""
    if there is None:
        return ""
    labels = there["metadata"].get("labels") or {}
    if labels.get(_PART_OF) != _HEADROOM:
        return "the cluster has one that is not headroom's"
    our_versions = {version["name"] for version in definition["spec"]["versions"]}
    newer = [version["name"] for version in there["spec"]["versions"] if version["name"] not in our_versions]
    return f"the cluster has a newer one, with version {', '.join(newer)}" if newer else ""


def to_yaml(manifest: Manifest) -> str:
    """YAML in the mapping's own order, without aliases, ending with a newline."""
    import yaml

    class Dumper(yaml.SafeDumper):
        def ignore_aliases(self, data: Any) -> bool:
            del data
            return True

    return yaml.dump(manifest, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=120)

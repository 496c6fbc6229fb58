"""Empties a control plane between tests that share it.

Called through `ControlPlane.sweep`.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING

from tests.controlplane.rest import ApiError
from tests.controlplane.waiting import eventually

if TYPE_CHECKING:
    from tests.controlplane.rest import Document, Rest

# Cluster-scoped things that tests make, in the order in which they can go: pools before the
# claims that they would replace, nodes before the class that ends them.
_CLUSTER_KINDS = (
    ("karpenter.sh/v1", "NodePool"),
    ("karpenter.sh/v1", "NodeClaim"),
    ("karpenter.sh/v1alpha1", "NodeOverlay"),
    ("v1", "Node"),
    ("v1", "PersistentVolume"),
    ("storage.k8s.io/v1", "StorageClass"),
    ("node.k8s.io/v1", "RuntimeClass"),
)
_NODE_CLASS = ("karpenter.kwok.sh/v1alpha1", "KWOKNodeClass")
_PRIORITY_CLASS = ("scheduling.k8s.io/v1", "PriorityClass")
_GONE_SECONDS = 60.0
# These come back by themselves, belong to the cluster, or go with their owners.
_KEPT_RESOURCES = frozenset({"events", "endpoints", "endpointslices", "serviceaccounts", "leases"})
_KEPT_OBJECTS = frozenset({"kubernetes", "kube-root-ca.crt"})


def sweep(api: Rest, *, controllers: bool) -> None:
    """Delete namespaces, the contents of `default`, pools, claims and nodes; wait for it.

    RBAC and CRDs stay. Without kube-controller-manager a namespace would never be gone, so
    `controllers` false empties namespaces and leaves them.
    """
    own = [
        name
        for name in (item["metadata"]["name"] for item in api.list("v1", "Namespace"))
        if not name.startswith("kube-")
    ]
    _delete_all(api, *_CLUSTER_KINDS[0])
    for namespace in own:
        if controllers and namespace != "default":
            api.delete("v1", "Namespace", namespace)
        else:
            _empty(api, namespace)
    for api_version, kind in _CLUSTER_KINDS[1:]:
        _delete_all(api, api_version, kind)
    eventually(
        lambda: not _left(api, own if controllers else []),
        within=_GONE_SECONDS,
        what="the cluster is empty",
        every=0.25,
    )
    _delete_all(api, *_NODE_CLASS)
    for item in _list(api, *_PRIORITY_CLASS):
        if not _name(item).startswith("system-"):  # those are the cluster's own
            api.delete(*_PRIORITY_CLASS, _name(item))


def _left(api: Rest, namespaces: list[str]) -> list[str]:
    """What is not gone yet; shown if it never goes."""
    left = [f"{kind} {_name(item)}" for api_version, kind in _CLUSTER_KINDS for item in _list(api, api_version, kind)]
    present = {_name(item) for item in api.list("v1", "Namespace")}
    left += [f"Namespace {name}" for name in namespaces if name in present - {"default"}]
    assert not left, ", ".join(left)
    return left


def _delete_all(api: Rest, api_version: str, kind: str) -> None:
    for item in _list(api, api_version, kind):
        api.delete(api_version, kind, _name(item))


def _list(api: Rest, api_version: str, kind: str) -> list[Document]:
    try:
        return api.list(api_version, kind)
    except (LookupError, ApiError):
        # Its CRD is not installed here.
        return []


def _empty(api: Rest, namespace: str) -> None:
    for api_version, resource in _namespaced(api):
        prefix = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
        collection = f"{prefix}/namespaces/{namespace}/{resource}"
        for item in api.document("GET", collection)["items"]:
            if _name(item) in _KEPT_OBJECTS:
                continue
            try:
                api.request(
                    "DELETE",
                    f"{collection}/{_name(item)}",
                    query={"propagationPolicy": "Background", "gracePeriodSeconds": "0"},
                )
            except ApiError as error:
                if error.code != HTTPStatus.NOT_FOUND:
                    raise


def _namespaced(api: Rest) -> list[tuple[str, str]]:
    """Every kind of namespaced object that the server has, as (apiVersion, plural)."""
    groups = api.document("GET", "/apis")["groups"]
    versions = ["v1", *(group["preferredVersion"]["groupVersion"] for group in groups)]
    found = []
    for version in versions:
        prefix = f"/apis/{version}" if "/" in version else f"/api/{version}"
        for resource in api.document("GET", prefix)["resources"]:
            listable = {"list", "delete"} <= set(resource["verbs"]) and resource["namespaced"]
            if listable and resource["name"] not in _KEPT_RESOURCES:
                found.append((version, resource["name"]))
    return found


def _name(item: Document) -> str:
    return str(item["metadata"]["name"])

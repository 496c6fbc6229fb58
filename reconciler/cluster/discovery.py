"""What an API server serves: kinds, their plural names and versions.

Aggregated discovery (KEP-3352) gives all of it in two answers. With an ETag it is cheap to learn that nothing changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from threading import Lock
from urllib.parse import quote

import msgspec

from reconciler.cluster.connection import Connection
from reconciler.cluster.decoding.wire import MetadataWire, TypeWire
from reconciler.cluster.resources import Resource
from reconciler.model.errors import Transient
from reconciler.model.refs import ObjectRef

_NOT_MODIFIED = 304
_ACCEPT = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_NO_STEPS = {"", ".", ".."}
_PATHS = ("/api", "/apis")


class _Subresource(msgspec.Struct, rename="camel"):
    subresource: str = ""


class _ResourceWire(msgspec.Struct, rename="camel"):
    resource: str
    response_kind: TypeWire | None = None
    scope: str = "Namespaced"
    subresources: tuple[_Subresource, ...] | None = None


class _Version(msgspec.Struct, rename="camel"):
    version: str
    resources: tuple[_ResourceWire, ...] | None = None


class _Group(msgspec.Struct, rename="camel"):
    metadata: MetadataWire = MetadataWire()
    versions: tuple[_Version, ...] = ()


class _Groups(msgspec.Struct, rename="camel"):
    kind: str = ""
    items: tuple[_Group, ...] = ()


@dataclass(frozen=True, slots=True)
class Served:
    """One kind that is served. versions: preferred first."""

    plural: str
    versions: tuple[str, ...]
    namespaced: bool
    scalable: bool = False


class Discovery:
    """The kinds served, as of the last refresh. Thread-safe."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._lock = Lock()
        self._etags: dict[str, str] = {}
        self._parts: dict[str, dict[tuple[str, str], Served]] = {}
        self._served: Mapping[tuple[str, str], Served] = {}
        self.generation = 0

    def refresh(self) -> bool:
        """Asks again; returns whether anything changed. Raises `Transient`."""
        with self._lock:
            for path in _PATHS:
                self._refresh(path)
            served = {key: kind for part in self._parts.values() for key, kind in part.items()}
            changed = served != self._served
            self._served = served
            self.generation += changed
        return changed

    def _refresh(self, path: str) -> None:
        headers = {"Accept": _ACCEPT}
        if path in self._etags:
            headers["If-None-Match"] = self._etags[path]
        answer = self._connection.request("GET", path, headers=headers, resource="discovery")
        if answer.status == _NOT_MODIFIED:
            return
        if not answer.ok:
            raise Transient(f"discovery of {path} failed: {answer.refusal}")
        try:
            groups = msgspec.json.decode(answer.data, type=_Groups)
        except msgspec.MsgspecError as error:
            raise Transient(f"discovery of {path} failed: {error}") from error
        if groups.kind != "APIGroupDiscoveryList":
            raise Transient("the API server is too old: headroom needs aggregated discovery (Kubernetes 1.30 or newer)")
        self._etags[path] = answer.headers.get("ETag", "")
        self._parts[path] = _kinds(groups)

    def find(self, group: str, kind: str) -> Served | None:
        return self._served.get((group, kind))

    def scalable(self) -> Mapping[tuple[str, str], Served]:
        """By (group, kind), the namespaced kinds with a scale subresource."""
        return {key: served for key, served in sorted(self._served.items()) if served.scalable and served.namespaced}

    def apis(self) -> Mapping[tuple[str, str], tuple[str, ...]]:
        """By (group, kind), the versions served, the preferred first."""
        return {key: served.versions for key, served in self._served.items()}

    def path_of(self, resource: Resource) -> str | None:
        """The collection's path, in the first version that both sides know; None if there is none."""
        served = self.find(*resource.key)
        if served is None:
            return None
        version = next((version for version in resource.versions if version in served.versions), None)
        return version and collection_path(resource.group, version, served.plural, resource.namespace)

    def api_version(self, ref: ObjectRef) -> str:
        """The preferred `GROUP/VERSION` of the object's kind; `v1` if it is not served."""
        served = self.find(ref.group, ref.kind)
        version = served.versions[0] if served else "v1"
        return f"{ref.group}/{version}" if ref.group else version

    def object_path(self, ref: ObjectRef, api_version: str | None = None) -> str | None:
        """One object's path, in the given version (`v1`) or else the preferred one; None if its kind is not served."""
        served = self.find(ref.group, ref.kind)
        if served is None or (api_version is not None and api_version not in served.versions) or ref.name in _NO_STEPS:
            return None
        namespace = ref.namespace if served.namespaced else ""
        # A buffer may name any object, and what it writes there must not become more of a path, or a query.
        name = quote(ref.name, safe="")
        return f"{collection_path(ref.group, api_version or served.versions[0], served.plural, namespace)}/{name}"


def collection_path(group: str, version: str, plural: str, namespace: str = "") -> str:
    root = f"/apis/{group}/{version}" if group else f"/api/{version}"
    return f"{root}/namespaces/{namespace}/{plural}" if namespace else f"{root}/{plural}"


def _kinds(groups: _Groups) -> dict[tuple[str, str], Served]:
    found: dict[tuple[str, str], Served] = {}
    for group in groups.items:
        for version in group.versions:
            for item in version.resources or ():
                if item.response_kind is None or not item.response_kind.kind:
                    continue
                key = (group.metadata.name, item.response_kind.kind)
                before = found.get(key)
                if before is not None and before.plural != item.resource:
                    continue
                found[key] = Served(
                    plural=item.resource,
                    versions=(*(before.versions if before else ()), version.version),
                    namespaced=item.scope == "Namespaced",
                    scalable=any(sub.subresource == "scale" for sub in item.subresources or ()),
                )
    return found

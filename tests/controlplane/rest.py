"""A thin client for the Kubernetes API: documents in, documents out.

Used by the control plane for its own set-up and offered to tests as `control_plane.api`, so
that what tests check does not go through the same client as what they check.
"""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import urlencode

import urllib3

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

Document: TypeAlias = dict[str, Any]

_TIMEOUT = 30.0
# Only what the server asks to be tried again later, as it does while a CRD's storage is set up.
_RETRIES = urllib3.Retry(
    total=None,
    connect=0,
    read=0,
    redirect=0,
    other=0,
    status=3,
    status_forcelist={HTTPStatus.TOO_MANY_REQUESTS},
    allowed_methods=None,
    raise_on_status=False,
)
_MERGE_PATCH = "application/merge-patch+json"
_APPLY_PATCH = "application/apply-patch+yaml"


class ApiError(OSError):
    """The API server answered with an error."""

    def __init__(self, code: int, message: str) -> None:
        """Keep the HTTP status in `code`."""
        super().__init__(f"{code}: {message}")
        self.code = code


class ApiUnreachableError(ConnectionError):
    """No answer from the API server."""


class Rest:
    """The API as one user sees it. Kinds are named as in manifests, by apiVersion and kind."""

    def __init__(self, server: str, *, token: str, ca_file: Path, patient: bool = True) -> None:
        """Connect lazily; the CA file must exist by the first request.

        `patient`: do again what the server puts off, after the whole seconds that it asks for.
        """
        self._server = server
        self._headers = {"Authorization": f"Bearer {token}", "Accept": "application/json"}
        self._pool = urllib3.PoolManager(
            ca_certs=str(ca_file), retries=_RETRIES if patient else False, timeout=_TIMEOUT, maxsize=8
        )
        self._resources: dict[tuple[str, str], tuple[str, bool]] = {}

    def request(
        self,
        method: str,
        path: str,
        *,
        body: Document | None = None,
        query: Mapping[str, str] | None = None,
        content_type: str = "application/json",
    ) -> bytes:
        """One request; ApiError for an error status, ApiUnreachableError for no answer."""
        url = f"{self._server}{path}"
        if query:
            url += f"?{urlencode(query)}"
        try:
            response = self._pool.request(
                method,
                url,
                headers={**self._headers, "Content-Type": content_type},
                body=None if body is None else json.dumps(body).encode(),
            )
        except urllib3.exceptions.HTTPError as error:
            message = f"{method} {url}: {error}"
            raise ApiUnreachableError(message) from error
        if response.status >= HTTPStatus.BAD_REQUEST:
            raise ApiError(response.status, _explain(response.data))
        return response.data

    def document(
        self,
        method: str,
        path: str,
        *,
        body: Document | None = None,
        query: Mapping[str, str] | None = None,
        content_type: str = "application/json",
    ) -> Document:
        """One request that is answered with a JSON object."""
        data = self.request(method, path, body=body, query=query, content_type=content_type)
        answer: Document = json.loads(data)
        return answer

    def get(self, api_version: str, kind: str, name: str, *, namespace: str | None = None) -> Document | None:
        """One object, or None where there is none."""
        try:
            return self.document("GET", self.path(api_version, kind, namespace, name))
        except ApiError as error:
            if error.code == HTTPStatus.NOT_FOUND:
                return None
            raise

    def list(
        self, api_version: str, kind: str, *, namespace: str | None = None, labels: str | None = None
    ) -> list[Document]:
        """All objects of a kind, in one namespace or all, that match a label selector."""
        query = {"labelSelector": labels} if labels else None
        answer = self.document("GET", self.path(api_version, kind, namespace), query=query)
        items: list[Document] = answer["items"]
        return items

    def create(self, document: Document) -> Document:
        """Create an object."""
        return self.document("POST", self._path_of(document, named=False), body=document)

    def apply(self, document: Document, *, manager: str = "controlplane", dry_run: bool = False) -> Document:
        """Server-side apply, taking over fields that others own."""
        query = {"fieldManager": manager, "force": "true"}
        if dry_run:
            query["dryRun"] = "All"
        return self.document(
            "PATCH", self._path_of(document, named=True), body=document, query=query, content_type=_APPLY_PATCH
        )

    def patch(
        self,
        api_version: str,
        kind: str,
        name: str,
        body: Document,
        *,
        namespace: str | None = None,
        subresource: str | None = None,
    ) -> Document:
        """JSON merge patch of an object, or of its `status` or `scale`."""
        path = self.path(api_version, kind, namespace, name)
        if subresource is not None:
            path += f"/{subresource}"
        return self.document("PATCH", path, body=body, content_type=_MERGE_PATCH)

    def delete(self, api_version: str, kind: str, name: str, *, namespace: str | None = None) -> None:
        """Delete an object; its dependents follow in the background. Absent is fine."""
        path = self.path(api_version, kind, namespace, name)
        try:
            self.request("DELETE", path, query={"propagationPolicy": "Background"})
        except ApiError as error:
            if error.code != HTTPStatus.NOT_FOUND:
                raise

    def path(self, api_version: str, kind: str, namespace: str | None = None, name: str | None = None) -> str:
        """URL path of an object or, without a name, of a collection."""
        plural, namespaced = self._resource(api_version, kind)
        path = _prefix(api_version)
        if namespaced and (namespace is not None or name is not None):
            path += f"/namespaces/{namespace or 'default'}"
        path += f"/{plural}"
        return path if name is None else f"{path}/{name}"

    def _path_of(self, document: Document, *, named: bool) -> str:
        metadata = document["metadata"]
        return self.path(
            document["apiVersion"],
            document["kind"],
            # A namespaced object needs one in its path also when it is being created.
            metadata.get("namespace", "default"),
            metadata["name"] if named else None,
        )

    def _resource(self, api_version: str, kind: str) -> tuple[str, bool]:
        """Plural name of a kind, and whether it is namespaced, from discovery."""
        key = (api_version, kind)
        if key not in self._resources:
            for resource in self.document("GET", _prefix(api_version))["resources"]:
                if "/" not in resource["name"]:
                    found = (resource["name"], bool(resource["namespaced"]))
                    self._resources[(api_version, resource["kind"])] = found
        if key not in self._resources:
            message = f"the server has no {api_version} {kind}"
            raise LookupError(message)
        return self._resources[key]


def condition(document: Document | None, kind: str) -> str | None:
    """Status of one of an object's conditions: "True", "False", "Unknown", or None."""
    for item in (document or {}).get("status", {}).get("conditions") or []:
        if item["type"] == kind:
            return str(item["status"])
    return None


def _prefix(api_version: str) -> str:
    return f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"


def _explain(data: bytes) -> str:
    """The message of a Status object, or whatever else came."""
    try:
        return str(json.loads(data)["message"])
    except (ValueError, LookupError, TypeError):
        return data.decode(errors="replace")[:500]

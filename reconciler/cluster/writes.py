"""Writes to a real cluster, and the words for fields that belong to other managers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from typing import Any

import msgspec

from reconciler.cluster.connection import (
    CONFLICT,
    JSON,
    NOT_FOUND,
    TOO_MANY,
    UNAUTHORIZED,
    Answer,
    Connection,
    Query,
    RefusedError,
    StatusWire,
)
from reconciler.cluster.discovery import Discovery
from reconciler.model.changes import Annotate, Apply, ApplyStatus, Delete, Outcome, Write, WriteResult
from reconciler.model.errors import Transient, Waiting
from reconciler.model.marks import MODE_ANNOTATION, OWN_MANAGER
from reconciler.model.refs import ObjectRef, Path, path_text
from reconciler.model.requirements import Taint
from reconciler.model.view import Manifest


def conflict_words(conflicts: Iterable[tuple[str, str]]) -> str:
    """`spec.weight belongs to "kubectl"`, for each field in order, and the annotation; "" for none. conflicts: managers and fields."""
    fields: dict[str, set[str]] = {}
    for manager, field in conflicts:
        fields.setdefault(manager, set()).add(field)
    if not fields:
        return ""
    told = "; ".join(
        f'{", ".join(sorted(names))} {"belongs" if len(names) == 1 else "belong"} to "{manager}"'
        for manager, names in sorted(fields.items())
    )
    them = "it" if sum(map(len, fields.values())) == 1 else "them"
    return f"{told}. To take {them} over, annotate the manifest with {MODE_ANNOTATION}: Override"


def with_taints(node: Mapping[str, Any], wanted: Iterable[tuple[Taint, bool]]) -> list[dict[str, Any]]:
    """The node's taints, with those wanted (True) added and those unwanted (False) removed. Others stay, in order.

    There is one taint for each key and effect, as the API server requires.
    """
    taints: list[dict[str, Any]] = [dict(item) for item in (node.get("spec") or {}).get("taints") or ()]
    for taint, is_wanted in wanted:
        there = [item for item in taints if (item.get("key"), item.get("effect")) == (taint.key, taint.effect)]
        if is_wanted and not there:
            taints.append({"key": taint.key, **({"value": taint.value} if taint.value else {}), "effect": taint.effect})
        elif not is_wanted:
            taints = [item for item in taints if item not in there]
    return taints


_APPLY = "application/apply-patch+yaml"
_MERGE = "application/merge-patch+json"
_CREATED = 201
_SERVER_ERROR = 500
_TIMED_OUT = 408
_ATTEMPTS = 3
"""How often to try a patch of a list that another client changed in between."""

_UNKNOWN_FIELD = re.compile(r"\s(\.\S.*): field not declared in schema")
"""Source: structured-merge-diff's typed values, of which a server-side apply makes one."""
_NO_SUCH_DOCUMENT = "failed to create typed "
"""How the API server's message begins about a document that its schema does not allow: it calls that an internal error."""
_MOST_UNKNOWN = 20
_JUDGED = frozenset({400, 404, CONFLICT, 422})
"""Answers about a document whose fields are all known: bad values, no such namespace, a conflict."""
_STEP = re.compile(r"\[([^\]]*)\]")

Written = Callable[[ObjectRef, str], None]
"""Called with an object and its resourceVersion after a write."""


class Writer:
    """Performs writes as field manager `headroom`. Thread-safe. Failures are results, never exceptions.

    A dry run returns UNCHANGED for a write without an effect, so that it need not be made.
    """

    def __init__(self, connection: Connection, discovery: Discovery, written: Written) -> None:
        self._connection = connection
        self._discovery = discovery
        self._written = written

    def write(self, write: Write, *, dry_run: bool) -> WriteResult:
        try:
            path = self._path(write.ref, _version(write.manifest) if isinstance(write, Apply) else None)
            if path is None:
                return _not_served(write)
            match write:
                case Apply():
                    done = self._patch(write, path, write.manifest, force=write.force, dry_run=dry_run)
                case ApplyStatus():
                    done = self._apply_status(write, path, dry_run=dry_run)
                case Annotate():
                    done = self._annotate(write, path, dry_run=dry_run)
                case Delete():
                    done = self._delete(write, path, dry_run=dry_run)
        except Waiting as error:
            return WriteResult(write, Outcome.SKIPPED, error.message)
        except RefusedError as error:
            return _refused(write, error.answer)
        except Transient as error:
            return WriteResult(write, Outcome.FAILED, error.message)
        return done

    def unknown_fields(self, apply: Apply) -> tuple[str, ...] | None:
        """The paths of the fields that the served definition does not have, by dry runs; None if that cannot be told.

        The API server names one field at a time, so the field is taken out and the rest is asked about again. It judges fields before
        values, conflicts and admission, so an answer about those says that all fields are known. Raises `Transient` where there is no
        answer at all: a document must not lose a field because of that.
        """
        document, found = deepcopy(dict(apply.manifest)), list[str]()
        path = self._path(apply.ref, _version(apply.manifest))
        query = [("fieldManager", OWN_MANAGER), ("force", "true"), ("fieldValidation", "Strict")]
        while path is not None and len(found) < _MOST_UNKNOWN:
            answer = self._send("PATCH", path, document, content_type=_APPLY, query=query, dry_run=True)
            unknown = _UNKNOWN_FIELD.search("" if answer.ok else answer.failure().message)
            if unknown is None:
                is_judged = answer.ok or answer.status in _JUDGED
                return tuple(sorted(found)) if found or is_judged else None
            place = taken_out(document, unknown[1])
            found.append(unknown[1].lstrip(".") if place is None else path_text(place))
            if place is None:
                break
        return tuple(sorted(found)) or None

    def _apply_status(self, write: ApplyStatus, path: str, *, dry_run: bool) -> WriteResult:
        """Applies a status. It is forced, since `status` has only headroom's own fields."""
        document = {
            "apiVersion": self._discovery.api_version(write.ref),
            "kind": write.ref.kind,
            "metadata": {"name": write.ref.name, **({"namespace": write.ref.namespace} if write.ref.namespace else {})},
            "status": write.status,
        }
        return self._patch(write, path, document, force=True, dry_run=dry_run, subresource="/status")

    def _patch(
        self, write: Write, path: str, document: Manifest, *, force: bool, dry_run: bool, subresource: str = ""
    ) -> WriteResult:
        """Sends a patch of the object at the path, or of its subresource, which does not create an object."""
        query = [("fieldManager", OWN_MANAGER), ("force", "true" if force else "false")]
        answer = self._send("PATCH", path + subresource, document, content_type=_APPLY, query=query, dry_run=dry_run)
        if subresource and answer.status == NOT_FOUND:
            return _gone(write)
        is_update = answer.ok and answer.status != _CREATED
        if dry_run and is_update and msgspec.json.decode(answer.data) == self._get(path):
            return WriteResult(write, Outcome.UNCHANGED)
        return self._done(write, answer, dry_run=dry_run)

    def _annotate(self, write: Annotate, path: str, *, dry_run: bool) -> WriteResult:
        for _ in range(_ATTEMPTS):
            live = self._get(path) if dry_run or write.taints else {}
            if live is None:
                return _gone(write)
            if dry_run and _is_annotated(live, write):
                return WriteResult(write, Outcome.UNCHANGED)
            answer = self._send(
                "PATCH",
                path,
                _annotation_patch(live, write),
                content_type=_MERGE,
                query=[("fieldManager", OWN_MANAGER)],
                dry_run=dry_run,
            )
            if answer.status != CONFLICT:
                break
        if answer.status == NOT_FOUND:
            return _gone(write)
        return self._done(write, answer, dry_run=dry_run)

    def _delete(self, write: Delete, path: str, *, dry_run: bool) -> WriteResult:
        options: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"}
        if write.uid:
            options["preconditions"] = {"uid": write.uid}
        if dry_run:
            # If the body has options, the server ignores those in the query.
            options["dryRun"] = ["All"]
        answer = self._send("DELETE", path, options, content_type=JSON, query=[], dry_run=dry_run)
        if answer.status == NOT_FOUND:
            return WriteResult(write, Outcome.UNCHANGED, f"{write.ref} is gone already")
        if answer.status == CONFLICT and write.uid:
            return WriteResult(write, Outcome.UNCHANGED, f"{write.ref} is another object by now, with the same name")
        return self._done(write, answer, dry_run=dry_run)

    def _done(self, write: Write, answer: Answer, *, dry_run: bool) -> WriteResult:
        if not answer.ok:
            return _refused(write, answer)
        after = msgspec.json.decode(answer.data)
        version = "" if after.get("kind") == "Status" else str((after.get("metadata") or {}).get("resourceVersion", ""))
        if version and not dry_run:
            self._written(write.ref, version)
        return WriteResult(write, Outcome.APPLIED, version=version)

    def _path(self, ref: ObjectRef, version: str | None = None) -> str | None:
        """The object's path. If its kind seems not to be served, discovery is repeated once: a CRD may be seconds old."""
        path = self._discovery.object_path(ref, version)
        if path is None and self._discovery.refresh():
            path = self._discovery.object_path(ref, version)
        return path

    def _get(self, path: str) -> Any:
        """The object; None if it does not exist."""
        answer = self._connection.request("GET", path, resource=_plural_in(path))
        if answer.ok:
            return msgspec.json.decode(answer.data)
        if answer.status == NOT_FOUND:
            return None
        raise RefusedError(answer)

    def _send(
        self, method: str, path: str, document: Mapping[str, Any], *, content_type: str, query: Query, dry_run: bool
    ) -> Answer:
        return self._connection.request(
            method,
            path,
            query=[*query, *([("dryRun", "All")] if dry_run else [])],
            body=msgspec.json.encode(document, order="deterministic"),
            headers={"Content-Type": content_type},
            resource=_plural_in(path),
        )


def taken_out(document: Any, written: str) -> Path | None:
    """Removes the field that the API server names, such as `.spec.budgets[0].node`; None if there is no such field.

    An item of a list is named by its index, or by its keys: then the first item that has the field is meant.
    """
    if isinstance(document, list):
        step = _STEP.match(written)
        if step is None:
            return None
        indexes = [int(step[1])] if step[1].isdigit() else list(range(len(document)))
        for index in indexes:
            below = taken_out(document[index], written[step.end() :]) if index < len(document) else None
            if below is not None:
                return (index, *below)
        return None
    for key in sorted(document, key=len, reverse=True) if isinstance(document, dict) else ():
        rest = written.removeprefix(f".{key}")
        if rest == written:
            continue
        if not rest:
            del document[key]
            return (key,)
        below = taken_out(document[key], rest)
        if below is not None:
            return (key, *below)
    return None


def _is_annotated(live: Mapping[str, Any], write: Annotate) -> bool:
    there = live["metadata"].get("annotations") or {}
    return all(there.get(name) == value for name, value in write.annotations) and not _new_taints(live, write)


def _annotation_patch(live: Mapping[str, Any], write: Annotate) -> dict[str, Any]:
    """The patch. It has the resourceVersion if it has taints: the list is replaced as a whole, so it must not have changed."""
    document: dict[str, Any] = {"metadata": {"annotations": dict(write.annotations)}}
    if taints := _new_taints(live, write):
        document["metadata"]["resourceVersion"] = live["metadata"]["resourceVersion"]
        document |= taints
    return document


def _new_taints(live: Mapping[str, Any], write: Annotate) -> dict[str, Any]:
    """The new list of taints; empty if they do not change."""
    taints = with_taints(live, write.taints)
    there = (live.get("spec") or {}).get("taints") or []
    return {} if taints == there else {"spec": {"taints": taints or None}}


def _plural_in(path: str) -> str:
    """`nodepools` in an object's path."""
    return path.removesuffix("/status").split("/")[-2]


def _version(manifest: Manifest) -> str:
    return str(manifest.get("apiVersion", "")).rpartition("/")[2]


def _not_served(write: Write) -> WriteResult:
    if isinstance(write, Delete):
        return WriteResult(write, Outcome.UNCHANGED, f"{write.ref.kind} is not served any more")
    api_version = write.manifest.get("apiVersion", "") if isinstance(write, Apply) else ""
    kind = f"{api_version} {write.ref.kind}".strip()
    return WriteResult(write, Outcome.REFUSED, f"the cluster does not serve {kind}: install its CRD")


def _gone(write: Write) -> WriteResult:
    return WriteResult(write, Outcome.SKIPPED, f"{write.ref} is gone")


def _refused(write: Write, answer: Answer) -> WriteResult:
    failure = answer.failure()
    conflicts = _conflicts(failure)
    if conflicts:
        return WriteResult(write, Outcome.CONFLICT, conflicts)
    if failure.message.startswith(_NO_SUCH_DOCUMENT):
        return WriteResult(write, Outcome.REFUSED, failure.message)
    retried = answer.status in {UNAUTHORIZED, _TIMED_OUT, CONFLICT, TOO_MANY} or answer.status >= _SERVER_ERROR
    return WriteResult(write, Outcome.FAILED if retried else Outcome.REFUSED, failure.message)


def _conflicts(failure: StatusWire) -> str:
    """Which fields belong to which managers, in words; "" when it is no such conflict.

    Source: apimachinery's NewApplyConflict, which names the manager in a cause's message as `conflict with "NAME"…`.
    """
    causes = failure.details.causes if failure.details else None
    return conflict_words(
        (cause.message.removeprefix("conflict with ").partition(" using ")[0].strip('"'), cause.field.removeprefix("."))
        for cause in causes or ()
        if cause.reason == "FieldManagerConflict"
    )

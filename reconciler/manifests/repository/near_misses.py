"""Near misses: a document that was meant for headroom, if not for a slip in its kind, its group or a key at its top.

Such a document is an error. If it were ignored like a Service, the object that it declared before would be deleted.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from operator import attrgetter
from typing import Any

from reconciler.manifests.documents.document import Document, mapping_at
from reconciler.manifests.documents.structure import is_near, near_to
from reconciler.manifests.kind import Kind
from reconciler.manifests.kinds import KINDS
from reconciler.model import codes
from reconciler.model.findings import Code, Finding

_ALIKE = 0.8
"""The least similarity of two groups that one may be mistaken for the other: karpenter.sh and karpenter.k8s.aws have 0.83."""
_GROUPS = frozenset(map(attrgetter("group"), KINDS))
_WHOLE_GROUP = "autoscaling.x-k8s.io"
_NOT_READ = frozenset({"CapacityQuota"})
"""The kinds of that group that headroom does not read."""
_LIST = "List"
_LONGEST = 100
"""Characters of a group or kind that are looked at. None of headroom's is as long."""


def finding_about_another(document: Document) -> Finding | None:
    """An error or a note about a document of no kind that headroom reads; None if there is nothing to say."""
    value = document.value
    if not document.kind or not document.api_version:
        return _of_unfinished(document, value)
    return _of_list(document) or _of_other_kind(document, document.api_version.rpartition("/")[0], document.kind)


def _of_unfinished(document: Document, value: Mapping[str, Any]) -> Finding | None:
    """ApiVersion or kind is absent, or is no text. Charts and pipelines have only one of the two, but no spec or metadata either."""
    ours = _namesake(document.kind)
    group, _, version = document.api_version.rpartition("/")
    is_like_an_object = isinstance(value.get("metadata"), dict) or any(
        key == "spec" or (document.api_version and is_near(key, "spec")) for key in value
    )
    for wanted in ("apiVersion", "kind"):
        if isinstance(value.get(wanted), str) and value[wanted]:
            continue
        slip = near_to(wanted, value)
        if slip is not None and (is_like_an_object or document.kind or document.api_version):
            message = f"{slip} is not a field of a Kubernetes object, and {wanted} is missing"
            return _error(document, codes.MISSPELT_FIELD, slip, message, f"write {wanted}", ours=ours)
        if is_like_an_object or ours is not None or (version and group in _GROUPS - {""}):
            message = f"{wanted} must be text" if wanted in value else f"{wanted} is missing"
            line = f"apiVersion: {ours.api_version(ours.versions[0])}" if ours is not None else f"{wanted}: …"
            hint = f"write {line}" if wanted == "apiVersion" or ours is None else "write kind: …"
            return _error(document, codes.MISSING_FIELD, wanted, message, hint, ours=ours)
    if "apiVersion" in value or "kind" in value:
        return None
    within = next((key for key, inner in value.items() if _is_ours(inner)), None)
    if within is not None:
        message = f"an object is within {within}, one level too deep"
        return _error(document, codes.MISSPELT_FIELD, within, message, "write its fields at the top of the document")
    hint = "a Kubernetes object has apiVersion and kind"
    return _note(document, codes.NOT_AN_OBJECT, "not a Kubernetes object: ignored", hint)


def _is_ours(node: Any) -> bool:
    kind, version = (mapping_at({"": node}, "").get(key) for key in ("kind", "apiVersion"))
    return (
        isinstance(kind, str)
        and isinstance(version, str)
        and _meant(version.rpartition("/")[0][:_LONGEST], kind[:_LONGEST]) is not None
    )


def _of_list(document: Document) -> Finding | None:
    """A list is unpacked before it comes here, if both its kind and its items are written right."""
    kind, items = document.kind, document.value.get("items")
    of = kind.removesuffix(_LIST)
    if kind.endswith(_LIST) and (not of or _namesake(of) is not None):
        slip = near_to("items", document.value)
        code = codes.MISSING_FIELD if slip is None else codes.MISSPELT_FIELD
        message = "items must be a list" if "items" in document.value else "items is missing"
        message = message if slip is None else f"{slip} is not a field of a {kind}, and {message}"
        return _error(document, code, slip or "items", message, "write items: […]")
    if isinstance(items, list) and is_near(kind, _LIST):
        return _error(document, codes.UNKNOWN_KIND, "kind", f"there is no kind {kind}", "write kind: List")
    return None


def _of_other_kind(document: Document, group: str, name: str) -> Finding | None:
    meant = _meant(group[:_LONGEST], name[:_LONGEST])
    if meant is not None:
        line = f"apiVersion: {meant.api_version(meant.versions[0])}"
        if group == meant.group:
            message, path = f"{group or 'the core API'} has no kind {name}", "kind"
            return _error(document, codes.UNKNOWN_KIND, path, message, f'did you mean "{meant.name}"?')
        message = f"{document.api_version} has no kind {name} that headroom knows"
        hint = f"write {line} and kind: {meant.name}" if name != meant.name else f"write {line}"
        return _error(document, codes.UNKNOWN_KIND, "apiVersion", message, hint)
    ours = _namesake(name)
    if ours is None and group == _WHOLE_GROUP and name not in _NOT_READ:
        names = ", ".join(sorted(kind.name for kind in KINDS if kind.group == _WHOLE_GROUP))
        message = f"{_WHOLE_GROUP} has no kind {name}"
        return _error(document, codes.UNKNOWN_KIND, "kind", message, f"write one of its kinds: {names}")
    if ours is None:
        return None
    message = f"{name} of group {group!r} is not headroom's kind of that name: ignored"
    line = f"apiVersion: {ours.api_version(ours.versions[0])}"
    return _note(document, codes.FOREIGN_KIND, message, f"write {line} if that is what is meant")


@lru_cache(maxsize=4096)
def _meant(group: str, name: str) -> Kind | None:
    """The kind of headroom's that was most likely meant; None if group and kind are somebody else's."""
    for kind in KINDS:
        in_group = group == kind.group
        if (in_group or is_near(group, kind.group)) and (name == kind.name or is_near(name, kind.name)):
            return kind
    for kind in KINDS:
        same_name = name.lower() == kind.name.lower()
        if same_name and kind.applied and (group in _GROUPS or _resembles(group, kind)):
            return kind
    return None


def _resembles(group: str, kind: Kind) -> bool:
    """Whether the group begins or ends like the kind's own, or has most of its letters in the same order."""
    if not kind.group:
        return group in {"core", *kind.versions}
    first = group.partition(".")[0].partition("/")[0]
    same_start = is_near(first, kind.group.partition(".")[0])
    same_end = group.split(".")[-2:] == kind.group.split(".")[-2:]
    return same_start or same_end or difflib.SequenceMatcher(None, group, kind.group).ratio() >= _ALIKE


def _namesake(name: str) -> Kind | None:
    """Headroom's kind of this name, which a kind of another group may be mistaken for."""
    return next((kind for kind in KINDS if kind.name == name and kind.applied and kind.group), None)


def _error(document: Document, code: Code, path: str, message: str, hint: str, *, ours: Kind | None = None) -> Finding:
    name = mapping_at(document.value, "metadata").get("name")
    ref = ours.ref_of(document.value) if ours is not None and isinstance(name, str) else None
    finding = _note(document, code, message, hint)
    return replace(finding, position=document.position_of((path,)), path=path, ref=ref)


def _note(document: Document, code: Code, message: str, hint: str) -> Finding:
    return code.finding(message, document.position, hint=hint)

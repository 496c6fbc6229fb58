"""What a template may write: the object as planned, and beside the plan only the fields that are listed here.

A template may come from the repository, and its output is applied with headroom's rights. So whoever writes to the repository must not
get more through a template than through a manifest.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from reconciler.model.changes import FieldChange
from reconciler.model.errors import Invalid
from reconciler.model.field_differences import differences
from reconciler.model.refs import ObjectRef
from reconciler.model.view import Manifest

_RESERVED = re.compile(r"(?:.*\.)?(?:kubernetes\.io|k8s\.io|karpenter\.sh|headroom\.dev)/.*")
_LONGEST_SHOWN = 60


def _key(path: str) -> str:
    """The last step of a path: a label's or annotation's name."""
    found = re.search(r"\['(.*)'\]$", path)
    return found[1] if found else path.rpartition(".")[2]


_MARK = re.compile(r"metadata\.(labels|annotations)(\.[^.\[]+|\['.*'\])", re.DOTALL)
_IN_NODE_CLAIM = re.compile(r"spec\.(expireAfter|terminationGracePeriod)")
_IN_NODE_POOL = re.compile(r"spec(\..*|\[.*)?", re.DOTALL)
_GROWING = ("requirements", "taints", "startupTaints")
"""Lists of a NodeClaim to which a template may add."""


def check_node_claim(ref: ObjectRef, context: Mapping[str, Any], written: Manifest) -> None:
    """Raises `Invalid` unless the NodeClaim is the planned one. context: what its template is given."""
    pool = context["pool"]
    metadata: dict[str, Any] = {name: context[name] for name in ("name", "labels", "annotations")}
    if pool["uid"]:
        owner = {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "name": pool["name"], "uid": pool["uid"]}
        metadata["ownerReferences"] = [{**owner, "blockOwnerDeletion": True}]
    spec: dict[str, Any] = {
        "nodeClassRef": context["node_class"],
        "requirements": context["requirements"],
        "resources": {"requests": context["requests"]},
        "taints": context["taints"],
        "startupTaints": context["startup_taints"],
    }
    planned = {"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": metadata, "spec": spec}
    _check(ref, planned, {**written, "spec": _without_more(spec, written.get("spec"))}, _IN_NODE_CLAIM)


def check_node_pool(ref: ObjectRef, planned: Manifest, written: Manifest) -> None:
    """Raises `Invalid` unless the NodePool has all that is declared. A template may add to the spec, as a manifest might."""
    _check(ref, planned, written, _IN_NODE_POOL)


def _check(ref: ObjectRef, planned: Manifest, written: Manifest, allowed: re.Pattern[str]) -> None:
    """allowed: the paths outside of metadata that a template may add."""
    metadata = {"labels": {}, "annotations": {}, **planned["metadata"]}
    planned = {**planned, "metadata": metadata}
    for change in differences(planned, written, drops_empty=True):
        raise Invalid(
            f"the template for {ref} wrote {_shown(change.before)} as {change.path}, where {_shown(change.after)} is planned"
            if change.before is not None
            else f"the template for {ref} left out {change.path}, where {_shown(change.after)} is planned",
            hint="write it as planned: the packaged template does",
        )
    for change in differences(written, planned):
        _check_addition(ref, change, allowed)


def _check_addition(ref: ObjectRef, change: FieldChange, allowed: re.Pattern[str]) -> None:
    is_mark = _MARK.fullmatch(change.path) is not None
    if not is_mark and allowed.fullmatch(change.path) is None:
        raise Invalid(
            f"the template for {ref} wrote {change.path}, which is neither planned nor allowed",
            hint="leave it out; docs/templates.md lists what a template may add",
        )
    if is_mark and not (isinstance(change.after, str) and _RESERVED.fullmatch(_key(change.path)) is None):
        raise Invalid(
            f"the template for {ref} wrote {_shown(change.after)} as {change.path}, which is not allowed there",
            hint="leave it out, or write text under a name outside of kubernetes.io, k8s.io, karpenter.sh and headroom.dev",
        )


def _without_more(planned: Mapping[str, Any], written: object) -> object:
    """The written spec without what a template may add to its lists."""
    if not isinstance(written, Mapping):
        return written
    spec = dict(written)
    for name in _GROWING:
        there = spec.get(name)
        if isinstance(there, list):
            plain = [_plain(item) for item in there]
            wanted = planned[name]
            spec[name] = list(wanted) if all(item in plain for item in wanted) else there
    return spec


def _plain(item: object) -> object:
    """Without empty values, which say what an absent field says."""
    return (
        {key: value for key, value in item.items() if value not in ("", [], None)}
        if isinstance(item, Mapping)
        else item
    )


def _shown(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[: _LONGEST_SHOWN - 1]}…"

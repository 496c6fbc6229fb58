"""What a template may write: the object as planned, and beside the plan only the fields that are listed here.

A template may come from the repository, and its output is applied with headroom's rights. So whoever writes to the repository must not
get more through a template than through a manifest. Balloon pods keep the Pod Security Standard `restricted` and get no token.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from reconciler.model.buffers import DEPLOYMENT_KIND
from reconciler.model.changes import FieldChange
from reconciler.model.errors import Invalid
from reconciler.model.field_differences import DiffRules
from reconciler.model.refs import ObjectRef
from reconciler.model.view import Manifest

SYSTEM_NAMESPACES = frozenset({"kube-system", "kube-public", "kube-node-lease"})
_RESERVED = re.compile(r"(?:.*\.)?(?:kubernetes\.io|k8s\.io|karpenter\.sh|headroom\.dev)/.*")
_LONGEST_SHOWN = 60


@dataclass(frozen=True, slots=True)
class _Rule:
    """Where a field may stand beside the planned ones. where: a pattern of whole paths; words: what is allowed there."""

    where: str
    allows: Callable[[str, Any], bool]
    words: str


def _one_of(*values: object) -> Callable[[str, Any], bool]:
    # In Python True equals 1, in a manifest it does not.
    return lambda _path, value: any(type(value) is type(item) and value == item for item in values)


def _is_free_name(path: str, value: object) -> bool:
    return isinstance(value, str) and _RESERVED.fullmatch(_key(path)) is None


def _key(path: str) -> str:
    """The last step of a path: a label's or annotation's name."""
    found = re.search(r"\['(.*)'\]$", path)
    return found[1] if found else path.rpartition(".")[2]


def _number(least: int, most: int) -> Callable[[str, Any], bool]:
    return lambda _path, value: type(value) is int and least <= value <= most


def _are_references(_path: str, value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, Mapping) and item.keys() == {"name"} for item in value)


def _anything(_path: str, _value: object) -> bool:
    return True


_ENTRY = r"(\.[^.\[]+|\['.*'\])"
_MARKS = _Rule(
    rf"metadata\.(labels|annotations){_ENTRY}",
    _is_free_name,
    "text under a name outside of kubernetes.io, k8s.io, karpenter.sh and headroom.dev",
)
_POD = r"spec\.template\.spec\."
_CONTAINER = rf"{_POD}containers\[0\]\."
_SECURITY = rf"({_POD}|{_CONTAINER})securityContext\."
_BALLOON_RULES = (
    _MARKS,
    _Rule(
        rf"spec\.template\.metadata\.(labels|annotations){_ENTRY}",
        _one_of("false", "disabled"),
        'the text "false" or "disabled", which keeps a sidecar out',
    ),
    _Rule(r"spec\.strategy", _anything, "a Deployment's strategy"),
    _Rule(r"spec\.(revisionHistoryLimit|progressDeadlineSeconds|minReadySeconds)", _number(0, 3600), "0 to 3600"),
    _Rule(rf"{_POD}terminationGracePeriodSeconds", _number(0, 30), "0 to 30"),
    _Rule(rf"{_POD}enableServiceLinks", _one_of(True, False), "true or false"),
    _Rule(rf"{_POD}serviceAccount(Name)?", _one_of("default", ""), "default"),
    _Rule(rf"{_POD}(hostNetwork|hostPID|hostIPC|shareProcessNamespace)", _one_of(False), "false"),
    _Rule(rf"{_POD}restartPolicy", _one_of("Always"), "Always"),
    _Rule(rf"{_POD}dnsPolicy", _one_of("ClusterFirst", "Default"), "ClusterFirst or Default"),
    _Rule(rf"{_POD}imagePullSecrets", _are_references, "a list of maps with name alone"),
    _Rule(rf"{_CONTAINER}imagePullPolicy", _one_of("Always", "IfNotPresent", "Never"), "a pull policy"),
    _Rule(rf"{_CONTAINER}resources\.limits(\..*|\['.*)?", _anything, "quantities"),
    _Rule(rf"{_CONTAINER}securityContext\.readOnlyRootFilesystem", _one_of(True, False), "true or false"),
    _Rule(rf"{_CONTAINER}securityContext\.privileged", _one_of(False), "false"),
    _Rule(rf"{_SECURITY}runAsNonRoot", _one_of(True), "true"),
    _Rule(rf"{_SECURITY}seccompProfile", _one_of({"type": "RuntimeDefault"}), "{type: RuntimeDefault}"),
    _Rule(rf"{_SECURITY}appArmorProfile", _one_of({"type": "RuntimeDefault"}), "{type: RuntimeDefault}"),
    _Rule(rf"{_SECURITY}(runAsUser|runAsGroup|fsGroup)", _number(1, 2**31 - 1), "a number above 0"),
)
_NODE_CLAIM_RULES = (_MARKS, _Rule(r"spec\.(expireAfter|terminationGracePeriod)", _anything, "a duration"))
_GROWING = ("requirements", "taints", "startupTaints")
"""Lists of a NodeClaim to which a template may add."""
_NODE_POOL_RULES = (_MARKS, _Rule(r"spec(\..*|\[.*)?", _anything, "any field of a NodePool"))
_RESTRICTED_POD: Manifest = {
    "automountServiceAccountToken": False,
    "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
}
_RESTRICTED_CONTAINER: Manifest = {
    "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
}


def check_balloon(ref: ObjectRef, planned: Manifest, written: Manifest) -> None:
    """Raises `Invalid` unless the Deployment is the planned one and its pods are restricted ones without a token."""
    if ref.namespace in SYSTEM_NAMESPACES:
        raise Invalid(
            f"no balloon pods are made in namespace {ref.namespace}, which belongs to the cluster itself",
            hint="declare the buffer in a namespace of its own, or keep it with placeholders",
        )
    pod = planned["spec"]["template"]["spec"]
    restricted = _merged(pod, _RESTRICTED_POD)
    restricted["containers"] = [_merged(item, _RESTRICTED_CONTAINER) for item in pod["containers"]]
    template = {**planned["spec"]["template"], "spec": restricted}
    _check(ref, {**planned, "spec": {**planned["spec"], "template": template}}, written, _BALLOON_RULES)


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
    _check(ref, planned, {**written, "spec": _without_more(spec, written.get("spec"))}, _NODE_CLAIM_RULES)


def check_node_pool(ref: ObjectRef, planned: Manifest, written: Manifest) -> None:
    """Raises `Invalid` unless the NodePool has all that is declared. A template may add to the spec, as a manifest might."""
    _check(ref, planned, written, _NODE_POOL_RULES)


def _check(ref: ObjectRef, planned: Manifest, written: Manifest, rules: tuple[_Rule, ...]) -> None:
    metadata = {"labels": {}, "annotations": {}, **planned["metadata"]}
    planned = {**planned, "metadata": metadata}
    for change in DiffRules(drops_empty=True).differences(planned, written):
        raise Invalid(
            f"the template for {ref} wrote {_shown(change.before)} as {change.path}, where {_shown(change.after)} is planned"
            if change.before is not None
            else f"the template for {ref} left out {change.path}, where {_shown(change.after)} is planned",
            hint="write it as planned: the packaged template does",
        )
    for change in DiffRules().differences(_template_annotated(written), _template_annotated(planned)):
        _check_addition(ref, change, rules)


def _check_addition(ref: ObjectRef, change: FieldChange, rules: tuple[_Rule, ...]) -> None:
    rule = next((rule for rule in rules if re.fullmatch(rule.where, change.path, re.DOTALL)), None)
    if rule is None:
        raise Invalid(
            f"the template for {ref} wrote {change.path}, which is neither planned nor allowed",
            hint="leave it out; docs/templates.md lists what a template may add",
        )
    if not rule.allows(change.path, change.after):
        raise Invalid(
            f"the template for {ref} wrote {_shown(change.after)} as {change.path}, which is not allowed there",
            hint=f"leave it out, or write {rule.words}",
        )


def _template_annotated(manifest: Manifest) -> Manifest:
    """With a map of annotations in its pod template, so that each annotation is compared by itself."""
    spec = manifest.get("spec")
    if manifest.get("kind") != DEPLOYMENT_KIND or not isinstance(spec, Mapping):
        return manifest
    template = spec["template"]
    metadata = template["metadata"]
    with_map = {**template, "metadata": {"annotations": {}, **metadata}}
    return {**manifest, "spec": {**spec, "template": with_map}}


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


def _merged(base: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **base,
        **{
            name: _merged(base[name], value) if isinstance(base.get(name), Mapping) else value
            for name, value in more.items()
        },
    }


def _shown(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[: _LONGEST_SHOWN - 1]}…"

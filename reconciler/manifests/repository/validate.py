"""Rules across objects of one repository (duplicate objects, references that do not resolve), and changes that the API server refuses.

The latter are the transition rules (`oldSelf`) of the NodePool and ProvisioningRequest CustomResourceDefinitions. A rule on a field does not
run if the field was absent before. The findings come before a change is merged, from the two versions of the documents alone.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from reconciler.manifests.documents.document import mapping_at, unreadable
from reconciler.manifests.documents.structure import nearest
from reconciler.manifests.kind import labels_of
from reconciler.manifests.repository.reading import ReadDocument
from reconciler.model import codes
from reconciler.model.buffers import BUFFER_KINDS, Buffer
from reconciler.model.declared import DeclaredManifest
from reconciler.model.findings import Code, Finding
from reconciler.model.marks import ACTIVE_DURING_ANNOTATION, REPLICAS_FROM_ANNOTATION
from reconciler.model.pods import PodShape, Workload, claims_words
from reconciler.model.provisioning_requests import (
    ProvisioningClass,
    ProvisioningRequest,
    may_come,
    own_taint,
    toleration_to_write,
)
from reconciler.model.refs import ObjectRef, Path, abridged, path_text
from reconciler.model.schedules import following_of
from reconciler.model.view import LiveObject, Manifest

_MOST_FOLDERS = 4
_MOST_COMPARED = 32
_CLUSTER_FOLDER = re.compile(r"(?:.*/)?clusters/[^/]+/")
_FOLLOWERS = BUFFER_KINDS | {"NodePool"}
_ONLY_THERE = "it must be in the cluster already"
_Shapes = Mapping[ObjectRef, PodShape | None]
"""What the pods of each declared workload and PodTemplate look like."""


def duplicates(documents: Iterable[ReadDocument], *, one_cluster: bool) -> tuple[Finding, ...]:
    """A finding for each document whose object an earlier one declares too, with the position of the earlier one.

    one_cluster False: folders `clusters/NAME/` are different clusters, so the same name in two of them is no conflict.
    """
    places: dict[tuple[str, ObjectRef], list[ReadDocument]] = defaultdict(list)
    for document in documents:
        if document.ref is not None and document.ref.name:
            places[scope_of(document.document.file, one_cluster=one_cluster), document.ref].append(document)
    findings: list[Finding] = []
    for group in places.values():
        for document in group[1:] if len(group) > 1 else ():
            first = group[0].document.position
            message = f"declared twice, here and at {first}: neither is applied"
            findings.append(
                _finding(codes.DUPLICATE_OBJECT, document, ("metadata", "name"), message, "keep one of the two")
            )
    return tuple(findings)


def several_clusters(documents: Iterable[ReadDocument]) -> tuple[Finding, ...]:
    """A finding if the folders of several clusters are read as one cluster; otherwise none."""
    folders: dict[str, ReadDocument] = {}
    for document in documents:
        if document.ref is not None:
            folders.setdefault(scope_of(document.document.file, one_cluster=False), document)
    folders.pop("", None)
    if len(folders) < 2:  # noqa: PLR2004 - only one cluster
        return ()
    names = sorted(folder.rstrip("/") for folder in folders)
    message = f"{len(names)} clusters are read as one: {abridged(names, _MOST_FOLDERS)}"
    return (codes.SEVERAL_CLUSTERS.finding(message, hint=f"give the folder of one: --path {names[0]}"),)


def cluster_folders(files: Iterable[str]) -> tuple[str, ...]:
    """The folders of clusters below `clusters/` that have YAML files, such as clusters/production."""
    folders = {scope_of(file, one_cluster=False) for file in files if file.endswith((".yaml", ".yml"))}
    return tuple(sorted(folder.rstrip("/") for folder in folders if folder))


def scope_of(file: str, *, one_cluster: bool) -> str:
    match = None if one_cluster else _CLUSTER_FOLDER.match(file)
    return match[0] if match is not None else ""


class _Known:
    """The objects of a repository, and the names of each kind and namespace."""

    def __init__(self, refs: Collection[ObjectRef]) -> None:
        self._names: dict[ObjectRef, set[str]] = defaultdict(set)
        for ref in refs:
            self._names[ref._replace(name="")].add(ref.name)

    def beside(self, ref: ObjectRef) -> Collection[str]:
        return self._names.get(ref._replace(name=""), ())

    def __contains__(self, ref: ObjectRef) -> bool:
        return ref.name in self.beside(ref)


def references(documents: Iterable[ReadDocument], broken: Collection[ObjectRef] = ()) -> tuple[Finding, ...]:
    """References to objects that the repository does not have, and parameters that a class does not allow.

    broken: objects whose documents have errors, which have findings of their own.
    """
    read = tuple(documents)
    known = _Known({document.ref for document in read if document.ref is not None} | set(broken))
    classes = {typed.class_name: typed for document in read if isinstance(typed := document.typed, ProvisioningClass)}
    shapes = {typed.ref: typed.shape for document in read if isinstance(typed := document.typed, Workload)}
    findings: list[Finding] = []

    def judge(document: ReadDocument) -> None:
        findings.extend(_of_follower(document, known))
        match document.typed:
            case Buffer() as buffer:
                findings.extend(_of_buffer(document, buffer, known, shapes))
            case ProvisioningRequest() as request:
                findings.extend(_of_request(document, request, known, classes.get(request.class_name), shapes))
            case _:
                pass

    for document in read:
        try:
            judge(document)
        except Exception as error:  # noqa: BLE001 - whatever the defect is, it concerns this document alone
            findings.append(unreadable(error, document.document.position, document.ref))
    return tuple(findings)


def _of_follower(document: ReadDocument, known: _Known) -> list[Finding]:
    """Findings about the schedules that its annotations name."""
    if document.ref is None or document.ref.kind not in _FOLLOWERS:
        return []
    following = following_of(document.ref, labels_of(document.document.value, "metadata", "annotations"))
    if following is None:
        return []
    named = {REPLICAS_FROM_ANNOTATION: following.replicas_from, ACTIVE_DURING_ANNOTATION: following.active_during}
    return [
        _missing(document, ("metadata", "annotations", name), schedule, known)
        for name, schedule in named.items()
        if schedule is not None and schedule not in known
    ]


def _of_buffer(document: ReadDocument, buffer: Buffer, known: _Known, shapes: _Shapes) -> list[Finding]:
    findings: list[Finding] = []
    if buffer.pod_template is not None:
        template = ObjectRef("", "PodTemplate", buffer.ref.namespace, buffer.pod_template)
        findings += _of_pods(document, ("spec", "podTemplateRef", "name"), template, known, shapes)
    if buffer.target is not None:
        spec = mapping_at(document.document.value, "spec")
        key = "scalableRef" if "scalableRef" in spec else "targetRef"
        findings += _of_pods(document, ("spec", key, "name"), buffer.target, known, shapes)
    if buffer.pod_shape is not None and buffer.pod_shape.claims_devices:
        path = ("spec", "capacity", "pods", "podSpec", "resourceClaims")
        findings.append(_finding(codes.RESOURCE_CLAIMS, document, path, *claims_words("its own pod spec")))
    return findings


def _of_pods(
    document: ReadDocument, path: Path, target: ObjectRef, known: _Known, shapes: _Shapes
) -> Iterable[Finding]:
    """Findings about the object at the path that shows what pods there are to be."""
    if target not in known:
        yield _missing(document, path, target, known)
    shape = shapes.get(target)
    if shape is not None and shape.claims_devices:
        yield _finding(codes.RESOURCE_CLAIMS, document, path, *claims_words(target))


def _of_request(
    document: ReadDocument,
    request: ProvisioningRequest,
    known: _Known,
    provisioning_class: ProvisioningClass | None,
    shapes: _Shapes,
) -> list[Finding]:
    findings: list[Finding] = []
    for index, pod_set in enumerate(request.pod_sets):
        template = ObjectRef("", "PodTemplate", request.ref.namespace, pod_set.pod_template)
        findings += _of_pods(document, ("spec", "podSets", index, "podTemplateRef", "name"), template, known, shapes)
    defaults = () if provisioning_class is None else provisioning_class.defaults
    findings += _of_reserve(document, replace(request, defaults=defaults), shapes)
    if provisioning_class is not None and provisioning_class.allowed is not None:
        allowed = provisioning_class.allowed
        findings += [
            _finding(
                codes.PARAMETER_NOT_ALLOWED,
                document,
                ("spec", "parameters", name),
                f"class {request.class_name} does not allow the parameter {name}",
                f"it allows {', '.join(allowed) or 'none'}",
            )
            for name, _ in request.parameters
            if name not in allowed
        ]
    return findings


def _of_reserve(document: ReadDocument, request: ProvisioningRequest, shapes: _Shapes) -> Iterable[Finding]:
    """Findings about pods that do not tolerate the taint of the nodes made for them."""
    taint = own_taint(request)
    for index, pod_set in enumerate(() if taint is None else request.pod_sets):
        shape = shapes.get(ObjectRef("", "PodTemplate", request.ref.namespace, pod_set.pod_template))
        if taint is not None and shape is not None and not may_come(shape, taint):
            yield _finding(
                codes.RESERVE_NOT_TOLERATED,
                document,
                ("spec", "podSets", index, "podTemplateRef", "name"),
                f"PodTemplate {pod_set.pod_template} does not tolerate the taint of nodes that are reserved for this request",
                f"add {toleration_to_write(taint)} to its template.spec, and to that of the pods",
            )


def _missing(document: ReadDocument, path: tuple[str | int, ...], target: ObjectRef, known: _Known) -> Finding:
    message = f"{target} is not in this repository: {_ONLY_THERE}"
    names = known.beside(target)
    similar = nearest(target.name, sorted(names)) if len(names) <= _MOST_COMPARED else ""
    hint = "ignore this if something else deploys it"
    hint = f"{similar} If not, {hint}" if similar else hint
    return _finding(codes.NOT_IN_REPOSITORY, document, path, message, hint)


def _finding(code: Code, document: ReadDocument, path: tuple[str | int, ...], message: str, hint: str) -> Finding:
    position = document.document.position_of(path)
    return code.finding(message, position, document.ref, path_text(path), hint)


_REQUEST_FIELDS = ("podSets", "provisioningClassName", "parameters")
_NEW_NAME = "a request runs once: give the changed one a new name"


@dataclass(frozen=True, slots=True)
class RefusedChange:
    """One field that must not change. path: the field. hint: what to do instead."""

    path: str
    message: str
    hint: str


def refused_changes(old: Manifest, new: Manifest) -> tuple[RefusedChange, ...]:
    """The changes that will be refused, from `old` in the cluster to `new` as declared."""
    match new.get("kind"):
        case "ProvisioningRequest":
            return _refused_of_request(mapping_at(old, "spec"), mapping_at(new, "spec"))
        case "NodePool":
            return _refused_of_pool(mapping_at(old, "spec"), mapping_at(new, "spec"))
        case _:
            return ()


def _refused_of_request(old: Manifest, new: Manifest) -> tuple[RefusedChange, ...]:
    return tuple(
        RefusedChange(
            path_text(("spec", field, *_edited(old[field], new[field]))), f"spec.{field} cannot be changed", _NEW_NAME
        )
        for field in _REQUEST_FIELDS
        if field in old and field in new and old[field] != new[field]
    )


def _edited(old: Any, new: Any) -> Path:
    """The path to the only difference; where several parts differ, the path to the closest common parent."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        keys: Sequence[str | int] = [key for key in new if old.get(key) != new[key]]
        alone = len(keys) == 1 and old.keys() <= new.keys()
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        keys = [index for index, (left, right) in enumerate(zip(old, new, strict=True)) if left != right]
        alone = len(keys) == 1
    else:
        return ()
    if not alone:
        return ()
    before = old.get(keys[0]) if isinstance(old, Mapping) else old[keys[0]]
    return (keys[0], *_edited(before, new[keys[0]]))


def _refused_of_pool(old: Manifest, new: Manifest) -> tuple[RefusedChange, ...]:
    refused: list[RefusedChange] = []
    partial = "template" not in new  # a partial document omits what it does not change
    if ("replicas" in new) != ("replicas" in old) and not (partial and "replicas" not in new):
        direction = "static" if "replicas" in new else "dynamic"
        message = f"a NodePool cannot become {direction}: spec.replicas can be neither added nor removed"
        hint = "declare a second NodePool and remove the first one when it is empty"
        refused.append(RefusedChange("spec.replicas", message, hint))
    path, hint = "spec.template.spec.nodeClassRef", "declare a second NodePool with the other node class"
    before, after = (mapping_at(spec, "template", "spec", "nodeClassRef") for spec in (old, new))
    refused += [
        RefusedChange(f"{path}.{field}", f"nodeClassRef.{field} cannot be changed", hint)
        for field in ("group", "kind")
        if field in before and field in after and before[field] != after[field]
    ]
    return tuple(refused)


def refused(item: DeclaredManifest, old: Manifest, new: Manifest) -> tuple[Finding, ...]:
    """A finding for each change that the API server would refuse."""
    return tuple(
        codes.IMMUTABLE_FIELD.finding(change.message, item.position_of(change.path), item.ref, change.path, change.hint)
        for change in refused_changes(old, new)
    )


def refused_of_live(item: DeclaredManifest, live: LiveObject, form: Manifest) -> tuple[Finding, ...]:
    """The same for an object in the cluster, without spec.replicas, of which the plan tells. form: the manifest as it is applied."""
    return tuple(finding for finding in refused(item, live.body, form) if finding.path != "spec.replicas")

"""The embedded cluster's workload controllers: replicas become pods, DaemonSets a pod on each node. Driven by World.

Rollouts are not simulated: pods keep the template they were made from. Jobs never finish.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Mapping
from typing import Any

import msgspec

from reconciler.cluster.decoding.decode import workload_in
from reconciler.cluster.embedded.store import Body, owner_reference, resource_of
from reconciler.cluster.embedded.world import World
from reconciler.cluster.resources import group_of
from reconciler.manifests.kind import labels_of
from reconciler.model.errors import Invalid
from reconciler.model.nodes import Node
from reconciler.model.pods import PodShape
from reconciler.model.quantity import whole_number
from reconciler.model.refs import ObjectRef
from reconciler.model.requirements import LabelSelector
from reconciler.placement.constraints.node_rules import tolerated

MANAGER = "kube-controller-manager"
_REPLICATED = {
    ("apps", "Deployment"): "ReplicaSet",
    ("apps", "ReplicaSet"): "ReplicaSet",
    ("apps", "StatefulSet"): "StatefulSet",
    ("", "ReplicationController"): "ReplicationController",
    ("batch", "Job"): "Job",
}
"""By kind, the kind that its pods name as their owner."""
_DAEMON_SET = ("apps", "DaemonSet")
_POD = ("", "Pod")
_UIDS = uuid.UUID("6f1c2d3e-0000-4000-8000-000000000001")


class Workloads:
    def __init__(self, world: World) -> None:
        self._world = world
        self._dirty: set[ObjectRef] = set()
        self._daemons_dirty = False
        self._workloads: dict[str, dict[ObjectRef, tuple[LabelSelector, int]]] = {}
        self._pods: dict[str, set[ObjectRef]] = {}
        self._made = 0

    def notice(self, ref: ObjectRef, before: Body | None, after: Body | None) -> None:
        kind = (ref.group, ref.kind)
        if kind in _REPLICATED or kind in self._world.store.scaled:
            self._dirty.add(ref)
            asked = None if after is None else self._asked(ref, after)
            if asked is None:
                self._workloads.get(ref.namespace, {}).pop(ref, None)
            else:
                self._workloads.setdefault(ref.namespace, {})[ref] = asked
        elif kind == _POD and (before is None or after is None):
            pods = self._pods.setdefault(ref.namespace, set())
            if after is None:
                pods.discard(ref)
            else:
                pods.add(ref)
            labels = _labels(after or before or {})
            workloads = self._workloads.get(ref.namespace, {})
            self._dirty.update(workload for workload, (selector, _) in workloads.items() if selector.matches(labels))
        elif kind == _DAEMON_SET or (kind == ("", "Node") and (before is None or after is None)):
            self._daemons_dirty = True

    def reconcile(self) -> None:
        dirty, self._dirty = sorted(self._dirty), set()
        for ref in dirty:
            body = self._world.store.get(ref)
            if body is None:
                self._collect(ref)
            elif not self._belongs_to_another(ref, body):
                self._scale(ref, body)
        if self._daemons_dirty:
            self._daemons_dirty = False
            self._run_daemons()

    def _collect(self, ref: ObjectRef) -> None:
        """Removes the pods of a workload that is gone, as Kubernetes' garbage collector does."""
        for pod_ref in sorted(self._pods.get(ref.namespace, ())):
            pod = self._world.store.get(pod_ref)
            if pod is not None and pod["metadata"].get("ownerReferences") and self._is_owned(ref, pod):
                self._world.store.remove(pod_ref)

    def _belongs_to_another(self, ref: ObjectRef, body: Body) -> bool:
        """Whether it is a Deployment's or Rollout's ReplicaSet from a snapshot, whose pods its owner keeps."""
        return ref.kind == "ReplicaSet" and any(
            self._world.store.get(owner) is not None for owner in _owners(ref.namespace, body)
        )

    def _asked(self, ref: ObjectRef, body: Body) -> tuple[LabelSelector, int] | None:
        """Which pods are the workload's, and how many there are to be; None where it does not say whose they are."""
        try:
            workload = workload_in(resource_of(ref, self._world.store.scaled), body)
        except (Invalid, msgspec.MsgspecError):
            return None  # a gap in the view says why
        if workload is None:
            return None
        labels = labels_of(_template(body), "metadata", "labels")
        selector = workload.selector or (LabelSelector(labels) if labels else None)  # the API server's default
        return None if selector is None else (selector, 1 if workload.replicas is None else workload.replicas)

    def _scale(self, ref: ObjectRef, body: Body) -> None:
        """Creates missing pods, or removes surplus ones: pending pods first, then the newest."""
        asked = self._workloads.get(ref.namespace, {}).get(ref)
        if asked is None:
            return
        selector, wanted = asked
        pods = [
            (found_ref, found)
            for found_ref in sorted(self._pods.get(ref.namespace, ()))
            if (found := self._world.store.get(found_ref)) is not None
            and selector.matches(_labels(found))
            and self._is_owned(ref, found)
        ]
        if not pods and not _template(body) and (ref.group, ref.kind) not in _REPLICATED:
            return  # nothing shows what its pods look like
        surplus = sorted(pods, key=lambda item: _last_in(ref, *item))[wanted:]
        for surplus_pod, _ in surplus:
            self._world.store.remove(surplus_pod)
        pod = self._pod(ref, body, selector, pods)
        for _ in range(wanted - len(pods)):
            self._world.store.create(self._free_name(ref, body), pod, MANAGER)
        if ref.kind != "Job":
            self._world.store.change(ref, lambda copy: _set_replicas(copy, wanted), MANAGER)

    def _free_name(self, ref: ObjectRef, body: Body) -> ObjectRef:
        """A free name. A StatefulSet's pods are numbered; others get a suffix that was not used before."""
        stem = ref.name if ref.kind == "StatefulSet" else f"{ref.name}-{_hash(_template(body))[:8]}"
        number = 0
        while True:
            if ref.kind == "StatefulSet":
                ending = str(number)
                number += 1
            else:
                self._made += 1
                ending = _hash([ref.name, self._made])[:5]
            name = ObjectRef("", "Pod", ref.namespace, f"{stem}-{ending}")
            if self._world.store.get(name) is None:
                return name

    def _pod(
        self, ref: ObjectRef, body: Body, selector: LabelSelector, siblings: list[tuple[ObjectRef, Body]]
    ) -> dict[str, Any]:
        template = _template(body) or _like_newest(siblings)
        metadata = template.get("metadata") or {}
        labels = {**dict(selector.match_labels), **(metadata.get("labels") or {})}
        owner = next(
            (owner for _, pod in siblings for owner in pod["metadata"].get("ownerReferences") or ()),
            _owner(ref, body, template),
        )
        made: dict[str, Any] = {"labels": labels, "ownerReferences": [owner]}
        if metadata.get("annotations"):
            made["annotations"] = metadata["annotations"]
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": made,
            "spec": {**(template.get("spec") or {}), **self._priority(template)},
            "status": {"phase": "Pending"},
        }

    def _priority(self, template: Body) -> dict[str, int]:
        """The priority that admission sets from the priority class."""
        name = (template.get("spec") or {}).get("priorityClassName")
        for ref, body in self._world.store.all("scheduling.k8s.io", "PriorityClass"):
            if ref.name == name or (not name and body.get("globalDefault")):
                return {"priority": body["value"]}
        return {}

    def _is_owned(self, workload: ObjectRef, pod: Body) -> bool:
        """Whether the pod is the workload's own, or one without an owner, which the first workload to select it adopts."""
        owner = next((owner for owner in pod["metadata"].get("ownerReferences") or () if owner.get("controller")), None)
        if owner is None:
            return True
        name = str(owner.get("name", ""))
        if (owner.get("kind"), name) == (workload.kind, workload.name):
            return True
        if owner.get("kind") != "ReplicaSet":
            return False
        if workload.kind == "Deployment":
            return name.rpartition("-")[0] == workload.name
        owned = self._world.store.get(ObjectRef("apps", "ReplicaSet", workload.namespace, name))
        return owned is not None and workload in _owners(workload.namespace, owned)

    def _run_daemons(self) -> None:
        running = {
            (pod.namespace, pod.owner_name, pod.node_name)
            for pod in self._world.views.view().pods
            if pod.owner_kind == "DaemonSet"
        }
        for daemon_set in self._world.views.view().daemon_sets:
            ref = ObjectRef(*_DAEMON_SET, daemon_set.namespace, daemon_set.name)
            body, shape = self._world.store.get(ref), daemon_set.pod_shape
            for node in self._world.views.view().nodes:
                if (ref.namespace, ref.name, node.name) in running or not _runs_on(shape, node):
                    continue
                assert body is not None
                pod = self._pod(ref, body, LabelSelector(), [])
                pod["spec"] = {**pod["spec"], "nodeName": node.name}
                pod["status"] = {"phase": "Running"}
                name = f"{ref.name}-{_hash([ref.name, node.uid])[:5]}"
                self._world.store.create(ObjectRef("", "Pod", ref.namespace, name), pod, MANAGER)


def _runs_on(shape: PodShape, node: Node) -> bool:
    return shape.selects(dict(node.labels), node.name) and tolerated(node.taints, shape.tolerations)


def _template(body: Body) -> Body:
    template: Body = (body.get("spec") or {}).get("template") or {}
    return template


def _like_newest(siblings: list[tuple[ObjectRef, Body]]) -> Body:
    """A template from the newest of a workload's pods, for a workload without one."""
    if not siblings:
        return {}
    _, newest = max(siblings, key=lambda item: (str(item[1]["metadata"].get("creationTimestamp", "")), item[0].name))
    spec = {key: value for key, value in (newest.get("spec") or {}).items() if key != "nodeName"}
    metadata = {key: newest["metadata"][key] for key in ("labels", "annotations") if key in newest["metadata"]}
    return {"metadata": metadata, "spec": spec}


def _owners(namespace: str, body: Body) -> list[ObjectRef]:
    return [
        ObjectRef(
            group_of(owner.get("apiVersion") or "apps/v1"), owner.get("kind", ""), namespace, owner.get("name", "")
        )
        for owner in body["metadata"].get("ownerReferences") or ()
    ]


def _set_replicas(body: dict[str, Any], replicas: int) -> None:
    body["status"] = {**(body.get("status") or {}), "replicas": replicas}


def _owner(ref: ObjectRef, body: Body, template: Body) -> dict[str, Any]:
    """The owner reference of a pod. A Deployment's pods belong to a ReplicaSet, which is only a name here."""
    if ref.kind != "Deployment":
        return owner_reference(body["apiVersion"], ref.kind, ref.name, body["metadata"]["uid"], controller=True)
    name = f"{ref.name}-{_hash(template)[:8]}"
    uid = str(uuid.uuid5(_UIDS, f"{body['metadata']['uid']} {name}"))
    return owner_reference("apps/v1", "ReplicaSet", name, uid, controller=True)


def _labels(body: Body) -> Mapping[str, str]:
    labels: Mapping[str, str] = (body.get("metadata") or {}).get("labels") or {}
    return labels


def _last_in(workload: ObjectRef, pod: ObjectRef, body: Body) -> tuple[int, bool, str, str]:
    """The order of keeping pods: running ones first, then the oldest; a StatefulSet's by number."""
    number = pod.name.rpartition("-")[2]
    return (
        whole_number(number) or 0 if workload.kind == "StatefulSet" else 0,
        not (body.get("spec") or {}).get("nodeName"),
        str(body["metadata"].get("creationTimestamp", "")),
        pod.name,
    )


def _hash(value: Any) -> str:
    return hashlib.sha256(repr(value).encode()).hexdigest()

"""Turns a pod shape back into a PodSpec, with what scheduling looks at and nothing else.

Volumes are left out: they belong to one pod, and a pod that stands for others has none.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from typing import Any

from reconciler.model.pods import (
    DEFAULT_SCHEDULER,
    HostPort,
    PodAffinityTerm,
    PodShape,
    WeightedPodAffinityTerm,
)
from reconciler.model.quantity import PODS
from reconciler.model.requirements import Operator

Json = dict[str, Any]
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"

_SPELT = {"selector": "labelSelector", "expressions": "matchExpressions", "fields": "matchFields"}
"""Fields whose names in the API are others."""
_DEFAULTS = {("nodeAffinityPolicy", "Honor"), ("nodeTaintsPolicy", "Ignore")}


def pod_spec_of(shape: PodShape, container: str = "chunk") -> Json:
    """The PodSpec as JSON values, without absent fields. container: the name of its one container, which has all requests."""
    requests = {name: text for name, text in shape.requests.quantities().items() if name != PODS}
    only: Json = {"name": container, "resources": {"requests": requests}}
    if shape.host_ports:
        only["ports"] = [_port(port) for port in shape.host_ports]
    spec: Json = {
        "containers": [only],
        "nodeSelector": dict(shape.node_selector),
        "affinity": _affinity(shape),
        "tolerations": _documents(shape.tolerations),
        "topologySpreadConstraints": _documents(shape.topology_spread),
        "priorityClassName": shape.priority_class_name,
        "runtimeClassName": shape.runtime_class,
        "schedulerName": "" if shape.scheduler_name == DEFAULT_SCHEDULER else shape.scheduler_name,
    }
    return _present(spec)


def _present(document: Json) -> Json:
    return {name: value for name, value in document.items() if value not in ("", None, {}, [])}


def _port(port: HostPort) -> Json:
    address = {} if port.address == HostPort(0).address else {"hostIP": port.address}
    return {"containerPort": port.port, "hostPort": port.port, "protocol": port.protocol, **address}


def _affinity(shape: PodShape) -> Json:
    terms = _documents(shape.required_node_terms)
    preferred = [{"weight": item.weight, "preference": _document(item.term)} for item in shape.preferred_node_terms]
    node = _present({_REQUIRED: _present({"nodeSelectorTerms": terms}), _PREFERRED: preferred})
    near = _pod_affinity(shape.pod_affinity, shape.preferred_pod_affinity)
    away = _pod_affinity(shape.pod_anti_affinity, shape.preferred_pod_anti_affinity)
    return _present({"nodeAffinity": node, "podAffinity": near, "podAntiAffinity": away})


def _pod_affinity(required: Iterable[PodAffinityTerm], preferred: Iterable[WeightedPodAffinityTerm]) -> Json:
    weighted = [{"weight": item.weight, "podAffinityTerm": _document(item.term)} for item in preferred]
    return _present({_REQUIRED: _documents(required), _PREFERRED: weighted})


def _documents(parts: Iterable[Any]) -> list[Json]:
    return [_document(part) for part in parts]


def _document(part: Any) -> Json:
    """A part of a shape under its fields' names in the API. An empty selector is written, since it matches everything and an absent one
    nothing."""
    document: Json = {}
    for each in fields(part):
        value = getattr(part, each.name)
        name = _SPELT.get(each.name, _camel(each.name))
        if value in ("", None, ()) or (name, value) in _DEFAULTS:
            continue
        if is_dataclass(value):
            document[name] = _document(value)
        elif name == "matchLabels":
            document[name] = dict(value)
        elif isinstance(value, tuple):
            document[name] = [_document(item) if is_dataclass(item) else item for item in value]
        else:
            document[name] = value.value if isinstance(value, Operator) else value
    return document


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))

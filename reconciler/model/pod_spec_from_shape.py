"""Turns a pod shape back into a PodSpec, with what scheduling looks at and nothing else.

Volumes are left out: they belong to one pod, and a pod that stands for others has none.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from reconciler.model.pods import (
    DEFAULT_SCHEDULER,
    HostPort,
    NodeSelectorTerm,
    PodAffinityTerm,
    PodShape,
    TopologySpread,
    WeightedPodAffinityTerm,
)
from reconciler.model.quantity import PODS
from reconciler.model.requirements import LabelSelector, Requirement

Json = dict[str, Any]
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


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
        "tolerations": [
            _present({"key": item.key, "operator": item.operator, "value": item.value, "effect": item.effect})
            for item in shape.tolerations
        ],
        "topologySpreadConstraints": [_spread(item) for item in shape.topology_spread],
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
    node = _present(
        {
            _REQUIRED: _present({"nodeSelectorTerms": [_node_term(term) for term in shape.required_node_terms]}),
            _PREFERRED: [
                {"weight": item.weight, "preference": _node_term(item.term)} for item in shape.preferred_node_terms
            ],
        }
    )
    near = _pod_affinity(shape.pod_affinity, shape.preferred_pod_affinity)
    away = _pod_affinity(shape.pod_anti_affinity, shape.preferred_pod_anti_affinity)
    return _present({"nodeAffinity": node, "podAffinity": near, "podAntiAffinity": away})


def _pod_affinity(required: Iterable[PodAffinityTerm], preferred: Iterable[WeightedPodAffinityTerm]) -> Json:
    return _present(
        {
            _REQUIRED: [_affinity_term(term) for term in required],
            _PREFERRED: [{"weight": item.weight, "podAffinityTerm": _affinity_term(item.term)} for item in preferred],
        }
    )


def _affinity_term(term: PodAffinityTerm) -> Json:
    """The term as JSON. An empty selector is written, since it matches everything and an absent one nothing."""
    document = _present(
        {
            "topologyKey": term.topology_key,
            "namespaces": list(term.namespaces),
            "matchLabelKeys": list(term.match_label_keys),
            "mismatchLabelKeys": list(term.mismatch_label_keys),
        }
    )
    return document | _selectors(labelSelector=term.selector, namespaceSelector=term.namespace_selector)


def _spread(item: TopologySpread) -> Json:
    document = _present(
        {
            "topologyKey": item.topology_key,
            "maxSkew": item.max_skew,
            "whenUnsatisfiable": item.when_unsatisfiable,
            "minDomains": item.min_domains,
            "nodeAffinityPolicy": "" if item.node_affinity_policy == "Honor" else item.node_affinity_policy,
            "nodeTaintsPolicy": "" if item.node_taints_policy == "Ignore" else item.node_taints_policy,
            "matchLabelKeys": list(item.match_label_keys),
        }
    )
    return document | _selectors(labelSelector=item.selector)


def _selectors(**selectors: LabelSelector | None) -> Json:
    return {name: _selector(selector) for name, selector in selectors.items() if selector is not None}


def _selector(selector: LabelSelector) -> Json:
    return _present(
        {
            "matchLabels": dict(selector.match_labels),
            "matchExpressions": [_requirement(item) for item in selector.expressions],
        }
    )


def _node_term(term: NodeSelectorTerm) -> Json:
    return _present(
        {
            "matchExpressions": [_requirement(item) for item in term.expressions],
            "matchFields": [_requirement(item) for item in term.fields],
        }
    )


def _requirement(item: Requirement) -> Json:
    return _present({"key": item.key, "operator": item.operator.value, "values": list(item.values)})

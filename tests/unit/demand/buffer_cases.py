"""Reads tests/cases/buffers_*.yaml into the model: cases of how Karpenter and Cluster Autoscaler read buffers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from reconciler.demand.buffers import buffer_demands
from reconciler.manifests.pods.pod_shape import pod_spec_from, shape_of
from reconciler.model.buffers import ACTIVE_CAPACITY, Buffer, Dialect
from reconciler.model.declared import Declared
from reconciler.model.demand import Demand
from reconciler.model.findings import Finding
from reconciler.model.pods import PodShape, ResourceQuota, Workload
from reconciler.model.quantity import Resources, amount_of
from reconciler.model.refs import ObjectRef
from reconciler.model.requirements import LabelSelector, Operator, Requirement
from reconciler.model.view import ClusterView
from tests.builders import buffer_ref

CASES = Path(__file__).resolve().parents[2] / "cases"
NAMESPACE = "default"
GROUPS = {"Deployment": "apps", "ReplicaSet": "apps", "StatefulSet": "apps", "Job": "batch"}

Case = Mapping[str, Any]


def cases(file: str, *kinds: str) -> list[Case]:
    documents: list[Case] = yaml.load((CASES / file).read_text(), Loader=yaml.CSafeLoader)
    return [case for case in documents if case["kind"] in kinds]


def pod_shape(spec: Mapping[str, Any]) -> PodShape:
    """From the cases' reduced pod spec, whose containers have requests and limits directly."""
    written = dict(spec)
    for key in ("containers", "initContainers"):
        if key in spec:
            written[key] = [_container(container) for container in spec[key]]
    return shape_of(pod_spec_from(written), namespace=NAMESPACE, labels={})


def _container(reduced: Mapping[str, Any]) -> dict[str, Any]:
    rest = {key: value for key, value in reduced.items() if key not in {"requests", "limits"}}
    return rest | {"name": "main", "resources": {key: reduced[key] for key in ("requests", "limits") if key in reduced}}


def workload(document: Mapping[str, Any]) -> Workload:
    kind = document["kind"]
    if kind == "Scale":
        of = document["of"]
        key, _, value = document["selector"].partition("=")
        return Workload(
            ObjectRef(of["apiGroup"], of["kind"], NAMESPACE, of["name"]),
            shape=None,
            observed_replicas=document["statusReplicas"],
            selector=LabelSelector(((key, value),)),
        )
    ref = ObjectRef(GROUPS.get(kind, ""), kind, NAMESPACE, document["name"])
    return Workload(ref, pod_shape(document["podSpec"]), document.get("replicas"))


def limits(quantities: Mapping[str, Any] | None) -> tuple[tuple[str, int], ...] | None:
    if quantities is None:
        return None
    return tuple(sorted((name, amount_of(name, value)) for name, value in quantities.items()))


def buffer(spec: Mapping[str, Any], name: str = "b") -> Buffer:
    scalable, template = spec.get("scalableRef"), spec.get("podTemplateRef")
    target = None
    if scalable is not None:
        target = ObjectRef(scalable.get("apiGroup", ""), scalable["kind"], NAMESPACE, scalable["name"])
    return Buffer(
        buffer_ref(name, NAMESPACE),
        strategy=spec.get("provisioningStrategy") or ACTIVE_CAPACITY,
        target=target,
        pod_template=None if template is None else template["name"],
        replicas=spec.get("replicas"),
        percentage=spec.get("percentage"),
        limits=limits(spec.get("limits")),
    )


def quota(document: Mapping[str, Any]) -> ResourceQuota:
    """As a cluster adapter decodes it: `requests.cpu` is cpu, what is no request of pods is left out."""
    scopes = [Requirement(scope, Operator.EXISTS) for scope in document.get("scopes", ())]
    scopes += [
        Requirement(item["scopeName"], Operator(item["operator"]), tuple(item.get("values", ())))
        for item in document.get("scopeSelector", ())
    ]
    return ResourceQuota(
        NAMESPACE,
        document.get("name", "q"),
        tuple(_requests(document.get("hard", {}))),
        Resources.of(dict(_requests(document.get("used", {})))),
        tuple(scopes),
    )


def _requests(quantities: Mapping[str, Any]) -> list[tuple[str, int]]:
    plain = [(name.removeprefix("requests."), value) for name, value in sorted(quantities.items())]
    return [
        (name, amount_of(name, value)) for name, value in plain if not name.startswith(("limits.", "count/", "pods"))
    ]


def resolved(case: Case, dialect: Dialect) -> tuple[Demand, tuple[Finding, ...]]:
    """What becomes of the one buffer of a `resolve` case."""
    given = case["input"]
    declared = Declared(
        buffers=(buffer(given["buffer"]),), workloads=tuple(workload(document) for document in given["objects"])
    )
    demands, findings = buffer_demands(declared, ClusterView(), dialect=dialect)
    (only,) = demands
    return only, findings


def with_quotas(case: Case) -> list[Demand]:
    """The demands of a `quota` case, whose buffers are listed oldest first."""
    given = case["input"]
    buffers = tuple(
        replace(
            buffer({"podTemplateRef": {"name": item["podTemplate"]}, "replicas": item["replicas"]}, f"b{index}"),
            created=f"2026-01-{index + 1:02}T00:00:00Z",
        )
        for index, item in enumerate(given["buffers"])
    )
    templates = tuple(
        workload({"kind": "PodTemplate", "name": item["name"], "podSpec": _whole_spec(item)})
        for item in given["podTemplates"]
    )
    view = ClusterView(resource_quotas=tuple(quota(item) for item in given["quotas"]))
    return list(
        buffer_demands(Declared(buffers=buffers, workloads=templates), view, dialect=Dialect.CLUSTER_AUTOSCALER)[0]
    )


def _whole_spec(template: Mapping[str, Any]) -> dict[str, Any]:
    extra = {key: value for key, value in template.items() if key not in {"name", "podSpec"}}
    return dict(template["podSpec"]) | extra

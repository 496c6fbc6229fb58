"""Reads tests/cases/placement.yaml into the model: what Karpenter's own scheduler decided for given pools, types and pods."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from reconciler.manifests.node_pool import requirements_of
from reconciler.manifests.pods.pod_shape import pod_spec_from, shape_of
from reconciler.model.demand import ChunkGroup, Demand
from reconciler.model.nodes import (
    ARCHITECTURE_LABEL,
    CAPACITY_TYPE_LABEL,
    HOSTNAME_LABEL,
    INITIALIZED_LABEL,
    INSTANCE_TYPE_LABEL,
    NODEPOOL_LABEL,
    REGISTERED_LABEL,
    ZONE_LABEL,
    InstanceType,
    Node,
    NodeClaimTemplate,
    NodePool,
    Offering,
)
from reconciler.model.pods import DaemonSet, Pod, PodShape
from reconciler.model.quantity import Resources
from reconciler.model.refs import ObjectRef
from reconciler.model.requirements import Taint
from reconciler.model.view import ClusterView
from tests.builders import one_of

CASES = Path(__file__).resolve().parents[2] / "cases"
NAMESPACE = "default"
OVERHEAD = Resources.parse({"cpu": "100m", "memory": "10Mi"})


@dataclass(frozen=True)
class Case:
    name: str
    quirk: str
    view: ClusterView
    node_pools: tuple[NodePool, ...]
    instance_types: tuple[InstanceType, ...]
    demands: tuple[Demand, ...]
    expected: Mapping[str, Any]


@cache
def cases() -> tuple[Case, ...]:
    catalogs = _load("placement_catalogs.yaml")
    return tuple(_case(case, catalogs) for case in _load("placement.yaml"))


def _load(name: str) -> Any:
    return yaml.load((CASES / name).read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)


def _case(case: Mapping[str, Any], catalogs: Mapping[str, Any]) -> Case:
    given = case["input"]
    types = given["instanceTypes"]
    nodes = [_node(node) for node in given.get("existingNodes", ())]
    pods = [pod for node in given.get("existingNodes", ()) for pod in _bound_pods(node)]
    demands = [
        Demand(ObjectRef("", "Pod", NAMESPACE, f"{group['name']}-{number:05}"), (ChunkGroup(shape, 1),), 1)
        for group in given["pods"]
        for shape in [_shape(group)]
        for number in range(group["count"])
    ]
    daemon_sets = [DaemonSet(NAMESPACE, item["name"], _shape(item)) for item in given.get("daemonSets", ())]
    return Case(
        name=case["name"],
        quirk=case.get("quirk", ""),
        view=ClusterView(nodes=tuple(nodes), pods=tuple(pods), daemon_sets=tuple(daemon_sets)),
        node_pools=tuple(_pool(pool) for pool in given["nodePools"]),
        instance_types=tuple(_type(kind) for kind in (catalogs[types] if isinstance(types, str) else types)),
        demands=tuple(demands),
        expected=case["expect"],
    )


def _pool(pool: Mapping[str, Any]) -> NodePool:
    limits = pool.get("limits")
    return NodePool(
        name=pool["name"],
        template=NodeClaimTemplate(
            labels=tuple(sorted(pool.get("labels", {}).items())),
            requirements=requirements_of(pool["requirements"]),
            taints=_taints(pool),
        ),
        weight=pool.get("weight", 0),
        # A limit of 0 is a limit, so that the zero has to stay in.
        limits=None if limits is None else tuple((name, Resources.parse(limits).get(name)) for name in sorted(limits)),
        replicas=pool.get("replicas"),
        unready="no node class" if pool.get("notReady") else "",
    )


def _taints(thing: Mapping[str, Any]) -> tuple[Taint, ...]:
    return tuple(Taint(taint["key"], taint.get("value", ""), taint["effect"]) for taint in thing.get("taints", ()))


def _type(kind: Mapping[str, Any]) -> InstanceType:
    return InstanceType(
        name=kind["name"],
        architecture=kind["arch"],
        operating_systems=tuple(kind["os"]),
        capacity=Resources.parse(kind["capacity"]),
        overhead=OVERHEAD,
        offerings=tuple(
            Offering(
                zone,
                offering["capacityType"],
                float(offering["price"]),
                offering.get("available", True),
                (
                    one_of(CAPACITY_TYPE_LABEL, offering["capacityType"]),
                    one_of(ZONE_LABEL, zone),
                ),
            )
            for offering in kind["offerings"]
            for zone in offering["zones"]
        ),
        labels=tuple(
            sorted(
                {
                    **{key: str(value) for key, value in kind.get("labels", {}).items()},
                    INSTANCE_TYPE_LABEL: kind["name"],
                    ARCHITECTURE_LABEL: kind["arch"],
                }.items()
            )
        ),
    )


def _node(node: Mapping[str, Any]) -> Node:
    labels = {HOSTNAME_LABEL: node["name"], **node.get("labels", {})}
    if "nodePool" in node:
        labels |= {NODEPOOL_LABEL: node["nodePool"], REGISTERED_LABEL: "true"}
        if node.get("initialized", True):
            labels[INITIALIZED_LABEL] = "true"
    allocatable = Resources.parse(node["allocatable"])
    return Node(
        name=node["name"],
        allocatable=allocatable,
        capacity=Resources.parse(node["capacity"]) if "capacity" in node else allocatable,
        labels=tuple(sorted(labels.items())),
        taints=_taints(node),
        deleting=node.get("deleting", False),
    )


def _bound_pods(node: Mapping[str, Any]) -> list[Pod]:
    return [
        Pod(NAMESPACE, f"{group['name']}-{number}", _shape(group), node["name"], phase="Running")
        for group in node.get("pods", ())
        for number in range(group["count"])
    ]


def _shape(group: Mapping[str, Any]) -> PodShape:
    spec = {
        "containers": [_container("main", group)],
        "initContainers": [
            _container(f"init-{number}", item) for number, item in enumerate(group.get("initContainers", ()))
        ],
        **{
            key: group[key]
            for key in ("affinity", "nodeSelector", "tolerations", "topologySpreadConstraints")
            if key in group
        },
    }
    return shape_of(pod_spec_from(spec), namespace=NAMESPACE, labels=group.get("labels", {}))


def _container(name: str, item: Mapping[str, Any]) -> dict[str, Any]:
    resources = {key: item[key] for key in ("requests", "limits") if key in item}
    extra = {"restartPolicy": item["restartPolicy"]} if "restartPolicy" in item else {}
    return {"name": name, "resources": resources, **extra}

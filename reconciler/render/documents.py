"""Planned objects as text, and the values that templates get: plain values, so that a template cannot reach code.

docs/templates.md describes each value.
"""

from __future__ import annotations

from typing import Any

from reconciler.model.changes import NodeClaimCreation, ObjectChange
from reconciler.model.nodes import (
    CAPACITY_TYPE_LABEL,
    DO_NOT_DISRUPT,
    HELD_ANNOTATION,
    HOLDS_ANNOTATION,
    INSTANCE_TYPE_LABEL,
    NODEPOOL_HASH,
    NODEPOOL_HASH_VERSION,
    NODEPOOL_LABEL,
    PLACEHOLDER_LABEL,
    ZONE_LABEL,
    NodePool,
)
from reconciler.model.placement import words_of_holdings
from reconciler.model.quantity import format_duration
from reconciler.model.requirements import Operator, Requirement, Taint
from reconciler.render.templates import DocumentTemplates


def node_claim_context(creation: NodeClaimCreation, pool: NodePool) -> dict[str, Any]:
    """For `nodeclaim.yaml.j2`. Labels, annotations and requirements are complete: those that Karpenter would copy from the pool's
    template, and headroom's own."""
    planned, template = creation.planned, pool.template
    node_class = template.node_class
    labels = dict(template.labels) | dict(planned.labels) | dict(creation.labels)
    labels |= {NODEPOOL_LABEL: pool.name, PLACEHOLDER_LABEL: "true"}
    if node_class is not None:
        labels[f"{node_class.group}/{node_class.kind.lower()}"] = node_class.name
    lives_for = min(filter(None, (template.expire_after, creation.lives_for)), default=None)
    annotations = dict(template.annotations)
    if pool.hash is not None:
        annotations[NODEPOOL_HASH] = pool.hash
    if pool.hash_version is not None:
        annotations[NODEPOOL_HASH_VERSION] = pool.hash_version
    annotations |= {
        DO_NOT_DISRUPT: "true",
        HELD_ANNOTATION: "true",
        HOLDS_ANNOTATION: words_of_holdings(planned.holdings),
    }
    return {
        "name": creation.name,
        "labels": dict(sorted(labels.items())),
        "annotations": dict(sorted(annotations.items())),
        "pool": {"name": pool.name, "uid": pool.uid},
        "node_class": None
        if node_class is None
        else {"group": node_class.group, "kind": node_class.kind, "name": node_class.name},
        "requirements": [_requirement(requirement) for requirement in _requirements(creation, pool)],
        "requests": planned.requests.quantities(),
        "taints": [_taint(taint) for taint in (*template.taints, *planned.taints)],
        "startup_taints": [_taint(taint) for taint in template.startup_taints],
        "expire_after": "Never" if lives_for is None else format_duration(lives_for),
        "termination_grace_period": None
        if template.termination_grace_period is None
        else format_duration(template.termination_grace_period),
        "holds": [{"demand": str(holding.demand), "count": holding.count} for holding in planned.holdings],
    }


def _requirements(creation: NodeClaimCreation, pool: NodePool) -> list[Requirement]:
    """The plan's requirements, with those that must always be there: pool, instance types, zones, capacity types."""
    planned = creation.planned
    pinned = {
        NODEPOOL_LABEL: (pool.name,),
        INSTANCE_TYPE_LABEL: planned.instance_types,
        ZONE_LABEL: planned.zones,
        CAPACITY_TYPE_LABEL: planned.capacity_types,
    }
    others = [requirement for requirement in planned.requirements if requirement.key not in pinned]
    kept = {requirement.key: requirement.min_values for requirement in planned.requirements}
    return [
        *others,
        *(Requirement(key, Operator.IN, values, kept.get(key)) for key, values in pinned.items() if values),
    ]


def _requirement(requirement: Requirement) -> dict[str, Any]:
    body: dict[str, Any] = {"key": requirement.key, "operator": str(requirement.operator)}
    if requirement.values:
        body["values"] = list(requirement.values)
    if requirement.min_values is not None:
        body["minValues"] = requirement.min_values
    return body


def _taint(taint: Taint) -> dict[str, str]:
    return {"key": taint.key, "effect": taint.effect} | ({"value": taint.value} if taint.value else {})


def balloon_context(change: ObjectChange) -> dict[str, Any]:
    """For `balloon.yaml.j2`: the parts of the Deployment. pod: its pod's spec except the container."""
    manifest: dict[str, Any] = dict(change.manifest or {})
    spec = manifest["spec"]
    pod = dict(spec["template"]["spec"])
    (container,) = pod.pop("containers")
    return {
        "metadata": manifest["metadata"],
        "replicas": spec["replicas"],
        "selector": spec["selector"],
        "labels": spec["template"]["metadata"]["labels"],
        "pod": pod,
        "container": {"ports": [], **container},
    }


def manifest_context(change: ObjectChange) -> dict[str, Any]:
    """For `nodepool.yaml.j2`: the declared manifest, and whether it creates or updates the object."""
    return {"manifest": change.manifest, "action": str(change.action)}


NODE_CLAIM_TEMPLATE = "nodeclaim.yaml.j2"
NODE_POOL_TEMPLATE = "nodepool.yaml.j2"
BALLOON_TEMPLATE = "balloon.yaml.j2"


def render_node_claim(templates: DocumentTemplates, creation: NodeClaimCreation, pool: NodePool) -> str:
    """One NodeClaim as YAML. Raises `Invalid` naming the template and the line."""
    return templates.render(NODE_CLAIM_TEMPLATE, node_claim_context(creation, pool))


def render_node_pool(templates: DocumentTemplates, change: ObjectChange) -> str:
    """One NodePool as YAML. Raises `Invalid` naming the template and the line."""
    return templates.render(NODE_POOL_TEMPLATE, manifest_context(change))


def render_balloon(templates: DocumentTemplates, change: ObjectChange) -> str:
    """One Deployment of balloon pods as YAML. Raises `Invalid` naming the template and the line."""
    return templates.render(BALLOON_TEMPLATE, balloon_context(change))

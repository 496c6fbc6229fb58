"""Turns a plan into writes. A document that cannot be rendered does not affect the others.

Templates get plain values, so that a template cannot reach code. docs/templates.md describes each value.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from reconciler.manifests.repository.reading import read_rendered
from reconciler.model.changes import (
    Action,
    Annotate,
    Apply,
    Delete,
    NodeClaimAction,
    NodeClaimCreation,
    ObjectChange,
    Outcome,
    Plan,
    Write,
    WriteResult,
)
from reconciler.model.demand import REQUEST_KIND
from reconciler.model.errors import Failure, Invalid
from reconciler.model.marks import CLAIM_ANNOTATION, MODE_ANNOTATION
from reconciler.model.nodes import (
    CAPACITY_TYPE_LABEL,
    DO_NOT_DISRUPT,
    HELD_ANNOTATION,
    HELD_TAINT,
    HOLDS_ANNOTATION,
    INSTANCE_TYPE_LABEL,
    NODEPOOL_HASH,
    NODEPOOL_HASH_VERSION,
    NODEPOOL_LABEL,
    PLACEHOLDER_LABEL,
    SCARCE_TAINTS,
    ZONE_LABEL,
    Node,
    NodeClaim,
    NodePool,
    hold_annotations,
    node_claim_ref,
    node_ref,
)
from reconciler.model.placement import words_of_holdings
from reconciler.model.provisioning_requests import reserved_taints
from reconciler.model.quantity import format_duration
from reconciler.model.refs import ObjectRef
from reconciler.model.requirements import Operator, Requirement, Taint
from reconciler.model.view import ClusterView, Manifest
from reconciler.render.allowed import check_node_claim, check_node_pool
from reconciler.render.templates import DocumentTemplates

NODE_CLAIM_TEMPLATE = "nodeclaim.yaml.j2"
NODE_POOL_TEMPLATE = "nodepool.yaml.j2"


@dataclass(frozen=True, slots=True)
class Rendered:
    """writes: in the plan's order. failures: what could not be rendered, or waits for something that does not exist yet."""

    writes: tuple[Write, ...] = ()
    failures: tuple[WriteResult, ...] = ()


def render_writes(
    plan: Plan,
    *,
    view: ClusterView,
    node_pools: Mapping[str, NodePool],
    templates: DocumentTemplates,
) -> Rendered:
    """Every write of the plan, in order: objects, new nodes, holds, releases, deletions."""
    writes: list[Write] = []
    failures: list[WriteResult] = []
    changing = {
        change.ref.name for change in plan.objects if change.ref.kind == "NodePool" and change.manifest is not None
    }
    for change in plan.objects:
        try:
            writes.append(_object_write(change, view, templates))
        except Invalid as error:
            failures.append(_failure(Apply(change.ref, change.manifest or {}, change.reason), error))
    for creation in plan.node_claims.create:
        ref = node_claim_ref(creation.name)
        pool = node_pools[creation.planned.node_pool]
        waiting = _waits_for(pool, changing) or _waits_for_request(creation, view)
        if waiting:
            failures.append(WriteResult(Apply(ref, {}, creation.reason), Outcome.SKIPPED, waiting))
            continue
        try:
            manifest = node_claim_document(templates, creation, pool)
        except Invalid as error:
            failures.append(_failure(Apply(ref, {}, creation.reason), error))
            continue
        writes.append(Apply(ref, manifest, creation.reason))
    nodes = {node.name: node for node in view.nodes}
    claims = {claim.name: claim for claim in view.node_claims}
    writes += _marks(plan.node_claims.hold, nodes, claims)
    writes += _marks(plan.node_claims.release, nodes, claims)
    writes += [
        Annotate(node_ref(action.node), (), action.reason, ((taint, False),))
        for action in plan.node_claims.untaint
        if action.node is not None and action.node in nodes
        for taint in reserved_taints(nodes[action.node].taints)
    ]
    writes += [
        Delete(node_claim_ref(action.node_claim), claims[action.node_claim].uid, action.reason)
        for action in plan.node_claims.delete
        if action.node_claim in claims
    ]
    return Rendered(tuple(writes), tuple(failures))


def _failure(write: Write, error: Invalid) -> WriteResult:
    return WriteResult(write, Outcome.REFUSED, error.with_hint)


def _waits_for(pool: NodePool, changing: set[str]) -> str:
    """Why a NodeClaim must wait; "" if it need not.

    It copies its pool's uid and hash, so Karpenter must have seen the pool's new state first. Otherwise the NodeClaim would count as
    drifted at once."""
    if pool.name in changing:
        return f"waits until NodePool {pool.name} is applied"
    if not pool.uid:
        return f"waits for NodePool {pool.name}, which is not in the cluster"
    if pool.hash is None:
        return f"waits until Karpenter has taken up NodePool {pool.name}"
    return ""


def _waits_for_request(creation: NodeClaimCreation, view: ClusterView) -> str:
    """Why a NodeClaim must wait for a request's object; "" if it need not. Without the object's uid, nothing would link the two."""
    missing = (
        holding.demand
        for holding in creation.planned.holdings
        if holding.demand.kind == REQUEST_KIND and holding.demand not in view.objects
    )
    request = next(missing, None)
    return "" if request is None else f"waits until {request} is applied"


def _object_write(change: ObjectChange, view: ClusterView, templates: DocumentTemplates) -> Write:
    if change.action is Action.DELETE:
        live = view.objects.get(change.ref)
        uid = "" if live is None else live.uid
        return Delete(change.ref, uid, change.reason)
    if change.manifest is None:
        return Annotate(change.ref, tuple((CLAIM_ANNOTATION, field.after) for field in change.changes), change.reason)
    manifest = change.manifest
    if change.ref.kind == "NodePool":
        manifest = node_pool_document(templates, change)
    annotations = manifest.get("metadata", {}).get("annotations") or {}
    return Apply(
        change.ref, manifest, change.reason, force=change.force or annotations.get(MODE_ANNOTATION) == "Override"
    )


def node_pool_document(templates: DocumentTemplates, change: ObjectChange) -> Manifest:
    """The NodePool from its template. Raises `Invalid`, also if the template wrote another object than the declared one."""
    declared = change.manifest or {}
    text = templates.render(NODE_POOL_TEMPLATE, {"manifest": declared, "action": str(change.action)})
    manifest = _read(change.ref, text, declared)
    check_node_pool(change.ref, declared, manifest)
    return manifest


def node_claim_document(templates: DocumentTemplates, creation: NodeClaimCreation, pool: NodePool) -> Manifest:
    """The NodeClaim from its template. Raises `Invalid`, also if the template wrote another node than the planned one."""
    ref, context = node_claim_ref(creation.name), node_claim_context(creation, pool)
    manifest = _read(ref, templates.render(NODE_CLAIM_TEMPLATE, context))
    check_node_claim(ref, context, manifest)
    return manifest


def _read(ref: ObjectRef, text: str, declared: Manifest | None = None) -> Manifest:
    """Reads a template's output, which may be anything. Whatever goes wrong is a failure of this document alone."""
    try:
        return read_rendered(str(ref), text, declared)
    except Failure:
        raise
    except Exception as error:
        raise Invalid(f"what the template for {ref} wrote cannot be read ({type(error).__name__}: {error})") from error


def _marks(
    actions: Iterable[NodeClaimAction], nodes: Mapping[str, Node], claims: Mapping[str, NodeClaim]
) -> Iterator[Write]:
    """Marks both the NodeClaim and its Node, since Karpenter copies annotations only once, at registration.

    What holds nothing loses its marks. Only a node's taints can change; a NodeClaim's cannot."""
    for action in actions:
        annotations = hold_annotations(words_of_holdings(action.holdings))
        if action.node_claim is not None and action.node_claim in claims:
            yield Annotate(node_claim_ref(action.node_claim), annotations, action.reason)
        if action.node is not None and action.node in nodes:
            scarce = ((taint, number < action.scarce) for number, taint in enumerate(SCARCE_TAINTS))
            taints = ((HELD_TAINT, action.closed), *scarce)
            yield Annotate(node_ref(action.node), annotations, action.reason, taints)


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

"""NodePool (karpenter.sh v1 and v1beta1), whole and partial: rules, reading, and old spellings.

Violations of Karpenter 1.14's NodePool CustomResourceDefinition are errors. Violations of its RuntimeValidate are warnings: the
pool is admitted but never becomes ready. Most rules of both stand in the schema.

Old spellings are turned into karpenter.sh/v1: fields of v1beta1, and of the examples in a Karpenter design ("Disruption Controls By
Reason"). Each correction is reported with what to write instead, and so is each field that v1 does not have.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from reconciler.manifests.budgets import DEFAULT_NODES, check_budgets
from reconciler.manifests.capacity_buffer import amounts_of
from reconciler.manifests.documents.document import Inspection, mapping_at
from reconciler.manifests.documents.load import schema_of, with_defaults
from reconciler.manifests.documents.structure import is_near
from reconciler.manifests.kind import Kind, Origin, conditions_of, labels_of
from reconciler.model import codes
from reconciler.model.conditions import ConditionStatus
from reconciler.model.declared import DeclaredManifest
from reconciler.model.errors import Invalid
from reconciler.model.nodes import (
    ARCHITECTURE_LABEL,
    INSTANCE_TYPE_LABEL,
    KARPENTER_GROUP,
    NODEPOOL_HASH,
    NODEPOOL_HASH_VERSION,
    OPERATING_SYSTEM_LABEL,
    REASON_OF,
    REGION_LABEL,
    ZONE_LABEL,
    DisruptionBudget,
    NodeClaimTemplate,
    NodeClassRef,
    NodePool,
)
from reconciler.model.quantity import parse_duration
from reconciler.model.refs import ObjectRef, Path
from reconciler.model.requirements import Operator, Requirement, Taint
from reconciler.model.view import LiveObject, Manifest

NEVER = "Never"
_KNOWN_LABELS = (
    ZONE_LABEL,
    REGION_LABEL,
    INSTANCE_TYPE_LABEL,
    ARCHITECTURE_LABEL,
    OPERATING_SYSTEM_LABEL,
)
_NODE_SPEC: tuple[str, ...] = ("spec", "template", "spec")


def is_partial(manifest: Manifest) -> bool:
    """Whether the document declares only some fields, of a pool that must already exist."""
    return "template" not in mapping_at(manifest, "spec")


def check(inspection: Inspection) -> None:
    requirements = mapping_at(inspection.body, *_NODE_SPEC).get("requirements", [])
    _check_least_values(inspection, requirements)
    _check_labels(inspection, requirements)
    budgets = inspection.get("spec", "disruption", "budgets")
    if budgets:
        check_budgets(inspection, budgets)


def _check_least_values(inspection: Inspection, requirements: Sequence[Mapping[str, Any]]) -> None:
    """Reports requirements that ask for more different values than they list."""
    for index, requirement in enumerate(requirements):
        values, least = requirement.get("values"), requirement.get("minValues", 0)
        if requirement["operator"] == Operator.IN and values and len(values) < least:
            inspection.report(
                codes.REQUIREMENT_VALUES,
                (*_NODE_SPEC, "requirements", index, "minValues"),
                f"{requirement['key']} asks for {least} different values and lists {len(values)}",
                hint=f"list more values, or write minValues: {len(values)}",
            )


def _check_labels(inspection: Inspection, requirements: Sequence[Mapping[str, Any]]) -> None:
    """Reports labels that nearly are ones that Karpenter knows. It takes them for the pool's own, which rule out no instance type."""
    for index, requirement in enumerate(requirements):
        key = requirement["key"]
        meant = next((name for name in _KNOWN_LABELS if is_near(key, name)), key)
        if meant != key:
            inspection.report(
                codes.MISSPELT_LABEL,
                (*_NODE_SPEC, "requirements", index, "key"),
                f"{key} is no label of instance types, so this requirement rules out none of them",
                hint=f'did you mean "{meant}"?',
            )


def requirements_of(requirements: Sequence[Mapping[str, Any]] | None) -> tuple[Requirement, ...]:
    """The typed requirements, in the order they are written in."""
    return tuple(
        Requirement(
            key=requirement["key"],
            operator=Operator(requirement["operator"]),
            values=tuple(requirement.get("values") or ()),
            min_values=requirement.get("minValues"),
        )
        for requirement in requirements or ()
    )


def read(ref: ObjectRef, manifest: Manifest, origin: Origin) -> NodePool | None:
    """The typed pool; None for a partial document, which has no meaning without the pool it changes. Raises `Invalid`."""
    if is_partial(manifest):
        return None
    spec = with_defaults(schema_of("node_pool")["properties"]["spec"], mapping_at(manifest, "spec"))
    disruption = mapping_at(spec, "disruption")
    metadata = mapping_at(manifest, "metadata")
    annotations = labels_of(manifest, "metadata", "annotations")
    return NodePool(
        name=ref.name,
        template=_template(spec["template"]),
        weight=spec.get("weight", 0),
        limits=amounts_of(spec.get("limits"), "spec.limits"),
        budgets=budgets_of(disruption["budgets"]),
        consolidate_after=_duration(disruption["consolidateAfter"]),
        consolidation_policy=disruption["consolidationPolicy"],
        replicas=spec.get("replicas"),
        annotations=annotations,
        uid=metadata.get("uid", ""),
        unready=_unready(manifest),
        deleting="deletionTimestamp" in metadata,
        hash=dict(annotations).get(NODEPOOL_HASH),
        hash_version=dict(annotations).get(NODEPOOL_HASH_VERSION),
        position=origin.position,
    )


def _unready(manifest: Manifest) -> str:
    """Why its condition Ready is False: in Karpenter, that condition only names those that say it."""
    false = {item.type: item for item in conditions_of(manifest) if item.status is ConditionStatus.FALSE}
    summary = false.pop("Ready", None)
    if summary is None:
        return ""
    told = [item.message or item.reason for name, item in false.items() if f"{name}=" in summary.message]
    return "; ".join(filter(None, told)) or summary.message or "its condition Ready is False"


def _template(template: Mapping[str, Any]) -> NodeClaimTemplate:
    spec = template["spec"]
    reference = spec["nodeClassRef"]
    grace = spec.get("terminationGracePeriod")
    return NodeClaimTemplate(
        labels=labels_of(template, "metadata", "labels"),
        annotations=labels_of(template, "metadata", "annotations"),
        requirements=requirements_of(spec.get("requirements")),
        taints=_taints(spec.get("taints")),
        startup_taints=_taints(spec.get("startupTaints")),
        node_class=NodeClassRef(reference["group"], reference["kind"], reference["name"]),
        expire_after=_duration(spec["expireAfter"]),
        termination_grace_period=_duration(grace) if grace is not None else None,
    )


def _taints(taints: Sequence[Mapping[str, Any]] | None) -> tuple[Taint, ...]:
    return tuple(Taint(taint["key"], taint.get("value", ""), taint["effect"]) for taint in taints or ())


def budgets_of(budgets: Sequence[Mapping[str, Any]]) -> tuple[DisruptionBudget, ...]:
    """Typed budgets. A duration that cannot be parsed is kept as `unreadable`; only a cluster may have one."""
    return tuple(_budget_of(budget) for budget in budgets)


def _budget_of(budget: Mapping[str, Any]) -> DisruptionBudget:
    duration, unreadable = None, ""
    if "duration" in budget:
        try:
            duration = parse_duration(budget["duration"])
        except Invalid as error:
            unreadable = error.message
    reasons = tuple(budget["reasons"]) if "reasons" in budget else None
    nodes = budget.get("nodes", DEFAULT_NODES)
    return DisruptionBudget(nodes, reasons, budget.get("schedule"), duration, unreadable)


def _duration(text: str) -> timedelta | None:
    """None for Never. Raises `Invalid`."""
    return None if text == NEVER else parse_duration(text)


def lay_over(partial: DeclaredManifest, live: LiveObject) -> NodePool:
    """The pool after the partial document is applied to the live one. Raises `Invalid` if that is not a NodePool."""
    body = dict(live.body)
    body["spec"] = _merged(mapping_at(live.body, "spec"), mapping_at(partial.manifest, "spec"))
    metadata = mapping_at(partial.manifest, "metadata")
    declared: dict[str, Any] = {key: metadata[key] for key in ("labels", "annotations") if key in metadata}
    body["metadata"] = _merged(mapping_at(live.body, "metadata"), declared)
    try:
        pool = read(live.ref, body, Origin(partial.position))
    except (KeyError, TypeError, ValueError) as error:
        raise Invalid(f"{live.ref} in the cluster is not a NodePool of {KARPENTER_GROUP}/v1") from error
    if pool is None:
        raise Invalid(f"{live.ref} in the cluster has no template")
    return replace(pool, position=partial.position)


def budgets_alone(partial: DeclaredManifest) -> NodePool | None:
    """A partial document as a pool with nothing but budgets; None if it declares none. Raises `Invalid`.

    This is all that `headroom budgets` needs without a cluster.
    """
    budgets = mapping_at(partial.manifest, "spec", "disruption").get("budgets")
    if budgets is None:
        return None
    return NodePool(partial.ref.name, NodeClaimTemplate(), budgets=budgets_of(budgets), position=partial.position)


def _merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Merges mappings and replaces everything else, as a server-side apply of these fields would."""
    merged = dict(below)
    for key, value in above.items():
        old = merged.get(key)
        merged[key] = _merged(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return merged


_BETA = "karpenter.sh/v1beta1"
_STABLE = "karpenter.sh/v1"
_REASONS = REASON_OF | {"unhealthy": "Unhealthy"}
_GONE = frozenset({"expired", "expiration", "expire"})
_BUDGETS: Path = ("spec", "disruption", "budgets")


def correct(inspection: Inspection) -> None:
    body = inspection.body
    if body.get("apiVersion") == _BETA:
        body["apiVersion"] = _STABLE
        _tell(inspection, ("apiVersion",), f"{_BETA} is converted to {_STABLE}", f"write apiVersion: {_STABLE}")
        _correct_beta(inspection)
    _complete(inspection)
    budgets = inspection.get(*(str(step) for step in _BUDGETS))
    if isinstance(budgets, list):
        for index, budget in enumerate(budgets):
            if isinstance(budget, dict):
                _correct_budget(inspection, budget, (*_BUDGETS, index))


def _complete(inspection: Inspection) -> None:
    """Adds consolidateAfter, which Karpenter's definition requires in `disruption`, though it has a default of 0s."""
    spec = mapping_at(inspection.body, "spec")
    if "template" in spec and isinstance(spec.get("disruption"), dict):
        spec["disruption"].setdefault("consolidateAfter", "0s")


def _correct_beta(inspection: Inspection) -> None:
    """Converts as described by Karpenter's v1 migration guide."""
    spec = mapping_at(inspection.body, "spec")
    disruption = mapping_at(spec, "disruption")
    node_spec = mapping_at(spec, "template", "spec")
    if disruption.get("consolidationPolicy") == "WhenUnderutilized":
        disruption["consolidationPolicy"] = "WhenEmptyOrUnderutilized"
        where: Path = ("spec", "disruption", "consolidationPolicy")
        _tell(inspection, where, "WhenUnderutilized is called WhenEmptyOrUnderutilized in v1", "write the new name")
    old = ("spec", "disruption", "expireAfter")
    if "template" in spec:
        inspection.rename(old, (*_NODE_SPEC, "expireAfter"))
    if disruption.pop("expireAfter", None) is not None:
        partial = ", which a partial NodePool does not have" if "template" not in spec else " in v1"
        _left_out(inspection, old, f"expireAfter is part of the template{partial}")
    reference = node_spec.get("nodeClassRef")
    if isinstance(reference, dict) and "group" not in reference and isinstance(reference.get("apiVersion"), str):
        reference["group"] = reference.pop("apiVersion").rpartition("/")[0]
        path: Path = (*_NODE_SPEC, "nodeClassRef")
        _tell(inspection, (*path, "apiVersion"), "apiVersion is group in v1", f"write group: {reference['group']}")
        inspection.moved((*path, "group"), (*path, "apiVersion"))
    for field in ("kubelet", "resources"):
        if field in node_spec:
            del node_spec[field]
            _left_out(inspection, (*_NODE_SPEC, field), f"{field} is not part of a NodePool in v1")


def _correct_nodes(inspection: Inspection, budget: dict[str, Any], path: Path) -> None:
    nodes = budget.get("nodes")
    if isinstance(nodes, int) and not isinstance(nodes, bool):
        budget["nodes"] = str(nodes)
        if nodes >= 0:  # else the value is not allowed in quotes either
            _tell(inspection, path, f"the number {nodes} is read as text", f'write nodes: "{nodes}"')


def _correct_budget(inspection: Inspection, budget: dict[str, Any], path: Path) -> None:
    _correct_nodes(inspection, budget, (*path, "nodes"))
    if "reason" in budget and "reasons" in budget:
        inspection.report(
            codes.INVALID_VALUE,
            (*path, "reason"),
            "a budget has both reason and reasons, and it is unclear which of them counts",
            hint="remove reason, and name every reason of this budget in reasons",
        )
        # Removed, so that it is not reported again as an unknown field.
        del budget["reason"]
    if "reason" in budget:
        reason = budget.pop("reason")
        budget["reasons"] = reason if isinstance(reason, list) else [reason]
        old: Path = (*path, "reason")
        _tell(inspection, old, "reason is read as reasons", "write reasons: […]")
        inspection.moved((*path, "reasons"), old)
    reasons = budget.get("reasons")
    if not isinstance(reasons, list):
        return
    for index, reason in enumerate(reasons):
        if not isinstance(reason, str):
            continue
        where: Path = (*path, "reasons", index)
        if reason in _REASONS:
            reasons[index] = _REASONS[reason]
            _tell(inspection, where, f"{reason} is read as {_REASONS[reason]}", f"write {_REASONS[reason]}")
        elif reason.lower() in _GONE:
            inspection.report(
                codes.REMOVED_REASON,
                where,
                f"{reason} is not a disruption reason: budgets do not hold back expiration",
                hint="remove it; spec.template.spec.expireAfter sets how long a node lives, and Never disables expiration",
            )
    # Removed, so that they are not reported again as invalid values.
    left = [reason for reason in reasons if not (isinstance(reason, str) and reason.lower() in _GONE)]
    if left or not reasons:
        budget["reasons"] = left
    else:
        del budget["reasons"]


def _tell(inspection: Inspection, path: Path, message: str, hint: str) -> None:
    inspection.report(codes.OLD_SPELLING, path, message, hint=hint)


def _left_out(inspection: Inspection, path: Path, message: str) -> None:
    inspection.report(
        codes.NOT_CONVERTED, path, f"{message}: it is left out", hint="set it where v1 has it, and remove it here"
    )


NODE_POOL = Kind(
    group=KARPENTER_GROUP,
    name="NodePool",
    versions=("v1", "v1beta1"),
    slot="node_pools",
    schema="node_pool",
    namespaced=False,
    correct=correct,
    check=check,
    read=read,
)

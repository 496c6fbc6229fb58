"""Old spellings of NodePools, turned into karpenter.sh/v1: fields of v1beta1, and of the examples in a Karpenter design.

That design is "Disruption Controls By Reason". Each correction is reported with what to write instead, and so is each field that
v1 does not have.
"""

from __future__ import annotations

from typing import Any

from reconciler.manifests.documents.document import Inspection, mapping_at
from reconciler.model import codes
from reconciler.model.nodes import REASONS
from reconciler.model.refs import Path

_BETA = "karpenter.sh/v1beta1"
_STABLE = "karpenter.sh/v1"
_REASONS = {reason.lower(): reason for reason in (*REASONS, "Unhealthy")}
_GONE = frozenset({"expired", "expiration", "expire"})
_BUDGETS: Path = ("spec", "disruption", "budgets")
_NODE_SPEC: tuple[str, ...] = ("spec", "template", "spec")


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
    if "expireAfter" in disruption:
        old: Path = ("spec", "disruption", "expireAfter")
        value = disruption.pop("expireAfter")
        if "template" in spec:
            node_spec.setdefault("expireAfter", value)
            _tell(
                inspection,
                old,
                "expireAfter is part of the template in v1",
                "move it to spec.template.spec.expireAfter",
            )
            inspection.moved((*_NODE_SPEC, "expireAfter"), old)
        else:
            _left_out(inspection, old, "expireAfter is part of the template, which a partial NodePool does not have")
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

"""Node selector requirements of NodePools and NodeOverlays: Karpenter's rules, and reading.

Violations of the karpenter.sh CustomResourceDefinitions are errors. Violations of Karpenter 1.14's RuntimeValidate are warnings:
the pool is admitted but never becomes ready.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from reconciler.manifests.documents.document import Inspection
from reconciler.model import codes
from reconciler.model.nodes import CAPACITY_TYPE_LABEL, HOSTNAME_LABEL, NODEPOOL_LABEL
from reconciler.model.refs import Path
from reconciler.model.requirements import Operator, Requirement

CAPACITY_TYPES = ("on-demand", "reserved", "spot")
_KARPENTER_DOMAIN = "karpenter.sh"
_ALLOWED_IN_DOMAIN = frozenset({CAPACITY_TYPE_LABEL, NODEPOOL_LABEL})
_COMPARISONS = frozenset({"Gt", "Lt", "Gte", "Lte"})
_WHOLE_NUMBER = re.compile(r"\+?[0-9]{1,18}")
_LABEL_VALUE = re.compile(r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
_QUALIFIED_NAME = re.compile(
    r"(?:[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
)


def is_qualified_name(text: str) -> bool:
    """Whether it is an optional DNS prefix and a name of at most 63 characters (apimachinery's IsQualifiedName)."""
    return _QUALIFIED_NAME.fullmatch(text) is not None


def is_label_value(text: str) -> bool:
    return _LABEL_VALUE.fullmatch(text) is not None


def restriction_of(key: str, *, pool_label_allowed: bool) -> str | None:
    """Why a label key may not be used, or None. pool_label_allowed: a NodeOverlay may select by pool, a NodePool may not."""
    if key == HOSTNAME_LABEL:
        return "every node has a hostname of its own"
    if key == NODEPOOL_LABEL and not pool_label_allowed:
        return "Karpenter sets it itself"
    if key not in _ALLOWED_IN_DOMAIN and key.split("/", maxsplit=1)[0].endswith(_KARPENTER_DOMAIN):
        return f"the domain {_KARPENTER_DOMAIN} is Karpenter's own"
    return None


def check_requirements(
    inspection: Inspection, requirements: Sequence[Mapping[str, Any]], path: Path, *, of_pool: bool
) -> None:
    """Reports what is wrong with structurally valid requirements. of_pool: they are a NodePool's, else a NodeOverlay's."""
    for index, requirement in enumerate(requirements):
        where: Path = (*path, index)
        key = requirement["key"]
        reason = restriction_of(key, pool_label_allowed=not of_pool)
        if reason is not None:
            inspection.report(
                codes.RESTRICTED_LABEL,
                (*where, "key"),
                f"{key} must not be required: {reason}",
                hint="remove the requirement, or use a label of your own domain",
            )
        _check_values(inspection, requirement, where, of_pool=of_pool)
        if of_pool:
            _check_readiness(inspection, requirement, where)


def _check_values(inspection: Inspection, requirement: Mapping[str, Any], where: Path, *, of_pool: bool) -> None:
    key, operator = requirement["key"], requirement["operator"]
    values = requirement.get("values") or []
    if operator == "In" or (operator == "NotIn" and not of_pool):
        if not values:
            inspection.report(
                codes.REQUIREMENT_VALUES,
                (*where, "values"),
                f"{key} {operator} needs at least one value",
                hint="add values: […], or use the operator Exists",
            )
        elif len(values) < requirement.get("minValues", 0):
            inspection.report(
                codes.REQUIREMENT_VALUES,
                (*where, "minValues"),
                f"{key} asks for {requirement['minValues']} different values and lists {len(values)}",
                hint=f"list more values, or write minValues: {len(values)}",
            )
    if operator in _COMPARISONS and not (len(values) == 1 and _WHOLE_NUMBER.fullmatch(values[0])):
        inspection.report(
            codes.REQUIREMENT_VALUES,
            (*where, "values"),
            f"{key} {operator} needs exactly one whole number that is not negative",
            hint='write values: ["8"]',
        )


def _check_readiness(inspection: Inspection, requirement: Mapping[str, Any], where: Path) -> None:
    key = requirement["key"]
    values = requirement.get("values") or []
    if not is_qualified_name(key):
        inspection.report(
            codes.NEVER_READY,
            (*where, "key"),
            f"{key} is not a label name (at most 63 characters after the slash), so the pool never becomes ready",
            hint="shorten the name",
        )
    for number, value in enumerate(values):
        if not is_label_value(value) and requirement["operator"] not in _COMPARISONS:
            inspection.report(
                codes.NEVER_READY,
                (*where, "values", number),
                f"{value!r} is not a label value, so the pool never becomes ready",
                hint="use letters, digits, '-', '_' and '.', at most 63 of them",
            )
    if key != CAPACITY_TYPE_LABEL or requirement["operator"] != "In" or not values:
        return
    existing = [value for value in values if value in CAPACITY_TYPES]
    if not existing or len(existing) < requirement.get("minValues", 0):
        inspection.report(
            codes.NEVER_READY,
            (*where, "values"),
            f"{key} names too few capacity types that exist, so the pool never becomes ready",
            hint=f"they are {', '.join(CAPACITY_TYPES)}",
        )
    elif len(existing) < len(values):
        odd = next(value for value in values if value not in CAPACITY_TYPES)
        inspection.report(
            codes.UNKNOWN_CAPACITY_TYPE,
            (*where, "values", values.index(odd)),
            f"{odd!r} is not a capacity type and is ignored",
            hint=f"they are {', '.join(CAPACITY_TYPES)}",
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

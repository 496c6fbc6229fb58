"""Node selector requirements of NodePools and NodeOverlays. Most of their rules stand in the schemas of the two kinds.

Violations of the karpenter.sh CustomResourceDefinitions are errors. Violations of Karpenter 1.14's RuntimeValidate are warnings:
the pool is admitted but never becomes ready.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from reconciler.manifests.documents.document import Inspection
from reconciler.model import codes
from reconciler.model.refs import Path
from reconciler.model.requirements import Operator, Requirement


def check_least_values(inspection: Inspection, requirements: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Reports requirements that ask for more different values than they list."""
    for index, requirement in enumerate(requirements):
        values, least = requirement.get("values"), requirement.get("minValues", 0)
        if requirement["operator"] == Operator.IN and values and len(values) < least:
            inspection.report(
                codes.REQUIREMENT_VALUES,
                (*path, index, "minValues"),
                f"{requirement['key']} asks for {least} different values and lists {len(values)}",
                hint=f"list more values, or write minValues: {len(values)}",
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

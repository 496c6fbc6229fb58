"""Label values, and requirements on them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from reconciler.model.requirements import Operator, Requirement

Values: TypeAlias = frozenset[str | None]
"""The values that a label of a node may get, None among them if it may be absent. An existing node has one value."""

ABSENT: Values = frozenset({None})
STABLE_LABELS = {
    "beta.kubernetes.io/arch": "kubernetes.io/arch",
    "beta.kubernetes.io/os": "kubernetes.io/os",
    "beta.kubernetes.io/instance-type": "node.kubernetes.io/instance-type",
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
    "topology.ebs.csi.aws.com/zone": "topology.kubernetes.io/zone",
    "topology.disk.csi.azure.com/zone": "topology.kubernetes.io/zone",
    "topology.gke.io/zone": "topology.kubernetes.io/zone",
}


def stable_label(key: str) -> str:
    """The stable spelling of a label, by Karpenter's table (pkg/apis/v1/labels.go, NormalizedLabels)."""
    return STABLE_LABELS.get(key, key)


def decided(labels: Mapping[str, str]) -> dict[str, Values]:
    return {key: frozenset({value}) for key, value in labels.items()}


def united(alternatives: Iterable[Mapping[str, str]]) -> dict[str, Values]:
    """By label, all values that it has in any of the alternatives."""
    found = list(alternatives)
    return {key: frozenset(labels.get(key) for labels in found) for key in {key for labels in found for key in labels}}


def holds(requirement: Requirement, value: str | None) -> bool:
    """Whether a label value (None: no label) meets a node selector requirement."""
    listed = requirement.values
    match requirement.operator:
        case Operator.IN:
            return value is not None and value in listed
        case Operator.NOT_IN:
            return value is None or value not in listed
        case Operator.EXISTS:
            return value is not None
        case Operator.DOES_NOT_EXIST:
            return value is None
    try:
        number, bound = int(value or ""), int(listed[0])
    except (ValueError, IndexError):
        return False
    return {
        Operator.GT: number > bound,
        Operator.GTE: number >= bound,
        Operator.LT: number < bound,
        Operator.LTE: number <= bound,
    }[requirement.operator]

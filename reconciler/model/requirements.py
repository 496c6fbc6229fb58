"""Requirements on labels, taints and tolerations, as manifests have them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from reconciler.model.quantity import whole_number


class Operator(StrEnum):
    """Operators of node selectors, with Karpenter's Gte and Lte."""

    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"
    GT = "Gt"
    LT = "Lt"
    GTE = "Gte"
    LTE = "Lte"


# A label selector with any other operator is refused by the API server; here it matches nothing.
_OF_LABEL_SELECTORS = frozenset({Operator.IN, Operator.NOT_IN, Operator.EXISTS, Operator.DOES_NOT_EXIST})


@dataclass(frozen=True, slots=True)
class Requirement:
    """One node selector requirement. min_values is Karpenter's: at least so many different values must remain possible."""

    key: str
    operator: Operator
    values: tuple[str, ...] = ()
    min_values: int | None = None

    def holds(self, value: str | None) -> bool:
        """Whether a label of this value satisfies it, as kube-scheduler judges a node selector. None: no such label."""
        match self.operator:
            case Operator.IN:
                return value is not None and value in self.values
            case Operator.NOT_IN:
                return value is None or value not in self.values
            case Operator.EXISTS:
                return value is not None
            case Operator.DOES_NOT_EXIST:
                return value is None
            case _:
                return self._compares(value)

    def _compares(self, value: str | None) -> bool:
        number, bound = whole_number(value or ""), whole_number(next(iter(self.values), ""))
        if number is None or bound is None:
            return False
        match self.operator:
            case Operator.GT:
                return number > bound
            case Operator.LT:
                return number < bound
            case Operator.GTE:
                return number >= bound
            case _:
                return number <= bound


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """A metav1.LabelSelector. An empty one matches everything; an absent one (None) matches nothing."""

    match_labels: tuple[tuple[str, str], ...] = ()
    expressions: tuple[Requirement, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether these labels satisfy all parts of it."""
        return all(labels.get(key) == value for key, value in self.match_labels) and all(
            expression.operator in _OF_LABEL_SELECTORS and expression.holds(labels.get(expression.key))
            for expression in self.expressions
        )


@dataclass(frozen=True, slots=True)
class Taint:
    """A node's taint. effect: NoSchedule, PreferNoSchedule or NoExecute."""

    key: str
    value: str
    effect: str


@dataclass(frozen=True, slots=True)
class Toleration:
    """An empty key with Exists tolerates every taint; an empty effect matches all effects."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""

    def tolerates(self, taint: Taint) -> bool:
        """Whether a pod with this toleration tolerates the taint."""
        if self.effect and self.effect != taint.effect:
            return False
        if self.key and self.key != taint.key:
            return False
        return self.operator == "Exists" or (bool(self.key) and self.value == taint.value)

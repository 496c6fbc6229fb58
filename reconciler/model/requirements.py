"""Requirements on labels, label selectors, taints and tolerations, as manifests have them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from reconciler.model.errors import Invalid
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
    """One node selector requirement. min_values is Karpenter's: how many different values must remain possible."""

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


_NAME = r"[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?"
_KEY = rf"(?P<key>(?:{_NAME}/)?{_NAME})"
_SET_BASED = re.compile(rf"{_KEY}\s+(?P<operator>in|notin)\s*\((?P<values>[^()]+)\)", re.ASCII)
_EQUALITY = re.compile(rf"{_KEY}\s*(?P<operator>==|!=|=)\s*(?P<value>.*)", re.ASCII)
_PRESENCE = re.compile(rf"(?P<absent>!?)\s*{_KEY}", re.ASCII)
_VALUE = re.compile(rf"(?:{_NAME})?", re.ASCII)
_PART = re.compile(r"(?:[^,()]|\([^()]*+\))*")
_LONGEST_VALUE = 63
_MOST_SHOWN = 60


def parse_selector(text: str) -> LabelSelector:
    """The selector that the text says, as apimachinery's labels.Parse reads it, without its comparisons `>` and `<`. Raises `Invalid`."""
    return LabelSelector(expressions=tuple(_requirement(part.strip()) for part in _parts(text)))


def _parts(text: str) -> Iterator[str]:
    """What stands between the commas that are in no parentheses."""
    position = 0
    while match := _PART.match(text, position):
        yield match[0]
        position = match.end()
        if position == len(text):
            return
        if text[position] != ",":  # a parenthesis that has no other
            break
        position += 1
    raise _refused(text)


def _requirement(part: str) -> Requirement:
    if match := _SET_BASED.fullmatch(part):
        operator = Operator.IN if match["operator"] == "in" else Operator.NOT_IN
        return Requirement(match["key"], operator, _values(part, *match["values"].split(",")))
    if match := _EQUALITY.fullmatch(part):
        operator = Operator.NOT_IN if match["operator"] == "!=" else Operator.IN
        return Requirement(match["key"], operator, _values(part, match["value"]))
    if match := _PRESENCE.fullmatch(part):
        return Requirement(match["key"], Operator.DOES_NOT_EXIST if match["absent"] else Operator.EXISTS)
    raise _refused(part)


def _values(part: str, *written: str) -> tuple[str, ...]:
    values = tuple(sorted(value.strip() for value in written))
    if any(len(value) > _LONGEST_VALUE or _VALUE.fullmatch(value) is None for value in values):
        raise _refused(part)
    return values


def _refused(text: str) -> Invalid:
    shown = text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"
    message = f"{shown!r} is no part of a label selector"
    return Invalid(message, hint="write parts such as app=web, tier in (a,b), !legacy, with commas between")


def allow(requirements: Iterable[Requirement], labels: Mapping[str, str]) -> bool:
    """Whether a NodePool with these requirements may launch what has these labels. Those on labels that are not among them are the
    NodePool's own, and exclude nothing."""
    return all(item.holds(labels[item.key]) for item in requirements if item.key in labels)


def listed_values(requirements: Iterable[Requirement]) -> dict[str, tuple[str, ...]]:
    """The values that requirements leave, by label: those of `In`."""
    return {item.key: item.values for item in requirements if item.operator is Operator.IN}


def single_valued(requirements: Iterable[Requirement]) -> dict[str, str]:
    """The labels that requirements settle: `In` with one value."""
    return {key: values[0] for key, values in listed_values(requirements).items() if len(values) == 1}

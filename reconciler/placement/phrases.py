"""How reasons name what they are about: amounts, taints, label values, selected pods."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

from reconciler.model.pods import NodeSelectorTerm
from reconciler.model.quantity import CPU, readable_amount
from reconciler.model.requirements import LabelSelector, Operator, Requirement
from reconciler.placement.requirements import Requirements, Values, values_of

MOST_VALUES = 4
"""How many values one sentence names. The rest is counted."""


def listed(parts: Iterable[str], last: str = "and") -> str:
    """`a`, `a and b`, `a, b and c`. Of many, the first ones and how many more there are."""
    items = list(parts)
    if len(items) > MOST_VALUES + 1:
        items = [*items[:MOST_VALUES], f"{len(items) - MOST_VALUES:,} more"]
    return f" {last} ".join(filter(None, (", ".join(items[:-1]), items[-1]))) if items else ""


def amount_words(name: str, amount: int) -> str:
    """`100m CPU`, `2 nvidia.com/gpu`."""
    return f"{readable_amount(name, amount)} {resource_words(name)}"


def resource_words(name: str) -> str:
    return "CPU" if name == CPU else name


def values_words(values: Values) -> str:
    """The values that are allowed: `zone-a or zone-b`, `anything but spot`, `9 or more`, `any value`."""
    if not values.complement:
        return listed(sorted(values.names), "or") or ("no such label" if values.absent else "no value at all")
    least, most = values.at_least, values.at_most
    within = "" if most is None else f"{most} or less"
    if least is not None:
        within = f"{least} or more" if most is None else f"{least} to {most}"
    names = listed(sorted(values.names), "or")
    if names:
        return f"{within}, but not {names}" if within else f"anything but {names}"
    return within or "any value"


def labelled(key: str, values: Values) -> str:
    """Values with their label: `topology.kubernetes.io/zone=zone-a`, `topology.kubernetes.io/zone in zone-a or zone-b`."""
    words = values_words(values)
    if values.single is not None:
        return f"{key}={words}"
    if values.complement or not values.names:
        return f"{key} ({words})"
    return f"{key} in {words}"


def instead_words(values: Values) -> str:
    """What is asked for instead of what was named before: `not zone-b`, `where 9 or more is asked for`."""
    if not values.complement and not values.names:
        return "which must not be there"
    words = values_words(values)
    return f"where {words} is asked for" if values.complement else f"not {words}"


def asked_at_once(key: str, selector: Sequence[tuple[str, str]], expressions: Sequence[Requirement]) -> str:
    """All that is asked of one label at the same time: `zone-a and zone-b`."""
    parts = [value for name, value in selector if name == key]
    parts += [values_words(values_of(item)) for item in expressions if item.key == key]
    return " and ".join(dict.fromkeys(parts))


def suggestion(key: str, known: Iterable[str]) -> str:
    """`: did you mean topology.kubernetes.io/zone?`, or "" if no known key is similar."""
    near = difflib.get_close_matches(key, sorted(known), n=1, cutoff=0.8)
    return f": did you mean {near[0]}?" if near else ""


def selector_words(selector: LabelSelector | None) -> str:
    """The pods that a selector selects: `pods with app=web`."""
    if selector is None:
        return "no pods"
    parts = [f"{key}={value}" for key, value in selector.match_labels]
    parts += [_expression_words(item) for item in selector.expressions]
    return f"pods with {listed(parts)}" if parts else "any pods"


def _expression_words(item: Requirement) -> str:
    match item.operator:
        case Operator.EXISTS:
            return item.key
        case Operator.DOES_NOT_EXIST:
            return f"no {item.key}"
        case Operator.NOT_IN:
            return f"{item.key} not {listed(item.values, 'or')}"
        case _:
            values = listed(item.values, "or")
            return f"{item.key}={values}" if len(item.values) == 1 else f"{item.key} in {values}"


def place_words(places: Iterable[NodeSelectorTerm]) -> str:
    """`where topology.kubernetes.io/zone=zone-a or on node-1`."""
    return listed(dict.fromkeys(map(_place_words, places)), "or")


def _place_words(place: NodeSelectorTerm) -> str:
    nodes = [name for item in place.fields for name in item.values]
    labels = [labelled(key, values) for key, values in Requirements.of(place.expressions, stable=False).entries]
    where = f"on {listed(nodes, 'or')}" if nodes else "", f"where {listed(labels)}" if labels else ""
    return " ".join(filter(None, where))

"""What the code answers, in words that stay when its types are renamed. Used by answers.

Only `of_placement` and `of_demands` know the types of `reconciler.model`, and only `of_plan` knows the JSON of a plan. An answer has
two texts, so that a reworded sentence can be told from a changed placement.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from json import dumps
from typing import Any

from reconciler.model.demand import Demand
from reconciler.model.findings import Finding
from reconciler.model.placement import Holding, Placement, PlannedNode

Document = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Answer:
    """placed: where everything goes, on which instance types and at what price; said: the sentences, which are reasons, assumptions
    and findings. price: of the nodes to be made, USD an hour; nodes: how many of them; unplaced: chunks and pods without a place."""

    placed: str = ""
    said: str = ""
    price: float = 0.0
    nodes: int = 0
    unplaced: int = 0

    @property
    def text(self) -> str:
        return f"{self.placed}\n\n{self.said}\n"

    def after(self, other: Answer) -> Answer:
        """Both in one, the other one's texts first; the figures are this one's."""
        return replace(
            self, placed=f"{other.placed}\n\n{self.placed}".strip(), said=f"{other.said}\n\n{self.said}".strip()
        )


Questions = Iterator[tuple[str, Callable[[], Answer]]]
"""Names, each with what finds the answer."""


def hashed(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:16]


def of_placement(placement: Placement) -> Answer:
    """One line for each node that holds something, each node to be made, and each group that goes without."""
    held = [f"existing {item.node or item.node_claim} holds {_holds(item.holdings)}" for item in placement.occupied]
    unplaced = [f"unplaced {item.count} of {item.demand}#{item.group}" for item in placement.unplaced]
    reasons = [
        f"{item.demand}#{item.group}: {reason.cause}, {reason.count}: {reason.example}"
        for item in placement.unplaced
        for reason in item.reasons
    ]
    return Answer(
        "\n".join((*held, *map(_planned, placement.planned), *unplaced)),
        "\n".join((*reasons, *(f"assumed: {sentence}" for sentence in placement.assumptions))),
        round(sum((node.price for node in placement.planned if node.price_known), 0.0), 6),
        len(placement.planned),
        sum(item.count for item in placement.unplaced),
    )


def _planned(node: PlannedNode) -> str:
    requirements = (
        f"{item.key} {item.operator} {_listed(item.values)}"
        + ("" if item.min_values is None else f" at least {item.min_values}")
        for item in node.requirements
    )
    parts = {
        "types": _listed(node.instance_types),
        "zones": _listed(node.zones),
        "capacity types": _listed(node.capacity_types),
        "price": f"{node.price:.6f}" if node.price_known else "not known",
        "requests": _pairs(node.requests.quantities().items()),
        "requirements": "; ".join(requirements),
        "labels": _pairs(node.labels),
        "holds": _holds(node.holdings),
    }
    return f"new {node.node_pool} | " + " | ".join(f"{name} {value}" for name, value in parts.items())


def _holds(holdings: Iterable[Holding]) -> str:
    return ", ".join(f"{item.count} of {item.demand}#{item.group}" for item in holdings)


def _listed(values: Sequence[str]) -> str:
    return ",".join(values)


def _pairs(pairs: Iterable[tuple[str, str]]) -> str:
    return " ".join(f"{key}={value}" for key, value in pairs)


def of_demands(demands: Iterable[Demand], findings: Iterable[Finding]) -> Answer:
    """What is asked for, before anything is placed."""
    asked, said = [], []
    for item in demands:
        groups = (f"{group.count} × {_pairs(group.shape.requests.quantities().items())}" for group in item.groups)
        asked.append(f"{item.ref} asks for {item.desired}: {'; '.join(groups)}")
        said += [f"{item.ref}: {line}" for line in item.explanation]
        said += [
            f"{item.ref}: {condition.type} {condition.status}, {condition.reason}: {condition.message}"
            for condition in item.conditions
        ]
    said += [f"{finding.code} at {finding.path}: {finding.message} {finding.hint}" for finding in findings]
    return Answer("\n".join(asked), "\n".join(said))


_NO_ANSWER = frozenset({"schemaVersion", "revision"})
_SAID = frozenset({"assumptions", "blocked", "conditions", "explanation", "findings", "notes", "reason", "why"})
_SAID_OF_UNPLACED = frozenset({"excuses", "unplacedReasons"})
"""The contract's names for why something found no place, one of which may give way to the other."""
_BUDGET = "budget"
"""A row that has this key is about one disruption reason, which is then no sentence."""


def of_plan(plan: Document) -> Answer:
    """From `headroom.dev/plan/v1`."""
    placed, said = _parted({key: value for key, value in plan.items() if key not in _NO_ANSWER})
    made = plan["nodeClaims"]["create"]
    return Answer(
        dumps(placed, indent=1, sort_keys=True, ensure_ascii=False),
        dumps(said, indent=1, sort_keys=True, ensure_ascii=False),
        round(sum((item["pricePerHour"] or 0.0 for item in made), 0.0), 6),
        len(made),
        sum(item["unplaced"] for item in plan["demands"]),
    )


def _parted(value: Any) -> tuple[Any, Any]:
    """The document without its sentences, and the sentences alone under the keys that lead to them."""
    if isinstance(value, list):
        parts = [_parted(item) for item in value]
        return [placed for placed, _ in parts], {str(number): said for number, (_, said) in enumerate(parts) if said}
    if not isinstance(value, dict):
        return value, None
    placed, said = {}, {}
    for key, item in value.items():
        if key in _SAID_OF_UNPLACED:
            said["reasons"] = item
        elif key == "changes" or (key == "reason" and _BUDGET in value):
            placed[key] = item  # changes hold parts of manifests, whose keys are not the contract's
        elif key in _SAID:
            said[key] = item
        else:
            placed[key], below = _parted(item)
            if below:
                said[key] = below
    return placed, {key: item for key, item in said.items() if item}

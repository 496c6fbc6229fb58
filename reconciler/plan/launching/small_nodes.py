"""Nodes that came up with less room than their NodeClaims ask for, though the catalogue says that their type has it.

A kubelet may reserve more than the catalogue knows of, and static pods run on every node from the start. The chunks that such a node was
made for do not fit, and the next one of its type would be no larger. So the inventory remembers for a day what the node had, and the type is
planned with that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from reconciler.model.machines import Machine
from reconciler.model.nodes import INSTANCE_TYPE_LABEL, InstanceType
from reconciler.model.quantity import CPU, Resources, readable_amount
from reconciler.model.remembered import Moment, Record
from reconciler.model.view import ClusterView

SMALL_NODES_KEY = "smallNodes"
_JUDGED_FOR = timedelta(minutes=10)
"""How long a node is judged after it was initialized. What it reports later is about that node alone, such as a device that failed."""
_KEPT_FOR = timedelta(days=1)


class SeenRoom(Record, frozen=True):
    """What nodes of one instance type had for pods, of the resources that they lacked. since: when that was seen."""

    since: Moment
    room: Mapping[str, int]


def rooms_seen(view: ClusterView, before: Mapping[str, SeenRoom], now: datetime) -> dict[str, SeenRoom]:
    """By name of an instance type. before: what the inventory remembers."""
    rooms = {name: seen for name, seen in before.items() if now < seen.since + _KEPT_FOR}
    for machine, room in _young_nodes(view, now):
        asked = dict(machine.node_claim.requests) if machine.node_claim is not None else {}
        # A device that is not reported is one that is not ready.
        lacking = {name: amount for name, amount in room if 0 < amount < asked.get(name, 0)}
        kind = machine.label(INSTANCE_TYPE_LABEL) or ""
        known = rooms[kind].room if kind in rooms else {}
        if any(amount < known.get(name, amount + 1) for name, amount in lacking.items()):
            least = {name: min(amount, known.get(name, amount)) for name, amount in lacking.items()}
            rooms[kind] = SeenRoom(now, dict(sorted({**known, **least}.items())))
    return dict(sorted(rooms.items()))


def _young_nodes(view: ClusterView, now: datetime) -> Iterator[tuple[Machine, Resources]]:
    """Placeholders that were initialized lately, or are not yet, each with what its node has beside its static pods."""
    young: dict[str, Machine] = {}
    for machine in view.machines:
        claim = machine.node_claim
        if machine.node is not None and claim is not None and claim.is_placeholder:
            since = claim.since("Initialized") if machine.is_initialized else now
            if since is not None and now < since + _JUDGED_FOR:
                young[machine.name] = machine
    rooms = {name: machine.allocatable for name, machine in young.items()}
    for pod in view.pods if young else ():
        if pod.owner_kind == "Node" and pod.node_name in rooms:
            rooms[pod.node_name] -= pod.shape.requests
    return ((machine, rooms[name]) for name, machine in young.items())


def with_seen_rooms(
    instance_types: Sequence[InstanceType], rooms: Mapping[str, SeenRoom]
) -> tuple[tuple[InstanceType, ...], tuple[str, ...]]:
    """The catalogue with what nodes had, and a sentence for each type that has less than it says."""
    found, sentences = [], []
    for kind in instance_types:
        seen = rooms[kind.name].room if kind.name in rooms else {}
        less = {name: said - seen[name] for name, said in kind.allocatable if seen.get(name, said) < said}
        found.append(replace(kind, overhead=kind.overhead + Resources.of(less)) if less else kind)
        if less:
            sentences.append(
                f"nodes of {kind.name} came up with {_words(seen, less)} for pods, less than their NodeClaims ask for: "
                "new ones are planned with that"
            )
    return tuple(found), tuple(sentences)


def _words(seen: Mapping[str, int], names: Iterable[str]) -> str:
    return ", ".join(f"{readable_amount(name, seen[name])} {'CPU' if name == CPU else name}" for name in sorted(names))

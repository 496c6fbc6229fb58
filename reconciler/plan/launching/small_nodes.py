"""Nodes that came up with less room than their NodeClaims ask for, though the catalogue says that their type has it.

A kubelet may reserve more than the catalogue knows of. Static pods run on every node, and daemon pods may ask for more than their template (a
LimitRange, a webhook) or come for a label that the node gets once it is up. The chunks that such a node was made for do not fit, and the
next one of its type would have no more room. So the inventory remembers for a day what the node had, and the type is planned with that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from reconciler.model.machines import Machine
from reconciler.model.nodes import INITIALIZED_LABEL, INSTANCE_TYPE_LABEL, REGISTERED_LABEL, InstanceType
from reconciler.model.pods import PodShape
from reconciler.model.quantity import CPU, Resources, readable_amount
from reconciler.model.remembered import Moment, Record
from reconciler.model.view import ClusterView

SMALL_NODES_KEY = "smallNodes"
_JUDGED_FOR = timedelta(minutes=10)
"""How long a node is judged after it was initialized. What it reports later is about that node alone, such as a device that failed."""
_KEPT_FOR = timedelta(days=1)
_UP = {REGISTERED_LABEL: "true", INITIALIZED_LABEL: "true"}


class SeenRoom(Record, frozen=True):
    """What nodes of one instance type had for pods, of the resources that they lacked. since: when that was seen."""

    since: Moment
    room: Mapping[str, int]


def rooms_seen(view: ClusterView, before: Mapping[str, SeenRoom], now: datetime) -> dict[str, SeenRoom]:
    """By name of an instance type. before: what the inventory remembers."""
    rooms = {name: seen for name, seen in before.items() if now < seen.since + _KEPT_FOR}
    young = {machine.name: machine for machine in view.machines if _is_young(machine, now)}
    room_of = {name: machine.allocatable for name, machine in young.items()}
    templates = {(item.namespace, item.name): item.shape for item in view.daemon_sets}
    for pod in view.pods if young else ():
        if pod.is_daemon and pod.node_name in young:
            template = templates.get((pod.namespace, pod.owner_name)) if pod.owner_kind == "DaemonSet" else None
            room_of[pod.node_name] -= _unforeseen(pod.shape, template, young[pod.node_name])
    for name, machine in young.items():
        asked = machine.node_claim.requests if machine.node_claim is not None else Resources()
        room, kind = room_of[name], machine.label(INSTANCE_TYPE_LABEL) or ""
        known = rooms[kind].room if kind in rooms else {}
        # A device of which there is none is not ready yet.
        less = {each: most for each, most in room if 0 < most < min(asked.get(each), known.get(each, most + 1))}
        if less:
            rooms[kind] = SeenRoom(now, {**known, **less})
    return rooms


def _is_young(machine: Machine, now: datetime) -> bool:
    """A placeholder with a node that was initialized lately, or is not yet."""
    claim = machine.node_claim
    if machine.node is None or claim is None or not claim.is_placeholder:
        return False
    since = claim.since("Initialized") if machine.is_initialized else now
    return since is not None and now < since + _JUDGED_FOR


def _unforeseen(pod: PodShape, template: PodShape | None, machine: Machine) -> Resources:
    """What a daemon pod takes that its node was not planned with. template: its DaemonSet's; None of a static pod."""
    labels = {} if machine.node_claim is None else dict(machine.node_claim.labels)
    foreseen = template.requests if template is not None and template.selects({**labels, **_UP}) else Resources()
    return pod.requests.at_least(foreseen) - foreseen


def with_seen_rooms(
    instance_types: Sequence[InstanceType], rooms: Mapping[str, SeenRoom]
) -> tuple[tuple[InstanceType, ...], tuple[str, ...]]:
    """The catalogue with what nodes had, and a sentence for each type that has less than it says."""
    found, sentences = [], []
    for kind in instance_types:
        seen = rooms[kind.name].room if kind.name in rooms else {}
        less = {name: said - seen[name] for name, said in kind.allocatable if seen.get(name, said) < said}
        found.append(replace(kind, overhead=kind.overhead + Resources.of(less)) if less else kind)
        had = [f"{readable_amount(name, seen[name])} {'CPU' if name == CPU else name}" for name in sorted(less)]
        words = f"nodes of {kind.name} came up with {', '.join(had)} for pods, less than their NodeClaims ask for"
        sentences += [f"{words}: new ones are planned with that"] if had else []
    return tuple(found), tuple(sentences)

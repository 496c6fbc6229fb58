"""Nodes that came up other than planned, so that the chunks they were made for do not fit. The next nodes would be no better, and without a
record of the first ones they would be made for ever.

Nodes with less room than their NodeClaims ask for, though the catalogue says that their type has it: a kubelet may reserve more than the
catalogue knows of. Static pods run on every node, and daemon pods may ask for more than their template (a LimitRange, a webhook) or come
for a label that the node gets once it is up. The inventory remembers for a day what the node had, and the type is planned with that.

Nodes that take none of their chunks for any other reason: somebody gives each new node a taint, or takes a label away. The same NodeClaim
is asked for again only after a wait that doubles, and one shows first whether it is better now.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from reconciler.model.machines import Machine
from reconciler.model.nodes import INITIALIZED_LABEL, INSTANCE_TYPE_LABEL, REGISTERED_LABEL, InstanceType
from reconciler.model.placement import Cause, PlannedNode
from reconciler.model.pods import PodShape
from reconciler.model.quantity import CPU, Resources, doubled, readable_amount
from reconciler.model.refs import ObjectRef
from reconciler.model.remembered import Moment, Record
from reconciler.model.view import ClusterView
from reconciler.plan.bins import Bin, names_of
from reconciler.plan.launching.caps import Capped, Cut

SMALL_NODES_KEY = "smallNodes"
MISFITS_KEY = "misfits"
_JUDGED_FOR = timedelta(minutes=10)
"""How long a node is judged after it was initialized. What it reports later is about that node alone, such as a device that failed."""
_KEPT_FOR = timedelta(days=1)
_FIRST_WAIT, _LONGEST_WAIT = timedelta(minutes=1), timedelta(hours=1)
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
    daemon_sets = {(item.namespace, item.name): item for item in view.daemon_sets}
    for pod in view.pods if young else ():
        if pod.is_daemon and pod.node_name in young:
            owner = daemon_sets.get((pod.namespace, pod.owner_name))
            if pod.owner_kind == "Node":
                room_of[pod.node_name] -= pod.shape.requests
            elif owner is not None and owner.is_up_to_date(pod):  # others are about to go
                room_of[pod.node_name] -= _unforeseen(pod.shape, owner.shape, young[pod.node_name])
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


def _unforeseen(pod: PodShape, template: PodShape, machine: Machine) -> Resources:
    """What a daemon pod takes that its node was not planned with. template: its DaemonSet's."""
    labels = {} if machine.node_claim is None else dict(machine.node_claim.labels)
    foreseen = template.requests if template.selects({**labels, **_UP}) else Resources()
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


class Misfit(Record, frozen=True):
    """Nodes that took none of their chunks. why: what is wrong with the last of them; until: when the same NodeClaim may be made again."""

    why: str
    failures: int
    began: Moment
    until: Moment


def without_misfits(
    capped: Capped,
    before: Mapping[str, Misfit],
    bins: Iterable[Bin],
    now: datetime,
    *,
    leaving: Collection[str],
    apart: Collection[ObjectRef],
) -> tuple[Capped, dict[str, Misfit]]:
    """Cuts nodes like those that came up lately and take none of their chunks. Gives also what the inventory remembers of these, by the
    first name of their NodeClaims.

    leaving: names of bins that take no chunks for a reason of headroom's own. apart: demands with attempts of their own, and pods, whose
    nodes Karpenter makes.
    """
    misfits = {name: item for name, item in before.items() if now < item.until + _LONGEST_WAIT}
    claims = {item.node_claim.name: item for item in bins if item.node_claim is not None and item.is_placeholder}
    if not misfits and not any(_is_young(item, now) for item in claims.values()):
        return capped, misfits
    judged: set[str] = set()

    def cut_of(node: PlannedNode) -> Cut | None:
        if any(holding.demand in apart for holding in node.holdings):
            return None
        names = names_of(node, len(claims) + 1)
        if names[0] not in judged:
            judged.add(names[0])
            alike = [claims[name] for name in names if name in claims]
            found = _judged(misfits.pop(names[0], None), alike, leaving, now)
            if found is not None:
                misfits[names[0]] = found
                if now >= found.until and not any(item.is_on_its_way for item in alike):
                    return None  # one shows first whether it is better now
        known = misfits.get(names[0])
        if known is None:
            return None
        again = (
            f"one more is made at {known.until.astimezone(UTC):%H:%M:%S} UTC"
            if now < known.until
            else "one shows first"
        )
        return Cut(node, f"{known.why}; {again}", Cause.PROBED, passing=True)

    return capped.cutting(cut_of), misfits


def _judged(known: Misfit | None, alike: Iterable[Bin], leaving: Collection[str], now: datetime) -> Misfit | None:
    """What is remembered of these NodeClaims from now on. Nodes that were asked for together are one failure, though some come up later."""
    up = [item for item in alike if _came_up(item, now, None if known is None else known.began)]
    idle = [item for item in up if _is_idle(item) and item.name not in leaving]
    taken = [item.node_claim.created for item in up if item not in idle and item.node_claim and item.node_claim.created]
    since = max([*taken, *(() if known is None else (known.began,))], default=None)
    asked_since = [item for item in idle if since is None or _is_younger(item, since)]
    if asked_since:
        failures = 0 if known is None else known.failures
        return Misfit(_unlike(asked_since[0]), failures + 1, now, now + doubled(_FIRST_WAIT, failures, _LONGEST_WAIT))
    return None if len(idle) < len(up) else known


def _came_up(item: Bin, now: datetime, since: datetime | None) -> bool:
    """Whether it was initialized lately, and after this time."""
    initialized = None if item.node_claim is None else item.node_claim.since("Initialized")
    return _is_young(item, now) and initialized is not None and (since is None or initialized > since)


def _is_younger(item: Bin, time: datetime) -> bool:
    created = None if item.node_claim is None else item.node_claim.created
    return created is not None and created > time


def _is_idle(item: Bin) -> bool:
    """Whether it could take chunks, and has nothing."""
    takes = item.node is not None and item.node.ready and not item.why_closed
    return takes and not (item.chunks or item.pods or item.watched or item.in_use)


def _unlike(item: Bin) -> str:
    """How the node differs from its NodeClaim, in words."""
    node, claim = item.node, item.node_claim
    taints = {taint.key for taint in (() if node is None else node.taints) if not taint.key.startswith("headroom.dev/")}
    more = sorted(taints - {taint.key for taint in (() if claim is None else claim.taints)})
    labels = () if claim is None else claim.labels
    less = [f"{key}={value}" for key, value in labels if node is not None and node.label(key) != value]
    parts = [f"has the taint {more[0]}"] if more else []
    parts += [f"lacks the label {less[0]}"] if less else []
    how = " and ".join(parts) or "has other taints, labels or pods than planned"
    return f"node {item.name} came up and takes none of the chunks that it was made for, since it {how}"

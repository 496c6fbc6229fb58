"""Prunes objects that headroom applied and Git no longer declares: slowly when it is much.

Kept are objects that a broken document might still declare, those without headroom's own label, and PodTemplates that are still in use. Nothing is pruned while
the plan is blocked. Within an hour only a share of the nodes that held chunks are released for removals, and only a share of the inventory
is deleted. A buffer whose nodes are more than that is let down in steps; what waits stays in force. A NodePool takes its nodes with it, so
it is deleted only when it is marked for that.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from reconciler.model import codes
from reconciler.model.buffers import BUFFER_KINDS
from reconciler.model.changes import Action, DemandOutcome, ObjectChange
from reconciler.model.conditions import REMOVAL, Condition, ConditionStatus
from reconciler.model.declared import Declared
from reconciler.model.demand import Demand
from reconciler.model.findings import Finding
from reconciler.model.marks import ADOPT_ANNOTATION, CLAIM_ANNOTATION, PART_OF_LABEL, SUSPEND_ANNOTATION
from reconciler.model.refs import ObjectRef, abridged, by_key, counted
from reconciler.model.remembered import PRUNES_KEY, PruneHour, WaitingDeletions, prune_hour
from reconciler.model.rules import Caps
from reconciler.model.schedules import Edge
from reconciler.model.view import ClusterView, LiveObject, Manifest
from reconciler.plan.bins import Bin
from reconciler.plan.objects.objects import PARTIAL_ANNOTATION, SOURCE_ANNOTATION, annotations_of, partial_mark

PRUNE_ANNOTATION = "headroom.dev/prune"
_MOST_NAMED = 5
_POOL = "NodePool"
_DELETE_AFTER = {"MetricsProducer": 1, "PodTemplate": 1, _POOL: 2}
"""Kinds that go after the others (0), lowest first."""


@dataclass(frozen=True, slots=True)
class Pruning:
    """records: what the inventory remembers about it."""

    changes: tuple[ObjectChange, ...] = ()
    notes: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    records: Mapping[str, Any] = field(default_factory=dict)
    waiting: WaitingDeletions = field(default_factory=WaitingDeletions)

    @property
    def edges(self) -> tuple[Edge, ...]:
        """When the next object may go."""
        waiting = self.waiting
        if waiting.next_at is None:
            return ()
        objects = counted(len(waiting.refs), "object")
        return (Edge(waiting.next_at, f"{objects} no longer declared: the next may be deleted"),)


def prune(
    declared: Declared,
    view: ClusterView,
    *,
    applyset_id: str,
    caps: Caps,
    blocked: bool,
    now: datetime,
    bins: Sequence[Bin] = (),
    live: Declared | None = None,
) -> Pruning:
    """Deletions of inventory members. bins: with the chunks that each holds in this plan. live: what the cluster declares."""
    members = view.inventory.members | _partly_applied(view, applyset_id)
    wanted = {item.ref for item in declared.manifests} | declared.broken | declared.dormant.keys()
    gone = [ref for ref in sorted(members - wanted, key=_order) if ref in view.objects]
    holding = [item for item in bins if item.chunks and item.is_karpenters and not item.is_going]
    hour = prune_hour(view.inventory.records, len(members), len(holding), now)
    notes: list[str] = []
    findings: list[Finding] = []
    due: list[ObjectChange] = []
    for ref in gone:
        item = view.objects[ref]
        kept = reason_to_keep(item, declared, applyset_id)
        if kept is None and _takes_nodes_with_it(item):
            findings.append(_kept_pool(ref))
        elif kept is None:
            due.append(_removal(ref, item))
        elif kept:
            notes.append(f"{ref} is no longer declared, but stays: {kept}")
    asleep = _asleep(declared, view, members, applyset_id)
    if blocked:
        if asleep:
            notes.append(f"{abridged((change.ref for change in asleep), _MOST_NAMED)}: asleep by schedule, which waits")
        held_back = WaitingDeletions(tuple(change.ref for change in (*due, *asleep)))
        return Pruning((), tuple(notes), tuple(findings), hour.records(), held_back)
    turn = _Turn(hour, caps, holding)
    going, waiting, in_use = _split(due, turn, _users_of_templates(declared, live or Declared(), holding))
    notes += in_use
    held_back = WaitingDeletions()
    if waiting:
        held_back = replace(turn.waiting(), refs=waiting, next_at=hour.ends + view.clock_skew)
        count = len(going) + len(waiting)
        notes.append(
            f"{counted(count, 'object')} {'is' if count == 1 else 'are'} no longer declared; {held_back.cap}, so these wait: {abridged(waiting, _MOST_NAMED)}"
        )
    return Pruning((*going, *asleep), tuple(notes), tuple(findings), turn.after(waiting).records(), held_back)


def _split(
    due: Iterable[ObjectChange], turn: _Turn, users: Mapping[ObjectRef, Sequence[ObjectRef]]
) -> tuple[tuple[ObjectChange, ...], tuple[ObjectRef, ...], list[str]]:
    """What goes now, what waits for its turn, and a note for each that stays because it is in use."""
    going: dict[ObjectRef, ObjectChange] = {}
    waiting: list[ObjectRef] = []
    notes: list[str] = []
    for change in due:
        user = next((user for user in users.get(change.ref, ()) if user not in going), None)
        if user is not None:
            notes.append(f"{change.ref} is no longer declared, but stays: {user} refers to it")
        elif turn.is_too_large(change.ref):
            notes.append(f"{change.ref} is no longer declared, but stays: {turn.held_in_pool(change.ref)}")
        elif turn.takes(change.ref):
            going[change.ref] = change
        else:
            waiting.append(change.ref)
    return tuple(going.values()), tuple(waiting), notes


def _users_of_templates(
    declared: Declared, live: Declared, holding: Iterable[Bin]
) -> Mapping[ObjectRef, list[ObjectRef]]:
    """By PodTemplate, the buffers that refer to it, and the requests that have chunks on nodes."""
    held = {part.demand for item in holding for part in item.chunks}
    buffers = {item.ref: item.pod_template for item in (*live.buffers, *declared.buffers)}
    pairs = [(ref, name) for ref, name in buffers.items() if name is not None]
    requests = {item.ref: item for item in (*live.provisioning_requests, *declared.provisioning_requests)}
    pairs += [(ref, part.pod_template) for ref, item in requests.items() if ref in held for part in item.pod_sets]
    return by_key((ObjectRef("", "PodTemplate", ref.namespace, name), ref) for ref, name in sorted(pairs))


class _Turn:
    """Decides in order what may go now, and counts what that takes."""

    def __init__(self, hour: PruneHour, caps: Caps, holding: Sequence[Bin]) -> None:
        self._hour, self._caps, self._holding = hour, caps, holding
        self._most_nodes = caps.most_nodes(hour.nodes_held)
        self._by_demand = by_key((ref, item) for item in holding for ref in {part.demand for part in item.chunks})
        self._going: set[ObjectRef] = set()

    def takes(self, ref: ObjectRef) -> bool:
        """Whether the object goes now. An object that was pruned in this hour and is still there counts once."""
        hour = self._hour
        if str(ref) not in hour.pruned and len(hour.pruned) >= self._caps.most_objects(hour.held):
            return False
        nodes = [item for item in self._only_for(ref) if item.name not in hour.released]
        if len(nodes) > self._most_nodes - hour.nodes_gone and not self._is_first_whole(ref):
            self._step_down(ref, nodes)
            return False
        self._hour = hour.but(
            pruned=hour.pruned | {str(ref)}, released=hour.released.union(item.name for item in nodes)
        )
        self._going.add(ref)
        return True

    def is_too_large(self, ref: ObjectRef) -> bool:
        """Whether this is a NodePool with more nodes than may ever go within an hour. All of them would go at once."""
        return ref.kind == _POOL and len(self._only_for(ref)) > self._most_nodes

    def held_in_pool(self, ref: ObjectRef) -> str:
        allow = 'a commit with the trailer "Headroom-Allow-Removals: true" allows it'
        return f"{len(self._only_for(ref)):,} of its nodes hold chunks, and at most {self._most_nodes:,} go within an hour; {allow}"

    def _only_for(self, ref: ObjectRef) -> list[Bin]:
        """Nodes that nothing else needs any more once this object is gone too. With a NodePool all of its nodes go."""
        if ref.kind == _POOL:
            return [item for item in self._holding if item.node_pool == ref.name]
        return [
            item
            for item in self._by_demand.get(ref, ())
            if all(part.demand == ref or part.demand in self._going for part in item.chunks)
        ]

    def _is_first_whole(self, ref: ObjectRef) -> bool:
        """What cannot be let down in steps goes as a whole, alone in an hour: else it would never go."""
        return ref.kind not in BUFFER_KINDS and not self._hour.nodes_gone

    def _step_down(self, ref: ObjectRef, nodes: Sequence[Bin]) -> None:
        """Takes from a buffer the chunks on as many nodes as may go, those with the fewest first. So no more nodes can get free."""
        if ref.kind not in BUFFER_KINDS:
            return
        sizes = {
            item.name: sum(part.count for part in item.chunks if part.demand == ref)
            for item in self._by_demand.get(ref, ())
        }
        freed = sorted(sizes[item.name] for item in nodes)[: max(0, self._most_nodes - self._hour.nodes_gone)]
        left = sum(sizes.values()) - sum(freed)
        known = self._hour.let_down
        let_down = {**known, str(ref): min(left, known.get(str(ref), left))}
        self._hour = self._hour.but(let_down=let_down, stepped=self._hour.stepped + len(freed))

    def waiting(self) -> WaitingDeletions:
        hour = self._hour
        return WaitingDeletions(
            most=self._caps.most_objects(hour.held),
            held=hour.held,
            most_nodes=self._most_nodes,
            nodes_held=hour.nodes_held,
            gone=len(hour.pruned),
            nodes_gone=hour.nodes_gone,
        )

    def after(self, waiting: Collection[ObjectRef]) -> PruneHour:
        names = {str(ref) for ref in waiting}
        return self._hour.but(let_down={name: count for name, count in self._hour.let_down.items() if name in names})


def with_waiting(outcomes: Iterable[DemandOutcome], pruning: Pruning) -> list[DemandOutcome]:
    """The outcomes; those of buffers and requests that wait to be deleted have a condition that says so."""
    waiting = pruning.waiting
    if not waiting:
        return list(outcomes)
    when = "nothing may be deleted at present"
    if waiting.next_at is not None:
        when = f"{waiting.cap}; the next by {waiting.next_at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
    message = f"Git no longer declares it, and it waits to be deleted: {when}"
    told = Condition(REMOVAL, ConditionStatus.TRUE, "WaitsForItsTurn", message)
    refs = frozenset(waiting.refs)
    return [
        replace(item, conditions=(*item.conditions, told)) if item.demand.ref in refs else item for item in outcomes
    ]


def let_down(demands: Iterable[Demand], view: ClusterView, declared: Declared) -> tuple[Demand, ...]:
    """The demands, those of buffers that are removed in steps with the chunks that are left. One that is declared again is whole."""
    value = view.inventory.records.get(PRUNES_KEY)
    left = value.get("letDown", {}) if isinstance(value, Mapping) else {}
    if not left:
        return tuple(demands)
    back = {str(item.ref) for item in declared.manifests} | {str(ref) for ref in declared.broken}
    return tuple(
        demand if str(demand.ref) in back else _with_at_most(demand, left.get(str(demand.ref))) for demand in demands
    )


def _with_at_most(demand: Demand, count: Any) -> Demand:
    if not isinstance(count, int) or demand.desired is None or demand.desired <= count:
        return demand
    groups = tuple(replace(group, count=min(group.count, count)) for group in demand.groups if count > 0)
    why = f"{count:,} left of {demand.desired:,}: it is no longer declared and goes in steps"
    return replace(demand, desired=count, groups=groups, explanation=(*demand.explanation, why))


def _takes_nodes_with_it(live: LiveObject) -> bool:
    """A whole NodePool that is not marked for deletion. One that was changed in part only gets its fields back."""
    annotations = annotations_of(live.body)
    is_whole = live.ref.kind == _POOL and PARTIAL_ANNOTATION not in annotations
    return is_whole and annotations.get(PRUNE_ANNOTATION) != "true"


def _kept_pool(ref: ObjectRef) -> Finding:
    message = "no longer declared, but stays: deleting it would delete its nodes"
    hint = f'annotate it with {PRUNE_ANNOTATION}: "true" to have it deleted, or delete it by hand'
    return codes.POOL_NOT_PRUNED.finding(message, ref=ref, hint=hint)


def _asleep(
    declared: Declared, view: ClusterView, members: frozenset[ObjectRef], applyset_id: str
) -> tuple[ObjectChange, ...]:
    """Members that are declared, but by their schedule must not exist at present. No share bounds them: their absence is declared, and at
    the next edge they are back."""
    return tuple(
        ObjectChange(ref, Action.DELETE, reason=why)
        for ref, why in sorted(declared.dormant.items())
        if ref in members and ref in view.objects and reason_to_keep(view.objects[ref], Declared(), applyset_id) is None
    )


def _partly_applied(view: ClusterView, applyset_id: str) -> frozenset[ObjectRef]:
    mark = partial_mark(applyset_id)
    return frozenset(
        ref for ref, live in view.objects.items() if annotations_of(live.body).get(PARTIAL_ANNOTATION) == mark
    )


def _order(ref: ObjectRef) -> tuple[int, ObjectRef]:
    """Templates and schedules after what refers to them: a buffer that has to wait for its turn keeps its capacity until then. NodePools
    last: with a pool go all its nodes."""
    return (_DELETE_AFTER.get(ref.kind, 0), ref)


def reason_to_keep(live: LiveObject, declared: Declared, applyset_id: str) -> str | None:
    """Why it stays. None: it may go; "": it is not headroom's, so it stays and no message says so."""
    annotations = annotations_of(live.body)
    source = annotations.get(SOURCE_ANNOTATION)
    broken = source if source in declared.broken_files else declared.named_in_broken.get(live.ref.name)
    if broken is not None:
        return f"{broken} has errors, so it may be missing there by mistake"
    is_suspended = annotations.get(SUSPEND_ANNOTATION) == "true"
    if is_suspended or annotations.get(PRUNE_ANNOTATION) == "disabled":
        return "it is suspended" if is_suspended else f"{PRUNE_ANNOTATION}: disabled"
    if CLAIM_ANNOTATION in annotations:
        return f"the repository of {annotations[CLAIM_ANNOTATION]} declares it too, and takes it over with {ADOPT_ANNOTATION}"
    if PARTIAL_ANNOTATION in annotations:
        return None if annotations[PARTIAL_ANNOTATION] == partial_mark(applyset_id) else ""
    labels = (live.body.get("metadata") or {}).get("labels") or {}
    if applyset_id and labels.get(PART_OF_LABEL) != applyset_id:
        return ""
    return None


def _removal(ref: ObjectRef, live: LiveObject) -> ObjectChange:
    if PARTIAL_ANNOTATION not in annotations_of(live.body):
        return ObjectChange(ref, Action.DELETE, reason="no longer declared")
    # Applying an empty object gives up every field that headroom owned, its marks included.
    metadata = {"name": ref.name} | ({"namespace": ref.namespace} if ref.namespace else {})
    bare: Manifest = {"apiVersion": live.body.get("apiVersion"), "kind": ref.kind, "metadata": metadata, "spec": {}}
    reason = "no longer declared: the fields that headroom set are given back, the object stays"
    return ObjectChange(ref, Action.UPDATE, manifest=bare, reason=reason)

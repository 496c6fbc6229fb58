"""What is placed: demands as batches, equal chunks that are placed together, and what each pod shape asks of its node."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import NamedTuple

from reconciler.model.buffers import Recreation
from reconciler.model.demand import Demand, Rank, rank_of_pods
from reconciler.model.nodes import HOSTNAME_LABEL
from reconciler.model.pods import NodeSelectorTerm, PodShape
from reconciler.model.quantity import CPU, MEMORY, Resources
from reconciler.model.refs import ObjectRef
from reconciler.model.requirements import Requirement
from reconciler.placement.arrays import EMPTY, LEAN, MINIMUM, RUNNING, USED, Amounts, ChunkArrays
from reconciler.placement.requirements import Requirements

_Parts = tuple[object, ...]


_apart_from_amounts = attrgetter(
    *("namespace", "labels", "node_selector", "required_node_terms", "preferred_node_terms", "tolerations"),
    *("topology_spread", "pod_affinity", "pod_anti_affinity", "attachment_terms", "obstacle", "own_taint"),
)


@dataclass(frozen=True, slots=True)
class NodeTerm:
    """One alternative of a node's requirements. literal: labels as written, for existing nodes. stable: with older label names
    replaced by the stable ones, for new nodes. names: requirements on the node's own name."""

    literal: Requirements
    stable: Requirements
    names: Requirements


@dataclass(frozen=True, slots=True)
class RelaxationStep:
    """One way to make a new node for a shape. wanted: one of its alternatives, with at most one preference added. soft_taints:
    whether the node may have PreferNoSchedule taints that are not tolerated."""

    wanted: Requirements
    soft_taints: bool


@dataclass(slots=True, eq=False)
class Needs:
    """A shape and what follows from it; never modified. terms: at least one must hold. equivalence_class: its number (see
    `KnownNeeds`), -1 for daemons, which need none."""

    shape: PodShape
    request: Amounts
    terms: tuple[NodeTerm, ...]
    relaxations: tuple[RelaxationStep, ...]
    equivalence_class: int = -1

    @property
    def affinity_terms(self) -> tuple[NodeTerm, ...]:
        """The terms from selector and affinity alone, without volumes, as spread constraints look at them."""
        shape = self.shape
        return tuple(terms_of(shape, ())) if shape.attachment_terms or shape.obstacle else self.terms


def needs_of(shape: PodShape, request: Amounts) -> Needs:
    terms = () if shape.obstacle else tuple(terms_of(shape, shape.attachment_terms))
    return Needs(shape, request, terms, tuple(_relaxations(shape, terms)))


class KnownNeeds:
    """The needs of every shape seen, computed once. Shapes that ask for the same nodes share their terms and relaxation steps. Shapes that
    differ only in requests and host ports are of one equivalence class, which has a number."""

    def __init__(self, request: Callable[[Resources], Amounts]) -> None:
        self._request = request
        self._numbers: dict[_Parts, int] = {}
        self._same: dict[tuple[int, ...], tuple[_Parts, int]] = {}
        """Numbers of classes by identity of the parts of a shape, which many shapes share and which are slow to hash. The parts are kept
        alive with the number, so that no other object gets their identity."""
        self._known: dict[int, Needs] = {}
        """By identity, since hashing a shape is slow. Needs keep their shape alive, so that no other object gets its identity."""
        self._of_class: dict[int, Needs] = {}
        self._alike: dict[tuple[object, ...], Needs] = {}

    def class_of(self, shape: PodShape) -> int:
        """The number of its equivalence class."""
        parts = _apart_from_amounts(shape)
        same = tuple(map(id, parts))
        known = self._same.get(same)
        if known is None:
            known = self._same[same] = parts, self._numbers.setdefault(parts, len(self._numbers))
        return known[1]

    def of(self, shape: PodShape) -> Needs:
        needs = self._known.get(id(shape))
        if needs is None:
            equivalence_class = self.class_of(shape)
            alike = self._of_class.get(equivalence_class)
            if alike is None:
                alike = self._of_class[equivalence_class] = self._alike_of(shape)
            request = self._request(shape.requests)
            needs = self._known[id(shape)] = Needs(shape, request, alike.terms, alike.relaxations, equivalence_class)
        return needs

    def _alike_of(self, shape: PodShape) -> Needs:
        parts = (
            *(shape.node_selector, shape.required_node_terms, shape.preferred_node_terms),
            *(shape.attachment_terms, shape.obstacle),
        )
        if parts not in self._alike:
            self._alike[parts] = needs_of(shape, self._request(shape.requests))
        return self._alike[parts]


def terms_of(shape: PodShape, places: Sequence[NodeSelectorTerm]) -> Iterable[NodeTerm]:
    for term in shape.required_node_terms or (NodeSelectorTerm(),):
        if shape.required_node_terms and not term.expressions and not term.fields:
            continue  # an empty term matches no node
        for place in places or (NodeSelectorTerm(),):
            expressions = (*term.expressions, *place.expressions)
            yield NodeTerm(
                literal=_wanted(shape, expressions, stable=False),
                stable=_wanted(shape, expressions, stable=True),
                names=Requirements.of((*term.fields, *place.fields), stable=False),
            )


def _wanted(shape: PodShape, expressions: Sequence[Requirement], *, stable: bool) -> Requirements:
    selector = Requirements.labels(shape.node_selector, stable=stable)
    return selector.both(Requirements.of(expressions, stable=stable))


def _relaxations(shape: PodShape, terms: Sequence[NodeTerm]) -> Iterable[RelaxationStep]:
    """The relaxation steps in Karpenter's order, which gives up one preference at a time, then soft taints."""
    # A new node has no name yet, so it can meet only requirements that exclude names.
    makeable = [term.stable for term in terms if all(values.absent for _, values in term.names.entries)]
    preferred = sorted(shape.preferred_node_terms, key=lambda term: -term.weight)
    for preference in preferred:
        extra = Requirements.of(preference.term.expressions)
        for wanted in makeable:
            if wanted.conflict(extra) is None:
                yield RelaxationStep(wanted.both(extra), soft_taints=False)
    for soft_taints in (False, True):
        for wanted in makeable:
            yield RelaxationStep(wanted, soft_taints)


_SOFT, _HARD = "ScheduleAnyway", "DoNotSchedule"


def firmer_shapes(shape: PodShape) -> tuple[PodShape, ...]:
    """The shapes with preferences as rules, the strictest first, without the shape itself; empty if it has no such preference."""
    spread = [
        item
        for item in shape.topology_spread
        if item.when_unsatisfiable == _SOFT and item.topology_key != HOSTNAME_LABEL
    ]
    if not shape.preferred_pod_affinity and not spread:
        return ()
    preferred = sorted(shape.preferred_pod_affinity, key=lambda item: -item.weight)
    rungs = [(number, len(spread)) for number in range(len(preferred))]
    rungs += [(len(preferred), count) for count in range(len(spread), 0, -1)]
    return tuple(
        replace(
            shape,
            pod_affinity=(*shape.pod_affinity, *(item.term for item in preferred[dropped:])),
            topology_spread=tuple(
                replace(item, when_unsatisfiable=_HARD) if item in spread[:kept] else item
                for item in shape.topology_spread
            ),
        )
        for dropped, kept in rungs
    )


class Member(NamedTuple):
    """One group of one demand in a batch."""

    demand: ObjectRef
    group: int
    size: int


@dataclass(slots=True, eq=False)
class Batch:
    """Equal chunks. Never modified, though not frozen: frozen ones take three times as long to create, and there are thousands.

    pods: whether they are pending pods, which count as running once placed.
    keeps_minimum: whether they are compared with allocatable less daemons, whatever else runs (see `Recreation`).
    opens_nodes: whether new nodes may be made for them.
    whole: a number that all batches of a demand share that is placed all or nothing; None for other batches.
    only_ready: whether only nodes that are ready now count.
    preferences: needs in which preferences are rules, the strictest first, for new nodes.
    part: the part of a node's load that its chunks are added to.
    counted: the part of a node's load that counts against their room.
    """

    number: int
    needs: Needs
    members: tuple[Member, ...]
    opens_nodes: bool
    rank: Rank
    pods: bool = False
    keeps_minimum: bool = False
    whole: int | None = None
    preferences: tuple[Needs, ...] = ()
    only_ready: bool = False
    count: int = field(init=False, default=0)
    part: int = field(init=False, default=EMPTY)
    counted: int = field(init=False, default=USED)

    def __post_init__(self) -> None:
        self.count = sum([member.size for member in self.members])
        if self.pods:
            self.part = RUNNING
        elif self.keeps_minimum:
            self.part, self.counted = MINIMUM, LEAN

    @property
    def arrays(self) -> ChunkArrays:
        """What a chunk requests and where it counts, in the form the loops read."""
        return self.needs.request, self.part, self.counted

    @property
    def waits(self) -> bool:
        """Whether they are pending pods that no node is made for. These are bound to free room before any new node comes up."""
        return self.pods and not self.opens_nodes

    @property
    def demand(self) -> ObjectRef:
        return self.members[0].demand


RANK_OF = attrgetter("rank")
_ORDER = attrgetter("order")


def batches_of(demands: Sequence[Demand], needs: Callable[[PodShape], Needs], *, include_pending: bool) -> list[Batch]:
    pending: list[Demand] = []
    others: list[Demand] = []
    for demand in demands:
        (pending if demand.is_pending_pod else others).append(demand)
    batches = _pending_batches(pending, needs, include_pending=include_pending)
    for number, demand in enumerate(sorted(others, key=_ORDER)):
        for index, group in enumerate(demand.groups):
            if group.count > 0:
                batches.append(
                    Batch(
                        number=len(batches),
                        needs=needs(group.shape),
                        members=(Member(demand.ref, index, group.count),),
                        keeps_minimum=demand.recreation is Recreation.KEEP_MINIMUM,
                        opens_nodes=demand.opens_nodes,
                        rank=demand.rank,
                        whole=number if demand.whole else None,
                        preferences=tuple(map(needs, firmer_shapes(group.shape))) if demand.opens_nodes else (),
                        only_ready=demand.only_ready,
                    )
                )
    return batches


def _pending_batches(
    pending: Iterable[Demand], needs: Callable[[PodShape], Needs], *, include_pending: bool
) -> list[Batch]:
    together: dict[tuple[int, PodShape, bool], list[Member]] = {}
    same: dict[tuple[int, int, bool], list[Member]] = {}  # by identity, since looking a shape up is slow
    for demand in sorted(pending, key=_BY_REF):
        opens = include_pending and demand.opens_nodes
        for index, group in enumerate(demand.groups):
            key = (demand.priority, id(group.shape), opens)
            members = same.get(key)
            if members is None:
                members = same[key] = together.setdefault((demand.priority, group.shape, opens), [])
            members.append(Member(demand.ref, index, group.count))
    # The sort is stable, so equals stay in the order of their first members' names.
    order = sorted(together.items(), key=_turn)
    ranks = {priority: rank_of_pods(priority) for priority in {priority for priority, _, _ in together}}
    return [
        Batch(
            number=number,
            needs=needs(shape),
            members=tuple(members),
            pods=True,
            opens_nodes=opens,
            rank=ranks[priority],
            preferences=tuple(map(needs, firmer_shapes(shape))) if opens else (),
        )
        for number, ((priority, shape, opens), members) in enumerate(order)
    ]


def _turn(pending: tuple[tuple[int, PodShape, bool], list[Member]]) -> tuple[int, int, int, int]:
    (priority, shape, opens), _ = pending
    return (-priority, _choice(shape) if opens else 0, -shape.requests.get(CPU), -shape.requests.get(MEMORY))


def _choice(shape: PodShape) -> int:
    """How much choice of new nodes the rules between pods leave; a larger number is more choice.

    0 with affinity, anti-affinity or spread over zones. 1 with spread over hosts, since one more node meets it. 2 without rules.
    """
    if shape.pod_affinity or shape.pod_anti_affinity:
        return 0
    if not shape.topology_spread:
        return 2
    return int(all(spread.topology_key == HOSTNAME_LABEL for spread in shape.topology_spread))


_BY_REF = attrgetter("ref")

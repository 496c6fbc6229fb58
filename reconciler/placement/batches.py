"""Demands as batches: equal chunks that are placed together, in the order of placing.

Pending pods come first, the highest priority first. Of equal priority, pods with the least choice of nodes come first, and of these
the largest. So small pods without constraints fill the gaps. Pods of equal shape are one batch. Then come demands in their order,
with a batch for each group.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import NamedTuple

from reconciler.model.buffers import Recreation
from reconciler.model.demand import Demand, Rank, rank_of_pods
from reconciler.model.nodes import HOSTNAME_LABEL
from reconciler.model.pods import PodShape
from reconciler.model.quantity import CPU, MEMORY
from reconciler.model.refs import ObjectRef
from reconciler.placement.arrays import EMPTY, LEAN, MINIMUM, RUNNING, USED, ChunkArrays
from reconciler.placement.needs import Needs, firmer_shapes


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
    pods: bool
    keeps_minimum: bool
    opens_nodes: bool
    rank: Rank
    whole: int | None
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
                        pods=False,
                        keeps_minimum=demand.recreation is Recreation.KEEP_MINIMUM,
                        opens_nodes=demand.opens_nodes,
                        rank=demand.rank,
                        whole=number if demand.whole else None,
                        preferences=_preferences(group.shape, needs) if demand.opens_nodes else (),
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
            *(number, needs(shape), tuple(members), True, False, opens, ranks[priority], None),
            _preferences(shape, needs) if opens else (),
        )
        for number, ((priority, shape, opens), members) in enumerate(order)
    ]


def _turn(pending: tuple[tuple[int, PodShape, bool], list[Member]]) -> tuple[int, int, int, int]:
    (priority, shape, opens), _ = pending
    amounts = dict(shape.requests.amounts)
    return (-priority, _choice(shape) if opens else 0, -amounts.get(CPU, 0), -amounts.get(MEMORY, 0))


def _choice(shape: PodShape) -> int:
    """How much choice of new nodes the rules between pods leave; a larger number is more choice.

    0 with affinity, anti-affinity or spread over zones. 1 with spread over hosts, since one more node meets it. 2 without rules.
    """
    if shape.pod_affinity or shape.pod_anti_affinity:
        return 0
    if not shape.topology_spread:
        return 2
    return int(all(spread.topology_key == HOSTNAME_LABEL for spread in shape.topology_spread))


def _preferences(shape: PodShape, needs: Callable[[PodShape], Needs]) -> tuple[Needs, ...]:
    if not shape.preferred_pod_affinity and not shape.topology_spread:  # most shapes
        return ()
    return tuple(map(needs, firmer_shapes(shape)))


_BY_REF = attrgetter("ref")

"""Opens held nodes to the pods of another node that they have room for beside their chunks, so that Karpenter can consolidate that node.

Karpenter knows nothing of chunks. While held nodes are open, other nodes' pods may come there as well. So placements judge first whether the
chunks keep their room whichever nodes Karpenter consolidates, and judge again in each pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf

from reconciler.model.departures import Departure
from reconciler.model.pods import Pod, PodShape
from reconciler.model.refs import ObjectRef
from reconciler.model.view import ClusterView
from reconciler.placement.memory import Memory
from reconciler.placement.place import place
from reconciler.plan.bins import Bin
from reconciler.plan.cost import Prices
from reconciler.plan.holding.consolidation import OPEN, Candidate, is_guest
from reconciler.stages.moved_pods import arrived, chunks_as_pods, moving, would_go
from reconciler.stages.state import PassState

MOST_RISKS = 8
"""Other nodes that are judged by a placement each. Where there are more, no held node is opened."""


@dataclass(frozen=True, slots=True)
class Opening:
    """pods: the running ones by node. shapes: of chunks, by demand and group."""

    state: PassState
    bins: Sequence[Bin]
    pods: Mapping[str, tuple[Pod, ...]]
    shapes: Mapping[tuple[ObjectRef, int], PodShape]
    memory: Memory

    def opened(self, guests: Iterable[Candidate]) -> PassState:
        """The state in which held nodes are open to the pods of one of these nodes, or else the same state."""
        held = [item for item in self.bins if item.chunks and item.is_marked and item.is_tainted and not item.is_going]
        for guest in guests if held else ():
            hosts = self._hosts(guest.bin, held)
            if hosts and self._chunks_keep_room(guest.bin, hosts):
                now = self.state.cluster_now
                names = tuple(item.name for item in hosts)
                admitted = Departure(guest.bin.name, now, now + guest.wait + OPEN, guest.price, admits=names)
                return replace(self.state, departures=(*self.state.departures, admitted))
        return self.state

    def judged_again(self) -> PassState:
        """The state in which held nodes are closed where other pods could take their chunks' room by now."""
        now, by_name = self.state.cluster_now, {item.name: item for item in self.bins}
        departures = []
        for known in self.state.departures:
            guest = by_name.get(known.node)
            is_open = bool(known.admits) and known.is_under_way(now) and guest is not None and not guest.is_going
            hosts = [by_name[name] for name in known.admits if name in by_name]
            safe = not is_open or guest is None or self._chunks_keep_room(guest, hosts)
            departures.append(known if safe else replace(known, until=now))
        return replace(self.state, departures=tuple(departures))

    def _hosts(self, guest: Bin, held: Sequence[Bin]) -> list[Bin]:
        """The held nodes that the guest's pods would come to if chunks were pods; none where its pods do not all find room."""
        room = self._with_chunks(self.state.prepared.room, held)
        answer = place(
            moving(self.state, self.pods[guest.name], room, {guest.name}, most_price=None), memory=self.memory
        )
        entered = {pod.node_name for pod in arrived(self.pods[guest.name], answer)}
        return [] if answer.unplaced else [item for item in held if item.name in entered]

    def _chunks_keep_room(self, guest: Bin, hosts: Sequence[Bin]) -> bool:
        """Whether no other node can go whose pods fit on the hosts, but not beside the guest's pods and the chunks. Each is judged alone and
        all are judged together, since Karpenter may take several at once."""
        names = {item.name for item in hosts}
        others = {item.name for item in self.bins} - names
        room = self.state.prepared.room
        came = self._arrived(self.pods.get(guest.name, ()), self._with_chunks(room, hosts), others)
        full = replace(room, pods=(*(pod for pod in room.pods if pod.node_name != guest.name), *came))
        full = self._with_chunks(full, hosts)
        risks = []
        for item in self.bins:
            own = self.pods.get(item.name, ())
            if item.name == guest.name or not own or not is_guest(item):
                continue
            if len(self._arrived(own, full, others)) < len(own) and self._arrived(own, room, others):
                risks.append(item)
            if len(risks) > MOST_RISKS:
                return False
        closed = {item.name for item in self.bins if item.is_marked} - names
        return not any(self._would_go(some, closed, room) for some in (*([item] for item in risks), risks) if some)

    def _would_go(self, items: Sequence[Bin], closed: set[str], room: ClusterView) -> bool:
        prices = Prices(self.state.instance_types)
        pods = [pod for item in items for pod in self.pods[item.name]]
        price = sum(inf if (known := prices.of(item)) is None else known for item in items)
        away = closed | {item.name for item in items}
        return would_go(self.state, pods, price, room, away, self.memory)

    def _arrived(self, pods: Sequence[Pod], room: ClusterView, closed: set[str]) -> tuple[Pod, ...]:
        """Those of the pods that fit on nodes which are not closed to them."""
        return arrived(pods, place(moving(self.state, pods, room, closed, most_price=None), memory=self.memory))

    def _with_chunks(self, room: ClusterView, hosts: Iterable[Bin]) -> ClusterView:
        """The room in which the hosts' chunks are pods."""
        chunks = (pod for item in hosts for pod in chunks_as_pods(item.name, item.chunks, self.shapes))
        return replace(room, pods=(*room.pods, *chunks))

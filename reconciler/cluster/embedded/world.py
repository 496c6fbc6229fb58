"""What the embedded cluster's controllers share: the objects, a typed view of them, the time, timers, and what the provider sells.

Time passes only in `advance`. Whatever becomes due happens in order and at its own instant, however far the clock jumps. So a test
with its own clock sees the same as a demo in real time.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cached_property, lru_cache
from itertools import count
from typing import Any, Protocol

from reconciler.cluster.apply import InventoryParent
from reconciler.cluster.embedded.store import Body, ObjectStore
from reconciler.cluster.resources import BY_KIND
from reconciler.cluster.view import ViewStore
from reconciler.manifests import node_pool
from reconciler.manifests.kind import Origin
from reconciler.model.errors import Transient
from reconciler.model.launch_options import LaunchOption, LaunchOptions
from reconciler.model.nodes import KARPENTER_GROUP, NODEPOOL_LABEL, InstanceType, Node, NodeClaim, NodePool
from reconciler.model.pods import Pod
from reconciler.model.quantity import Resources, time_text
from reconciler.model.refs import ObjectRef
from reconciler.model.requirements import Requirement


class Market:
    """Not thread-safe: the embedded cluster guards it."""

    def __init__(self, instance_types: Iterable[InstanceType]) -> None:
        self.instance_types = tuple(sorted(instance_types, key=lambda item: item.name))
        self.sold_out: set[tuple[str, str, str]] = set()
        """Instance type, zone and capacity type of what tests take off the market."""

    @cached_property
    def _room(self) -> dict[str, Resources]:
        return {item.name: item.allocatable for item in self.instance_types}

    @cached_property
    def _options(self) -> Callable[[tuple[Requirement, ...], tuple[tuple[str, str], ...]], list[LaunchOption]]:
        """Controllers ask the same of each NodePool again and again."""
        options = LaunchOptions(self.instance_types)
        return lru_cache(maxsize=256)(lambda wanted, labels: list(options.admitted(wanted, dict(labels))))

    def purchases(
        self,
        requirements: Iterable[Requirement],
        labels: Mapping[str, str],
        requests: Resources,
        *,
        in_stock: bool = True,
    ) -> list[LaunchOption]:
        """Every way to launch a node that meets the requirements and holds the requests, cheapest first.

        labels: those that the node has in any case. in_stock False: includes what is sold out.
        """
        fitting = {name for name, room in self._room.items() if requests.fits(room)}
        return [
            option
            for option in self._options(tuple(requirements), tuple(labels.items()))
            if option.instance_type.name in fitting and (not in_stock or self._is_in_stock(option))
        ]

    def _is_in_stock(self, option: LaunchOption) -> bool:
        return option.offering.available and option.place not in self.sold_out


MOST_ROUNDS = 1000
"""The most rounds of all controllers in one instant. A few are usual."""


class Controller(Protocol):
    """A controller of the cluster. notice: remembers a changed object. reconcile: acts on what was noticed."""

    def notice(self, ref: ObjectRef, before: Body | None, after: Body | None) -> None: ...

    def reconcile(self) -> None: ...


class _Picture:
    """Nodes and NodeClaims by name, valid until one changes."""

    def __init__(self, nodes: tuple[Node, ...], claims: tuple[NodeClaim, ...]) -> None:
        self.nodes_seen, self.claims_seen = nodes, claims
        self.nodes = {node.name: node for node in nodes}
        self.claims = {claim.name: claim for claim in claims}
        self.claims_by_node = {claim.node_name: claim for claim in claims if claim.node_name}


class World:
    """Not thread-safe: the embedded cluster guards it."""

    def __init__(
        self,
        *,
        now: datetime,
        market: Market,
        inventory: InventoryParent,
        controllers: Callable[[], Sequence[Controller]],
        makes_namespaces: bool = False,
    ) -> None:
        """controllers: makes them, once there is an object."""
        self.now = now
        self.market = market
        self.views = ViewStore(inventory, catalog=market.instance_types)
        self.store = ObjectStore(lambda: self.now, self._noticed, makes_namespaces=makes_namespaces)
        self._make_controllers = controllers
        self.view_changed = False
        self._timers: list[tuple[datetime, int, Callable[[], None]]] = []
        self._order = count()
        self._pools: dict[str, tuple[Body, NodePool | None]] = {}
        self._settled = True
        self._seen = _Picture((), ())
        self._busy: tuple[tuple[Pod, ...], set[str | None]] = ((), set())

    @cached_property
    def _controllers(self) -> Sequence[Controller]:
        return self._make_controllers()

    def at(self, time: datetime, action: Callable[[], None]) -> None:
        """Schedules an action. With the present time it runs in this instant, after everything else has settled."""
        heapq.heappush(self._timers, (max(time, self.now), next(self._order), action))

    @property
    def next_timer(self) -> datetime | None:
        return self._timers[0][0] if self._timers else None

    def advance(self, to: datetime) -> None:
        """Simulates everything that becomes due until then. If the clock was set back, the timers move with it."""
        if to < self.now - timedelta(seconds=1):
            back = self.now - to
            self._timers = [(time - back, order, action) for time, order, action in self._timers]
            self.now = to
        self.settle()
        while self._timers and self._timers[0][0] <= to:
            self.now = max(self.now, self._timers[0][0])
            due = []
            while self._timers and self._timers[0][0] <= self.now:
                due.append(heapq.heappop(self._timers)[2])
            for action in due:
                action()
            self.settle()
        self.now = max(self.now, to)

    def settle(self) -> None:
        """Lets every controller act until none has anything left to do. Raises `Transient` if that never happens."""
        for _ in range(MOST_ROUNDS):
            if self._settled:
                return
            self._settled = True
            for controller in self._controllers:
                controller.reconcile()
        raise Transient(
            "the controllers of the embedded cluster undo each other's work",
            hint="look for two workloads of the snapshot that are after the same pods",
        )

    # The typed view, for controllers

    def node(self, name: str) -> Node | None:
        return self._picture().nodes.get(name)

    def node_claim(self, name: str) -> NodeClaim | None:
        return self._picture().claims.get(name)

    def claim_of(self, node: str) -> NodeClaim | None:
        return self._picture().claims_by_node.get(node)

    def claims_in(self, pool: str) -> list[NodeClaim]:
        """The NodeClaims of a NodePool, by name."""
        return [claim for claim in self.views.view().node_claims if claim.label(NODEPOOL_LABEL) == pool]

    def is_empty(self, node: str) -> bool:
        """Whether the node has only daemon pods, which come and go with it."""
        pods = self.views.view().pods
        if self._busy[0] is not pods:
            self._busy = (pods, {pod.node_name for pod in pods if not pod.is_daemon})
        return node not in self._busy[1]

    def _picture(self) -> _Picture:
        view = self.views.view()
        if self._seen.nodes_seen is not view.nodes or self._seen.claims_seen is not view.node_claims:
            self._seen = _Picture(view.nodes, view.node_claims)
        return self._seen

    def node_pools(self) -> dict[str, NodePool]:
        """The readable NodePools by name."""
        found = {ref.name: self._pool(ref, body) for ref, body in self.store.all(KARPENTER_GROUP, "NodePool")}
        return {name: pool for name, pool in found.items() if pool is not None}

    def _pool(self, ref: ObjectRef, body: Body) -> NodePool | None:
        known = self._pools.get(ref.name)
        if known is None or known[0] is not body:
            known = self._pools[ref.name] = (body, node_pool.read(ref, body, Origin()))
        return known[1]

    # What controllers write

    @property
    def stamp(self) -> str:
        """The present, as Kubernetes writes it."""
        return time_text(self.now)

    def set_condition(self, body: dict[str, Any], kind: str, status: str, reason: str = "") -> None:
        """Replaces the condition of that type, or adds it. If the status is unchanged, so is the transition time."""
        row = {"type": kind, "status": status, "reason": reason, "message": "", "lastTransitionTime": self.stamp}
        rows = list((body.get("status") or {}).get("conditions") or ())
        index = next((index for index, old in enumerate(rows) if old.get("type") == kind), len(rows))
        if index < len(rows) and rows[index].get("status") == status:
            row["lastTransitionTime"] = rows[index].get("lastTransitionTime", row["lastTransitionTime"])
        rows[index:] = [row, *rows[index + 1 :]]
        body["status"] = {**(body.get("status") or {}), "conditions": rows}

    def _noticed(self, ref: ObjectRef, before: Body | None, after: Body | None) -> None:
        self._settled = False
        key = (ref.group, ref.kind)
        resource = BY_KIND.get(key) or self.store.scaled.get(key)
        if resource is not None:
            changed = (
                self.views.remove(resource, ref.namespace, ref.name)
                if after is None
                else self.views.put(resource, after)
            )
            self.view_changed = self.view_changed or changed
        for controller in self._controllers:
            controller.notice(ref, before, after)

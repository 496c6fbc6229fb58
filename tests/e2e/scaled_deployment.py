"""A buffered Deployment that is scaled in random steps, and what was seen of it: pods that waited, nodes that came and went.

Everything is judged afterwards, from the changes in the order in which the API server told them.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from math import ceil, inf
from random import Random
from types import TracebackType
from typing import Any, Self

from tests.controlplane.rest import Document
from tests.controlplane.watching import Change, Watch
from tests.e2e.daemon_process import DaemonProcess
from tests.e2e.shop import CLAIM, Shop

HOLD = "karpenter.sh/do-not-disrupt"
HELD = "headroom.dev/held"
DISRUPTED = "karpenter.sh/disrupted"
MOST_PODS = 14
MOST_STEP = 5


@dataclass(frozen=True)
class Scale:
    """after: replicas from now on. wait: seconds until the next one."""

    after: int
    wait: float


def scales(seed: int, *, start: int, seconds: float, waits: tuple[float, float] = (20, 40)) -> Iterator[Scale]:
    """Steps up and down that never leave the replicas as they are, for as long as that."""
    random, replicas, passed = Random(seed), start, 0.0
    while passed < seconds:
        choices = [step for step in range(-MOST_STEP, MOST_STEP + 1) if step and 0 <= replicas + step <= MOST_PODS]
        replicas += random.choice(choices)
        wait = round(random.uniform(*waits), 1)
        passed += wait
        yield Scale(replicas, wait)


@dataclass(frozen=True)
class Step:
    """One that was taken. full: how many chunks the buffer said that it holds just before, 0 where it was short."""

    at: float
    before: int
    after: int
    full: int

    @property
    def has_room(self) -> bool:
        """Whether every pod that it adds finds room in the buffer."""
        return self.after - self.before <= self.full


class ScaledDeployment:
    """The Deployment, and all that happens around it within the `with` block. chunks: of its buffer, for so many replicas."""

    def __init__(self, shop: Shop, daemon: DaemonProcess, *, per_node: int, percent: int = 0, chunks: int = 0) -> None:
        self._shop = shop
        self._daemon = daemon
        self._per_node = per_node
        self._percent, self._chunks = percent, chunks
        self._replicas = 0
        self._watches = ExitStack()
        self._began = 0.0
        self._wall = time.time() - time.monotonic()
        self.steps: list[Step] = []
        self._pods = Watch(shop.api, "v1", "Pod", namespace="shop")
        self._nodes = Watch(shop.api, "v1", "Node")
        self._claims = Watch(shop.api, *CLAIM)

    def __enter__(self) -> Self:
        for watch in (self._pods, self._nodes, self._claims):
            self._watches.enter_context(watch)
        self._began = time.monotonic()
        self._replicas = len(self._shop.pods())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._watches.close()

    def scale(self, replicas: int) -> None:
        full = self._full()
        self.steps.append(Step(time.monotonic(), self._replicas, replicas, full))
        self._replicas = replicas
        self._shop.scale(replicas)

    # What was seen

    def waited(self) -> list[str]:
        """Pods that kube-scheduler found no node for, though the buffer was full for the step that they came with."""
        found = [
            change.name
            for change in self._pods.changes
            if change.kind != "DELETED" and _is_unschedulable(change.object)
        ]
        born = {change.name: change.at for change in self._pods.changes if change.kind == "ADDED"}
        return [
            f"{name}, {self._moment(born[name])}"
            for name in dict.fromkeys(found)
            if (step := self._step_at(born[name])) is None or step.has_room
        ]

    def taken_while_held(self) -> list[str]:
        """Nodes and NodeClaims that began to go in spite of headroom's protection."""
        found = []
        for watch in (self._nodes, self._claims):
            held: set[str] = set()
            gone: set[str] = set()
            for change in watch.changes:
                if change.at > self._began and change.uid in held and change.uid not in gone and _is_going(change):
                    found.append(f"{change.object['kind']} {change.name}, {self._moment(change.at)}")
                if _is_going(change):
                    gone.add(change.uid)
                annotations = change.object["metadata"].get("annotations", {})
                held = held | {change.uid} if HELD in annotations and HOLD in annotations else held - {change.uid}
        return found

    def created(self) -> int:
        """NodeClaims that were made since the beginning, whoever made them."""
        return sum(change.kind == "ADDED" and change.at > self._began for change in self._claims.changes)

    def removals(self) -> list[float]:
        """When NodeClaims began to be deleted."""
        going: dict[str, float] = {}
        for change in self._claims.changes:
            if change.at > self._began and (change.kind == "DELETED" or _is_going(change)):
                going.setdefault(change.uid, change.at)
        return sorted(going.values())

    def least_created(self) -> int:
        """NodeClaims that nobody could have done without, who knew nothing of the steps to come.

        At each moment there must be nodes for the replicas and the chunks, packed without gaps. A node may be given up only
        when Karpenter really took one, and only if there was one too many; so Karpenter's own pace is taken as it was.
        """
        there = self._needed(self.steps[0].before)
        needed, made = there, 0
        moments = [(step.at, self._needed(step.after)) for step in self.steps] + [(at, 0) for at in self.removals()]
        for _, wanted in sorted(moments):
            if wanted:
                needed = wanted
                made += max(0, needed - there)
                there = max(there, needed)
            elif there > needed:
                there -= 1
        return made

    def passes_with_writes(self) -> list[float]:
        """When the daemon's passes ended that wrote something, by its log."""
        found = []
        for line in self._daemon.log().splitlines():
            if not line.startswith("{"):
                continue
            entry: dict[str, Any] = json.loads(line)
            if entry.get("event") == "pass" and entry["applied"] + entry["statuses"]:
                at = datetime.fromisoformat(entry["time"]).timestamp() - self._wall
                if at > self._began:
                    found.append(at)
        return found

    def passes_after_each_step(self) -> list[tuple[int, int]]:
        """Before the next step: passes that wrote something, and events that they may answer, the step and each node that went."""
        passes, removals = self.passes_with_writes(), self.removals()
        ends = [*(step.at for step in self.steps[1:]), inf]
        return [
            (sum(step.at <= at < end for at in passes), 1 + sum(step.at <= at < end for at in removals))
            for step, end in zip(self.steps, ends, strict=True)
        ]

    def idle_seconds(self) -> list[float]:
        """For how long each node that went had been needed by nobody: no pod ran there and headroom did not hold it."""
        occupied: dict[str, set[str]] = {}
        idle: dict[str, float] = {}
        held: dict[str, bool] = {}
        found = []
        changes = sorted((*self._pods.changes, *self._nodes.changes), key=lambda change: change.at)
        for change in changes:
            if change.object["kind"] == "Pod":
                self._move(change, occupied)
            elif _is_going(change):
                if change.name in idle:
                    found.append(change.at - idle.pop(change.name))
                held[change.name] = True
                continue
            else:
                held[change.name] = HELD in change.object["metadata"].get("annotations", {})
            for name, is_held in held.items():
                if is_held or occupied.get(name):
                    idle.pop(name, None)
                else:
                    idle.setdefault(name, change.at)
        return found

    @staticmethod
    def _move(change: Change, occupied: dict[str, set[str]]) -> None:
        for pods in occupied.values():
            pods.discard(change.uid)
        node = change.object["spec"].get("nodeName")
        if node and change.kind != "DELETED":
            occupied.setdefault(node, set()).add(change.uid)

    def _needed(self, replicas: int) -> int:
        return ceil((replicas + self.chunks(replicas)) / self._per_node)

    def chunks(self, replicas: int) -> int:
        return max(self._chunks, ceil(replicas * self._percent / 100))

    def _full(self) -> int:
        status = self._shop.buffer().get("status", {})
        is_full = any(
            item["type"] == "Provisioning" and item["status"] == "True" for item in status.get("conditions", ())
        )
        return int(status.get("replicas", 0)) if is_full else 0

    def _step_at(self, at: float) -> Step | None:
        return next((step for step in reversed(self.steps) if step.at <= at), None)

    def _moment(self, at: float) -> str:
        number = sum(step.at <= at for step in self.steps)
        step = self._step_at(at)
        where = f"{at - step.at:.1f} s after step {number}, {step.before} to {step.after}" if step else "at first"
        return f"{where} ({at - self._began:.0f} s)"


def _is_unschedulable(pod: Document) -> bool:
    return any(
        item["type"] == "PodScheduled" and item["status"] == "False" and item.get("reason") == "Unschedulable"
        for item in pod.get("status", {}).get("conditions", ())
    )


def _is_going(change: Change) -> bool:
    taints = change.object.get("spec", {}).get("taints", ())
    return (
        change.kind == "DELETED"
        or "deletionTimestamp" in change.object["metadata"]
        or any(taint["key"] == DISRUPTED for taint in taints)
    )

"""What a buffer costs over its life on real Karpenter: headroom beside Karpenter's own feature gate, at the same time.

python -m tests.perf.buffer_lives [--random N] [--seconds S]

Each of the two has a control plane of its own. All lives run on it side by side, each in a namespace and on a NodePool of its own, whose
taint keeps the others away. Beside the gate the same pods live without any buffer: what Karpenter itself pays above planning from scratch. Nodes are priced as the KWOK provider prices them, and everything is counted every half second. Takes as long as
the longest life: about 25 minutes.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from reconciler.manifests.instance_types import synthetic_instance_types
from reconciler.manifests.repository.declared import read
from reconciler.model.nodes import CAPACITY_TYPE_LABEL, HELD_ANNOTATION, HOLDS_ANNOTATION, INSTANCE_TYPE_LABEL
from reconciler.model.requirements import Toleration
from reconciler.model.view import ClusterView
from reconciler.placement.place import place
from reconciler.placement.problem import PlacementOptions, Problem
from tests.builders import demand, shape
from tests.controlplane import ControlPlane
from tests.controlplane.actors import GATE
from tests.controlplane.documents import NODE_POOL as NODE_POOL_LABEL
from tests.controlplane.rest import Document, Rest
from tests.e2e.daemon_process import DaemonProcess, install_rbac
from tests.e2e.shop import BUFFER, NODE_POOL, Shop, buffer_of, deployment
from tests.git_repository import GitRepository
from tests.perf.refill import DEFAULTS
from tests.properties.lives import chunks_in

EVERY = 0.5
SETTLED = 60.0
"""Seconds after a change in which a buffer may be short: nodes that are needed have to start."""
SEEN_TWICE = 2
"""Looks at which a pod must be without a node to count as waiting: a pod that was moved is bound within one of them."""


@dataclass(frozen=True)
class Step:
    """So many pods and chunks, for so many seconds."""

    pods: int
    chunks: int
    seconds: int


@dataclass
class Bill:
    """dollars: paid over the life; held: of those, for nodes that headroom held; from_scratch: for new nodes planned at once for each step. at_the_end: USD an hour, and how long after the
    last change it was reached. waited: pod-seconds without a node; in_vain: those while the buffer was full, or in steps for which it was
    large enough. short: seconds in which the buffer was not full, later than `SETTLED` after a change. moves: of chunks from node to node,
    the most for a chunk within one step.
    """

    dollars: float = 0.0
    held: float = 0.0
    from_scratch: float = 0.0
    at_the_end: float = 0.0
    reached: float = 0.0
    waited: float = 0.0
    in_vain: float = 0.0
    short: float = 0.0
    moves: float = 0.0


def random_life(seed: int, seconds: int) -> tuple[Step, ...]:
    chance = random.Random(seed)
    return tuple(Step(chance.randint(1, 60), chance.randint(1, 14), seconds // 5) for _ in range(5))


def lives_of(count: int, seconds: int) -> dict[str, tuple[Step, ...]]:
    third = seconds // 3
    return {
        "60 pods become 2, a buffer of 2": (Step(60, 2, third), Step(2, 2, seconds - third)),
        "no pods, a buffer of 14 becomes 1": (Step(0, 14, third), Step(0, 1, seconds - third)),
        **{f"random life {seed}": random_life(seed, seconds) for seed in range(count)},
    }


def pool_text(name: str) -> str:
    return (
        NODE_POOL.replace("name: general", f"name: {name}")
        .replace("value: shop", f"value: {name}")
        .replace("consolidateAfter: 0s", "consolidateAfter: 15s")
        .replace('values: ["4", "8"]', 'values: ["2", "4", "8", "16", "32", "64"]')
        .replace('limits: {cpu: "200"}', 'limits: {cpu: "400"}')
    )


def buffer_text(name: str, chunks: int) -> str:
    return buffer_of(chunks).replace("namespace: shop", f"namespace: {name}")


def workload(name: str) -> Document:
    """The shop's deployment in the life's namespace, on the life's nodes; no pods yet."""
    text = json.dumps(deployment(0))
    found: Document = json.loads(text.replace('"namespace": "shop"', f'"namespace": "{name}"'))
    found["spec"]["template"]["spec"]["tolerations"][0]["value"] = name
    return found


@cache
def prices() -> Mapping[tuple[str, str], float]:
    """USD an hour by instance type and capacity type."""
    return {
        (kind.name, offering.capacity_type): offering.price
        for kind in synthetic_instance_types()
        for offering in kind.offerings
    }


@cache
def from_scratch(count: int) -> float:
    """USD an hour of new nodes for so many pods and chunks, which have one shape here, planned together on an empty cluster."""
    pools = read({"pool.yaml": pool_text("general").encode()}).node_pools
    like_a_pod = shape("1", "512Mi", tolerations=[Toleration("dedicated", "Equal", "general", "NoSchedule")])
    answer = place(
        Problem(
            ClusterView(),
            pools,
            synthetic_instance_types(),
            (demand(count=count, pod_shape=like_a_pod),),
            options=PlacementOptions(optimal=True),
        )
    )
    assert not answer.unplaced
    return sum(node.price for node in answer.planned)


@dataclass
class Looks:
    """What was seen of one life until now."""

    bill: Bill = field(default_factory=Bill)
    unbound: Counter[str] = field(default_factory=Counter)
    held: Counter[str] = field(default_factory=Counter)
    full: bool = False

    def nodes(self, nodes: Iterable[Document], seconds: float, since_change: float) -> int:
        """Adds what the nodes cost; returns how many chunks came to a node since the last look."""
        hourly = 0.0
        held: Counter[str] = Counter()
        for node in nodes:
            label, annotations = node["metadata"]["labels"], node["metadata"].get("annotations") or {}
            if INSTANCE_TYPE_LABEL not in label:
                continue
            price = prices()[label[INSTANCE_TYPE_LABEL], label[CAPACITY_TYPE_LABEL]]
            hourly += price
            if annotations.get(HELD_ANNOTATION) == "true":
                held[node["metadata"]["name"]] = chunks_in(annotations.get(HOLDS_ANNOTATION, ""))
                self.bill.held += price * seconds / 3600
        if abs(hourly - self.bill.at_the_end) > 1e-9:
            self.bill.at_the_end, self.bill.reached = hourly, since_change
        self.bill.dollars += hourly * seconds / 3600
        came = (held - self.held).total()
        self.held = held
        return came

    def pods(self, pods: Iterable[Document], seconds: float, *, promised: bool) -> None:
        waiting = {pod["metadata"]["uid"] for pod in pods if "nodeName" not in pod["spec"]}
        self.unbound = Counter({uid: self.unbound[uid] + 1 for uid in waiting})
        lasting = sum(count >= SEEN_TWICE for count in self.unbound.values())
        self.bill.waited += len(waiting) * seconds
        if promised:
            self.bill.in_vain += lasting * seconds

    def buffer(self, buffer: Document, chunks: int, seconds: float, since_change: float) -> None:
        status = buffer.get("status") or {}
        told = {item["type"]: item["status"] for item in status.get("conditions", [])}
        self.full = told.get("Provisioning") == "True" and status.get("replicas") == chunks
        if not self.full and since_change > SETTLED:
            self.bill.short += seconds


def lived(api: Rest, name: str, steps: tuple[Step, ...], apply: Callable[[str, str], None]) -> Bill:
    """apply: brings a document to its keeper, by name of a file."""
    looks, pods, chunks = Looks(), 0, 0
    for step in steps:
        promised = looks.full and step.pods - pods <= chunks
        if step.chunks:
            apply(f"{name}.yaml", buffer_text(name, step.chunks))
        api.patch(
            "apps/v1", "Deployment", "web", {"spec": {"replicas": step.pods}}, namespace=name, subresource="scale"
        )
        growth = max(0, step.chunks - chunks) + max(0, step.pods - pods)
        pods, chunks, came = step.pods, step.chunks, 0
        last = begin = time.monotonic()
        while last < begin + step.seconds:
            time.sleep(EVERY)
            now = time.monotonic()
            seconds, since = now - last, now - begin
            came += looks.nodes(api.list("v1", "Node", labels=f"{NODE_POOL_LABEL}={name}"), seconds, since)
            looks.pods(api.list("v1", "Pod", namespace=name), seconds, promised=promised)
            if chunks:
                looks.buffer(api.get(*BUFFER, "web", namespace=name) or {}, chunks, seconds, since)
            last = now
        looks.bill.from_scratch += from_scratch(pods + chunks) * (last - begin) / 3600
        looks.bill.moves = max(looks.bill.moves, max(0, came - growth) / max(1, chunks))
    return looks.bill


@contextmanager
def with_headroom(plane: ControlPlane, folder: Path, names: Iterable[str]) -> Iterator[Callable[[str, str], None]]:
    repository = GitRepository(folder / "repository")
    repository.commit({f"pools/{name}.yaml": pool_text(name) for name in names})
    with DaemonProcess(repository.work, install_rbac(plane), folder, **{**DEFAULTS, "git_interval": "2s"}) as daemon:
        daemon.wait_until_ready()
        one_at_a_time = threading.Lock()

        def push(file: str, text: str) -> None:
            with one_at_a_time:
                repository.commit({f"buffers/{file}": text})

        yield push


@contextmanager
def with_the_gate(plane: ControlPlane, _folder: Path, names: Iterable[str]) -> Iterator[Callable[[str, str], None]]:
    plane.restart_karpenter(GATE)
    for name in names:
        plane.api.apply(yaml.safe_load(pool_text(name)))
    yield lambda _file, text: _apply(plane.api, text)


def _apply(api: Rest, text: str) -> None:
    document: dict[str, Any] = yaml.safe_load(text)
    api.apply(document)


def without_buffers(lives: Mapping[str, tuple[Step, ...]]) -> dict[str, tuple[Step, ...]]:
    """Those that have pods, without chunks."""
    alone = {name: tuple(replace(step, chunks=0) for step in steps) for name, steps in lives.items()}
    return {f"{name}, no buffer": steps for name, steps in alone.items() if any(step.pods for step in steps)}


def bills(keeper: str, lives: Mapping[str, tuple[Step, ...]]) -> list[Bill]:
    kept = with_headroom if keeper == "headroom" else with_the_gate
    names = [f"life-{number}" for number in range(len(lives))]
    with tempfile.TemporaryDirectory() as top, ControlPlane() as plane:
        shop = Shop(plane)
        for name in names:
            shop.api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
            shop.api.apply(workload(name))
        with kept(plane, Path(top), names) as apply, ThreadPoolExecutor(len(names)) as pool:
            found = [
                pool.submit(lived, shop.api, name, steps, apply)
                for name, steps in zip(names, lives.values(), strict=True)
            ]
            return [each.result() for each in found]


def words(keeper: str, bill: Bill) -> str:
    ratio = f"{bill.dollars / bill.from_scratch:.2f} of planning from scratch"
    return (
        f"  {keeper:10} ${bill.dollars:.4f} ({ratio}), ${bill.at_the_end:.3f}/h at the end since {bill.reached:.0f} s,"
        f" {bill.waited:.0f} pod-seconds without a node, {bill.in_vain:.0f} in vain,"
        f" {bill.short:.0f} s short, {bill.moves:.1f} moves of a chunk at most\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description="What a buffer costs over its life, beside Karpenter's own feature gate."
    )
    parser.add_argument("--random", type=int, default=3, metavar="N", help="how many random lives besides the two")
    parser.add_argument("--seconds", type=int, default=1500, metavar="S", help="how long each life is")
    asked = parser.parse_args()
    lives = lives_of(asked.random, asked.seconds)
    alone = without_buffers(lives)
    with ThreadPoolExecutor(2) as pool:
        ours = pool.submit(bills, "headroom", lives)
        theirs = pool.submit(bills, "the gate", {**lives, **alone})
        sides = {"headroom": ours.result(), "the gate": theirs.result()[: len(lives)]}
        sides_alone = theirs.result()[len(lives) :]
    for number, life in enumerate(lives):
        sys.stdout.write(f"{life}:\n" + "".join(words(keeper, found[number]) for keeper, found in sides.items()))
    for keeper, found in {**sides, "Karpenter, no buffer": sides_alone}.items():
        paid, ideal = sum(bill.dollars for bill in found), sum(bill.from_scratch for bill in found)
        held = f", ${sum(bill.held for bill in found):.4f} of it for held nodes" if keeper == "headroom" else ""
        sys.stdout.write(f"in all {keeper} ${paid:.4f}{held}, {paid / ideal:.2f} of planning from scratch\n")


if __name__ == "__main__":
    main()

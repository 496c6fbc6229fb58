"""Full buffers of generated repositories, and everybody comes: the real kube-scheduler binds the pods of their workloads.

The nodes of each repository are created as they will stand, once for each value of `placement.surge`, with a namespace and a node label of
their own. Then come the pods of all of its buffers: in the worst order that was rehearsed, and in shuffled ones. Last come those of each
buffer alone. Who waited in `planned` must have been announced; in `all` nobody waits, and in `alone` nobody while a buffer is used alone,
apart from what headroom still announces.

`HEADROOM_FUZZ=100` tries that many repositories, and `HEADROOM_FUZZ=13,30` these two.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import pytest

from reconciler.model.nodes import SCARCE_TAINTS
from reconciler.model.placement import SurgeMode, Wait
from reconciler.model.pods import PodShape
from reconciler.model.refs import ObjectRef
from reconciler.placement.place import place
from reconciler.placement.surge.firm import Firm, Firmer
from reconciler.placement.surge.rehearsal import Rehearsal
from reconciler.placement.surge.standing import standing_nodes
from tests.controlplane import ControlPlane
from tests.controlplane.documents import namespace
from tests.e2e.world_documents import (
    create_node,
    each,
    node_document,
    owned_by,
    pod_document,
    replica_set_document,
    settled,
)
from tests.properties.surge_worlds import surge_world
from tests.properties.test_surge import names_of

pytestmark = pytest.mark.e2e

_ASKED = os.environ.get("HEADROOM_FUZZ", "5").split(",")
WORLDS = [int(seed) for seed in _ASKED] if len(_ASKED) > 1 else list(range(int(_ASKED[0])))
WAVE = 12
"""Repositories that are in the cluster at a time."""
SHUFFLED = 2


@dataclass
class Staged:
    """One repository in one mode. rounds: the demands of the pods that come, in their order; whether they are one demand's alone."""

    number: int
    mode: SurgeMode
    firm: Firm
    announced: tuple[Wait, ...]
    shapes: dict[ObjectRef, PodShape]
    rounds: list[tuple[list[ObjectRef], bool]]
    waited: list[tuple[bool, Counter[ObjectRef]]] = field(default_factory=list)

    @property
    def name(self) -> str:
        return f"surge-{self.number:03}-{self.mode}"

    @property
    def lonely(self) -> set[ObjectRef]:
        """Demands of whose pods none finds room when they come alone: they want to be beside another workload's."""
        return {wait.demand for wait in self.announced if wait.alone and wait.waiting == wait.promised}

    def coming(self, step: int) -> list[ObjectRef]:
        return self.rounds[step][0] if step < len(self.rounds) else []

    def unannounced(self) -> list[str]:
        """Demands whose pods waited though headroom did not say so for such an order."""
        found = []
        for alone, waiting in self.waited:
            told = {wait.demand for wait in self.announced if wait.alone or not alone}
            found += [f"{self.name}: {count} of {ref}" for ref, count in waiting.items() if ref not in told]
        return found


def test_nobody_waits_who_was_not_announced(plane: ControlPlane) -> None:
    done: list[Staged] = []
    for first in range(0, len(WORLDS), WAVE):
        wave = [staged(seed, mode) for seed in WORLDS[first : first + WAVE] for mode in SurgeMode]
        each(lambda item: _stage(plane, item), wave)
        for step in range(max(len(item.rounds) for item in wave)):
            each(lambda item: _come(plane, item, step), wave)  # noqa: B023 - used up at once
            _judge(plane, wave, step)
            each(lambda item: _go(plane, item, step), wave)  # noqa: B023 - likewise
        each(lambda item: _unstage(plane, item), wave)
        done += wave
    for mode in SurgeMode:
        _tell(mode, [item for item in done if item.mode is mode])
    assert [words for item in done for words in item.unannounced()] == []


def staged(seed: int, mode: SurgeMode) -> Staged:
    problem = surge_world(seed)
    found = Firmer(mode, place, names_of).firm(problem, place(problem))
    announced = Rehearsal(found.problem, found.placement, names_of(found.placement), found.scarce).waits()
    placed: Counter[ObjectRef] = Counter()
    bins = [item.holdings for item in found.placement.occupied] + [item.holdings for item in found.placement.planned]
    for holding in (holding for holdings in bins for holding in holdings):
        placed[holding.demand] += holding.count
    asked = [item for item in problem.demands if placed[item.ref]]
    everyone = [item.ref for item in asked for _ in range(placed[item.ref])]
    chance = random.Random(seed)
    together = [chance.sample(everyone, len(everyone)) for _ in range(SHUFFLED)]
    worst = max((wait for wait in announced if not wait.alone), key=lambda wait: wait.waiting, default=None)
    if worst is not None:
        together.insert(0, [item.demand for item in worst.bindings])
    rounds = [(order, len(asked) == 1) for order in together]
    rounds += [([item.ref] * placed[item.ref], True) for item in asked]
    shapes = {item.ref: item.groups[0].shape for item in asked}
    return Staged(seed, mode, found, announced, shapes, rounds)


def _stage(plane: ControlPlane, item: Staged) -> None:
    plane.api.create(namespace(item.name))
    found = item.firm
    for standing in standing_nodes(found.problem, found.placement, names_of(found.placement)):
        node = standing.node
        node = replace(node, taints=(*node.taints, *SCARCE_TAINTS[: found.scarce.get(node.name, 0)]))
        create_node(plane.api, node_document(item.name, node))
    for ref, shape in item.shapes.items():
        plane.api.create(replica_set_document(item.name, ref.name, shape))
    for pod in found.problem.view.pods:
        plane.api.create(pod_document(item.name, pod.name, pod.shape, bound_to=pod.node_name))


def _come(plane: ControlPlane, item: Staged, step: int) -> None:
    """One after the other, so that kube-scheduler takes them in this order."""
    for number, ref in enumerate(item.coming(step)):
        document = pod_document(item.name, f"come-{step}-{number}", item.shapes[ref])
        plane.api.create(owned_by(document, ref.name))


def _go(plane: ControlPlane, item: Staged, step: int) -> None:
    for number in range(len(item.coming(step))):
        plane.api.delete("v1", "Pod", f"come-{step}-{number}", namespace=item.name)


def _unstage(plane: ControlPlane, item: Staged) -> None:
    """Nodes of earlier repositories would only make the scheduler slower."""
    found = item.firm
    for pod in found.problem.view.pods:
        plane.api.delete("v1", "Pod", pod.name, namespace=item.name)
    for standing in standing_nodes(found.problem, found.placement, names_of(found.placement)):
        plane.api.delete("v1", "Node", node_document(item.name, standing.node)["metadata"]["name"])


def _judge(plane: ControlPlane, wave: Sequence[Staged], step: int) -> None:
    by_name = {item.name: item for item in wave}
    for item in wave:
        if item.coming(step):
            item.waited.append((item.rounds[step][1], Counter()))
    for pod in settled(plane.api, begin=f"come-{step}-", looks=6):
        if not pod["spec"].get("nodeName"):
            item = by_name[pod["metadata"]["namespace"]]
            ref = item.coming(step)[int(pod["metadata"]["name"].rpartition("-")[2])]
            item.waited[-1][1][ref] += 1


def _tell(mode: SurgeMode, items: Iterable[Staged]) -> None:
    """The figures that this is run for. A wait that was announced and not seen may still come in an order that was not tried here."""
    pods, waited, orders, orders_with, announced, seen, lonely = 0, 0, 0, 0, 0, 0, 0
    for item in items:
        refs = {wait.demand for wait in item.announced}
        announced += len(refs)
        seen += len(refs & {ref for _, waiting in item.waited for ref in waiting})
        for (coming, _), (_, waiting) in zip(item.rounds, item.waited, strict=True):
            pods += len(coming)
            waited += waiting.total()
            lonely += sum(count for ref, count in waiting.items() if ref in item.lonely)
            orders += 1
            orders_with += bool(waiting)
    told = sum(bool(item.announced) for item in items)
    infirm = [item.name for item in items if any(wait.demand not in item.lonely for wait in item.announced)]
    print(  # noqa: T201 - see above
        f"{mode}: {waited} of {pods} pods waited, in {orders_with} of {orders} orders; announced for {told} repositories; "
        f"of {announced} buffers that were announced {seen} were seen to wait; "
        f"{lonely} of the pods that waited want to be beside others that did not come, so no room helps them; "
        f"others may wait in {len(infirm)} repositories{': ' if infirm else ''}{', '.join(infirm[:5])}; "
        f"new nodes cost ${sum(item.firm.price for item in items):.2f}/h"
    )

"""What pods count for while they are resized in place, whatever they ask for and have: read from documents, beside the rule.

The rule is KEP-1287's and, for a pod's own resources, KEP-5419's: of what a container asks for, what it has and what the kubelet
has set aside for it, the most; and without what it asks for once the node can never grant that.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.cluster.resources import PODS
from reconciler.cluster.snapshot.capture import pod_status
from reconciler.cluster.view import ViewStore
from reconciler.model.quantity import Resources
from tests.properties.sampling import sampled_from
from tests.unit.cluster.documents import Document

EXAMPLES = int(os.environ.get("HEADROOM_EXAMPLES", "75"))
Amounts = Mapping[str, int]
"""By resource: CPUs in thousandths, others as they are."""
GPU = "example.com/gpu"
MOST = {"cpu": 3000, "memory": 3 * 2**30, GPU: 2}
STEPS = {"cpu": 500, "memory": 2**30, GPU: 1}
PENDING = "PodResizePending"


@dataclass(frozen=True)
class Container:
    """has: None where the kubelet has not said yet; aside: set aside for it, None where that is not said."""

    asked: Amounts
    has: Amounts | None
    aside: Amounts | None
    is_sidecar: bool = False


@dataclass(frozen=True)
class Resized:
    """A pod; own: what it asks for as a whole, with what it has and has set aside; pending: reasons of its conditions that a
    resize is pending, in their order."""

    containers: tuple[Container, ...]
    before: tuple[Container, ...]
    """Init containers and sidecars, in their order."""
    own: Container | None
    overhead: Amounts
    pending: tuple[str, ...]

    def counts(self) -> Resources:
        given_up = self.pending[:1] == ("Infeasible",)
        sidecars = _sum([_most(item, given_up=given_up) for item in self.before if item.is_sidecar])
        running = _sum([sidecars, *(_most(item, given_up=given_up) for item in self.containers)])
        for number, item in enumerate(self.before):
            if not item.is_sidecar:
                beside = [_most(other, given_up=given_up) for other in self.before[:number] if other.is_sidecar]
                running |= Counter(_sum([*beside, item.asked]))
        if self.own is not None:
            most = _most(self.own, given_up=given_up)
            for name in self.own.asked:
                running[name] = most.get(name, 0)
        return Resources.of({**_sum([running, self.overhead]), "pods": 1})


def _most(item: Container, *, given_up: bool) -> Amounts:
    if item.has is None:
        return item.asked
    said = [item.has, item.aside or {}, *([] if given_up else [item.asked])]
    return {name: max(amounts.get(name, 0) for amounts in said) for amounts in said for name in amounts}


def _sum(every: Sequence[Amounts]) -> Counter[str]:
    total: Counter[str] = Counter()
    for amounts in every:
        total.update(amounts)
    return total


def _amounts(*names: str, least: int = 0) -> st.SearchStrategy[Amounts]:
    parts = {name: sampled_from(range(0, MOST[name] + 1, STEPS[name])) for name in names}
    return st.lists(sampled_from(names), unique=True, min_size=least).flatmap(
        lambda drawn: st.fixed_dictionaries({name: parts[name] for name in drawn})
    )


@st.composite
def _containers(draw: st.DrawFn, *names: str, least: int = 0) -> Container:
    """Most often it has what it asks for, as nearly all containers do."""
    asked = draw(_amounts(*names, least=least))
    has = draw(st.one_of(st.none(), st.just(asked), st.just(asked), _amounts(*names)))
    aside = draw(st.one_of(st.none(), st.just(asked), _amounts(*names)))
    return Container(asked, has, aside, is_sidecar=draw(st.booleans()))


@st.composite
def resized_pods(draw: st.DrawFn) -> Resized:
    every = _containers("cpu", "memory", GPU)
    return Resized(
        tuple(replace(draw(every), is_sidecar=False) for _ in range(draw(st.integers(1, 2)))),
        tuple(draw(st.lists(every, max_size=3))),
        draw(st.one_of(st.none(), _containers("cpu", "memory", least=1))),
        draw(sampled_from([{}, {}, {"cpu": 500}])),
        tuple(draw(st.lists(sampled_from(["Infeasible", "Deferred"]), max_size=2))),
    )


def _document(name: str, pod: Resized, spelling: st.DataObject) -> Document:
    def quantities(amounts: Amounts) -> dict[str, Any]:
        """The same amount in any of the words that there are for it."""
        words: dict[str, Any] = {}
        for resource, amount in amounts.items():
            choices: list[Any] = [f"{amount}m", str(amount / 1000)] if resource == "cpu" else [str(amount), amount]
            choices += [f"{amount // 2**30}Gi"] if resource == "memory" else []
            words[resource] = spelling.draw(sampled_from(choices))
        return words

    def spec(number: int, item: Container) -> Document:
        always = {"restartPolicy": "Always"} if item.is_sidecar else {}
        return {"name": f"c{number}", "resources": {"requests": quantities(item.asked)}, **always}

    def status(item: Container) -> Document:
        has = {} if item.has is None else {"resources": {"requests": quantities(item.has)}}
        return has | ({} if item.aside is None else {"allocatedResources": quantities(item.aside)})

    first = len(pod.containers)
    conditions = [{"type": PENDING, "status": "True", "reason": reason} for reason in pod.pending]
    return {
        "metadata": {
            "name": name,
            "namespace": "shop",
            "uid": name,
            "ownerReferences": [{"kind": "ReplicaSet", "name": "web", "controller": True}],
        },
        "spec": {
            "nodeName": "node-1",
            "containers": [spec(number, item) for number, item in enumerate(pod.containers)],
            "initContainers": [spec(first + number, item) for number, item in enumerate(pod.before)],
            **({} if pod.own is None else {"resources": {"requests": quantities(pod.own.asked)}}),
            **({"overhead": quantities(pod.overhead)} if pod.overhead else {}),
        },
        "status": {
            "phase": "Running",
            "containerStatuses": [{"name": f"c{number}", **status(item)} for number, item in enumerate(pod.containers)],
            "initContainerStatuses": [
                {"name": f"c{first + number}", **status(item)} for number, item in enumerate(pod.before)
            ],
            "conditions": [{"type": "PodScheduled", "status": "True"}, *conditions],
            **({} if pod.own is None else status(pod.own)),
        },
    }


@settings(max_examples=EXAMPLES, deadline=None)
@given(pods=st.lists(resized_pods(), min_size=1, max_size=3), spelling=st.data())
def test_pods_count_for_the_most_that_they_may_take(pods: list[Resized], spelling: st.DataObject) -> None:
    """Of one ReplicaSet, so that their shapes may be shared; as the API server lists them, and as a snapshot keeps them."""
    documents = [_document(f"web-{number}", pod, spelling) for number, pod in enumerate(pods)]
    kept = [{**document, "status": pod_status(document)} for document in documents]
    expected = [pod.counts() for pod in pods]

    for listed in (documents, kept):
        store = ViewStore()
        store.replace(PODS, listed)
        assert [pod.shape.requests for pod in store.view().pods] == expected

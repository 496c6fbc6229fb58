"""Buffers that are a share of running pods: of which pods, in how many chunks, and how long more is kept."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from reconciler.demand.buffers import buffer_demands
from reconciler.demand.resolve import READY
from reconciler.model.buffers import BALLOON_LABEL, BALLOON_PRIORITY_CLASS, Buffer, Dialect
from reconciler.model.declared import Declared
from reconciler.model.demand import Demand
from reconciler.model.findings import Finding
from reconciler.model.marks import PERCENT_OF_ANNOTATION
from reconciler.model.pods import Pod, PodShape, Workload
from reconciler.model.refs import ObjectRef, SourcePosition
from reconciler.model.remembered import Inventory
from reconciler.model.view import ClusterView
from reconciler.plan.buffers.records import share_edges, share_records
from tests.builders import buffer, node, node_pool, pod, shape

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
NODES = (node("node-1"), node("node-2", pool="batch"), node("node-3", pool=None))


def spare(percent_of: str = "namespace", percentage: int | None = 10, replicas: int | None = 0) -> Buffer:
    return buffer(
        "spare",
        target=None,
        replicas=replicas,
        pod_template="small",
        percentage=percentage,
        annotations=((PERCENT_OF_ANNOTATION, percent_of),),
    )


def small(pod_shape: PodShape | None = None) -> Workload:
    return Workload(ObjectRef("", "PodTemplate", "shop", "small"), pod_shape or shape("1", "1Gi"))


def running(count: int, *, on: str = "node-1", name: str = "web", pod_shape: PodShape | None = None) -> list[Pod]:
    alike = pod_shape or shape("1", "1Gi")
    return [pod(f"{name}-{number}", namespace=alike.namespace, node=on, pod_shape=alike) for number in range(count)]


def view(pods: Iterable[Pod], **others: object) -> ClusterView:
    return ClusterView(nodes=NODES, pods=tuple(pods), **others)  # type: ignore[arg-type]


def ask(
    one: Buffer,
    pods: Iterable[Pod],
    *,
    template: Workload | None = None,
    dialect: Dialect = Dialect.KARPENTER,
    now: datetime | None = NOON,
    **others: object,
) -> tuple[Demand, tuple[Finding, ...]]:
    declared = Declared(
        buffers=(one,), workloads=(template or small(),), node_pools=(node_pool("general"), node_pool("batch"))
    )
    (demand,), findings = buffer_demands(declared, view(pods, **others), dialect=dialect, now=now)
    return demand, findings


def size(one: Buffer, pods: Iterable[Pod], **others: object) -> int | None:
    return ask(one, pods, **others)[0].desired  # type: ignore[arg-type]


def test_it_is_a_percentage_of_what_running_pods_request() -> None:
    demand, findings = ask(spare(), running(21))
    assert demand.desired == 3
    assert demand.explanation == (
        "0 requested",
        "10% of the requests of 21 running pods of namespace shop (cpu 21, memory 21Gi), rounded up: 3 by cpu",
    )
    assert [group.count for group in demand.groups] == [3]
    assert findings == ()


def test_the_resource_of_which_most_chunks_are_needed_counts() -> None:
    demand, _ = ask(spare(), running(20, pod_shape=shape("1", "4Gi")))
    assert demand.desired == 8
    assert demand.explanation[-1].endswith("(cpu 20, memory 80Gi), rounded up: 8 by memory")


def test_a_resource_that_chunks_do_not_request_and_the_number_of_pods_do_not_count() -> None:
    tiny = shape("1m", "1Mi")
    assert size(spare(), running(100, pod_shape=tiny)) == 1


@pytest.mark.parametrize(
    ("percent_of", "pods"),
    [
        ("nodepool/general", 40),
        ("nodepool/batch", 30),
        ("namespace", 60),
        ("cluster", 100),
        ("selector:app=web", 10),
        ("selector:app in (web, api),!tier", 30),
        ("selector:app", 30),
        ("selector:app!=web", 50),
    ],
)
def test_the_pods_of_a_place(percent_of: str, pods: int) -> None:
    there = [
        *running(10, name="web", pod_shape=shape(labels={"app": "web"})),
        *running(20, name="api", on="node-2", pod_shape=shape(labels={"app": "api"})),
        *running(30, name="other", on="node-3"),
        *running(10, name="more", on="node-2", pod_shape=shape(namespace="tools", labels={"app": "web"})),
        *running(30, name="most", pod_shape=shape(namespace="tools")),
    ]
    demand, findings = ask(spare(percent_of), there)
    assert demand.desired == pods // 10
    assert f"of {pods} running pods" in demand.explanation[-1]
    assert findings == ()


def test_pods_that_do_not_run_daemons_and_balloons_do_not_count() -> None:
    balloon = shape(labels={BALLOON_LABEL: "balloon"}, priority_class_name=BALLOON_PRIORITY_CLASS)
    others = [
        pod("waits"),
        pod("daemon", node="node-1", owner_kind="DaemonSet"),
        pod("mirror", node="node-1", owner_kind="Node"),
        pod("ended", node="node-1", phase="Succeeded"),
        pod("leaves", node="node-1", deleting=True),
        pod("balloon", node="node-1", pod_shape=balloon),
    ]
    assert size(spare(percentage=100), [*running(1), *others]) == 1
    assert size(spare(percentage=100), others) == 0


def test_replicas_are_the_least_and_limits_the_most() -> None:
    assert size(spare(replicas=5), running(20)) == 5
    assert size(replace(spare(), limits=(("cpu", 1000),)), running(20)) == 1


@pytest.mark.parametrize("dialect", list(Dialect))
def test_a_share_of_no_pods_fills_no_limits(dialect: Dialect) -> None:
    """A percentage of a workload at 0 does in Karpenter, which does not know shares."""
    demand, findings = ask(replace(spare(replicas=None), limits=(("cpu", 8000),)), [], dialect=dialect)
    assert demand.desired == 0
    assert findings == ()


def test_a_node_pool_that_does_not_exist_is_found() -> None:
    demand, (finding,) = ask(spare("nodepool/genral", replicas=2), running(20))
    assert demand.desired == 2
    assert (finding.code, finding.path) == ("target-not-found", "metadata.annotations['headroom.dev/percent-of']")
    assert finding.message == "headroom.dev/percent-of: NodePool genral does not exist, so no pods run there"


def test_a_template_without_requests_is_found() -> None:
    demand, (finding,) = ask(spare(), running(20), template=small(PodShape("shop")))
    assert demand.desired == 0
    assert (finding.code, finding.hint) == ("size-not-known", "give its containers requests of cpu and memory")


@pytest.mark.parametrize(
    ("one", "message"),
    [
        (spare("nodes"), "has the value 'nodes': 'nodes' names no pods"),
        (spare("selector:app=web tier"), "'app=web tier' is no part of a label selector"),
        (spare(percentage=None), "needs spec.percentage"),
        (buffer("spare", annotations=spare().annotations, percentage=10), "needs a podTemplateRef"),
    ],
)
def test_what_is_wrong_with_one_that_only_the_cluster_has_is_found(one: Buffer, message: str) -> None:
    demand, (finding,) = ask(one, running(20))
    (condition,) = [item for item in demand.conditions if item.type == READY]
    assert (condition.status, condition.reason) == ("False", "ResolutionFailed")
    assert finding.code == "invalid-annotation"
    assert message in finding.message
    assert finding.hint
    in_git, none = ask(replace(one, position=SourcePosition("spare.yaml", 1)), running(20))
    assert (in_git.desired, none) == (None, ()), "validation has told it, with its line"


class Life:
    """One buffer from pass to pass, with what the inventory remembers."""

    def __init__(self, one: Buffer | None = None, *, shrink_after: timedelta = timedelta(minutes=10)) -> None:
        self.buffer, self.shrink_after = one or spare(), shrink_after
        self.memory: dict[str, object] = {}
        self.template = small()

    def after(self, minutes: float, pods: int, **others: object) -> Demand:
        declared = Declared(buffers=(self.buffer,), workloads=(self.template,))
        now = view(running(pods), inventory=Inventory(records=self.memory), **others)
        at = NOON + timedelta(minutes=minutes)
        after = self.shrink_after
        (demand,), _ = buffer_demands(declared, now, dialect=Dialect.KARPENTER, now=at, shrink_after=after)
        self.memory = share_records([demand], now)
        return demand

    def size(self, minutes: float, pods: int, **others: object) -> int | None:
        return self.after(minutes, pods, **others).desired


def test_it_grows_at_once_and_shrinks_after_ten_minutes_of_less() -> None:
    life = Life()
    assert [life.size(minutes, pods) for minutes, pods in ((0, 20), (1, 60), (5, 60), (20, 60))] == [2, 6, 6, 6]
    demand = life.after(21, 20)
    assert demand.desired == 6
    assert demand.explanation[-1] == (
        "6 until 2026-11-21 12:31:00 UTC, since it shrinks after 10m of less (buffers.shrinkAfter)"
    )
    (edge,) = share_edges([demand], timedelta(seconds=5))
    assert edge.at == NOON + timedelta(minutes=31, seconds=5)
    assert life.size(30.9, 20) == 6
    last = life.after(31, 20)
    assert (last.desired, share_edges([last], timedelta(0))) == (2, ())


def test_pods_that_come_back_end_the_wait() -> None:
    life = Life()
    sizes = [life.size(*step) for step in ((0, 60), (1, 20), (9, 60), (10, 20), (19, 20), (20, 20))]
    assert sizes == [6, 6, 6, 6, 6, 2]


def test_nothing_is_written_while_nothing_changes() -> None:
    life = Life()
    life.size(0, 60)
    before = life.memory
    life.size(1, 58)
    assert life.memory == before, "as many chunks"
    life.size(2, 20)
    before = life.memory
    life.size(9, 20)
    assert life.memory == before


def test_it_shrinks_to_the_most_of_the_wait() -> None:
    life = Life()
    sizes = [life.size(minute, pods) for minute, pods in ((0, 60), (1, 50), (9, 30), (11, 10), (12, 30), (21, 20))]
    assert sizes == [6, 6, 6, 5, 5, 3]


@pytest.mark.parametrize("percentage", [5, 11])
def test_an_edit_counts_at_once(percentage: int) -> None:
    life = Life()
    life.size(0, 100)
    life.size(1, 20)
    life.buffer = spare(percentage=percentage)
    assert life.size(2, 20) == -(-20 * percentage // 100)
    life = Life()
    life.size(0, 100)
    life.template = small(shape("10", "10Gi"))
    assert life.size(1, 100) == 1, "ten chunks of the new size would be ten times as much"


def test_nothing_shrinks_while_the_cluster_cannot_be_read_in_full() -> None:
    life = Life()
    life.size(0, 60)
    demand = life.after(60, 20, complete=False)
    assert demand.desired == 6
    assert demand.explanation[-1] == "6 as before, since the cluster could not be read in full"
    assert life.size(70, 80, complete=False) == 8
    assert [life.size(*step) for step in ((80, 20), (90, 20))] == [8, 2]


def test_a_buffer_that_is_not_ready_for_a_while_remembers_its_sizes() -> None:
    life = Life()
    life.size(0, 60)
    template, life.template = life.template, replace(small(), ref=ObjectRef("", "PodTemplate", "shop", "other"))
    assert life.size(1, 20) is None
    life.template = template
    assert life.size(2, 20) == 6


def test_a_clock_that_was_set_back_prolongs_no_size() -> None:
    life = Life()
    life.size(600, 60)
    life.size(601, 20)
    assert [life.size(*step) for step in ((0, 20), (9, 20), (10, 20))] == [6, 6, 2]


@pytest.mark.parametrize(
    "entry",
    [
        None,
        [],
        {},
        {"rule": "", "size": "x"},
        {"rule": "", "size": 9, "lessSince": "2026-01-01"},
    ],
)
def test_what_cannot_be_read_is_dropped(entry: object) -> None:
    life = Life()
    life.memory = {"shares": {"shop/spare": entry}}
    assert life.size(0, 20) == 2

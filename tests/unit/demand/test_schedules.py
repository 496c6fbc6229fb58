"""What schedules make of buffers and static NodePools: replicas, existence, and what is applied."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from reconciler.demand.buffers import buffer_demands
from reconciler.demand.schedules import Followed, follow_schedules, next_edge
from reconciler.demand.timeline import demand_spans
from reconciler.manifests.repository.declared import live_declared, read
from reconciler.model.buffers import Buffer, Dialect
from reconciler.model.declared import Declared
from reconciler.model.refs import ObjectRef
from reconciler.model.schedules import Schedule
from reconciler.model.view import ClusterView, LiveObject
from reconciler.timetable.capacity_schedule import _last_answer, next_look
from tests.builders import deployment, deployment_ref
from tests.manifests import buffer, node_pool, pod_template, schedule

NIGHT = datetime(2026, 11, 23, 6, 0, tzinfo=UTC)
"""A Monday, three hours before the office opens."""
OPENING = NIGHT + timedelta(hours=3)
OFFICE = schedule("office", 4, "hours: 9", "hours: 17")
POOL = node_pool("reports", "replicas: 0", replicas_from="shop/office", lead_time="10m")
POOL_WITHOUT_A_SIZE = node_pool("reports", replicas_from="shop/office", lead_time="10m")
WEB = ObjectRef("autoscaling.x-k8s.io", "CapacityBuffer", "shop", "web")
REPORTS = ObjectRef("karpenter.sh", "NodePool", "", "reports")


def two_chunks(**marks: str) -> str:
    return buffer("web", "replicas: 2", **marks) + pod_template("web")


def documents(*texts: str) -> Declared:
    return read({"all.yaml": "".join(texts).encode()})


def followed(declared: Declared, at: datetime, *live: LiveObject) -> Followed:
    objects = {item.ref: item for item in live}
    effective = declared.over(live_declared(ClusterView(objects=objects)))
    return follow_schedules(effective, declared, objects, at)


def replicas(answer: Followed, ref: ObjectRef) -> object:
    (manifest,) = (item.manifest for item in answer.repository.manifests if item.ref == ref)
    return manifest["spec"]["replicas"]


def test_a_buffers_replicas_are_the_schedules_value_and_so_is_what_is_applied() -> None:
    declared = documents(OFFICE, two_chunks(replicas_from="office"))
    for at, value in ((NIGHT, 0), (OPENING, 4), (OPENING + timedelta(hours=8), 0)):
        answer = followed(declared, at)
        assert answer.effective.buffers[0].replicas == value
        assert replicas(answer, WEB) == value
        assert answer.findings == ()


def test_a_buffer_that_is_active_during_a_schedule_does_not_exist_while_the_value_is_0() -> None:
    declared = documents(OFFICE, two_chunks(active_during="office"))
    asleep, awake = followed(declared, NIGHT), followed(declared, OPENING)
    assert asleep.repository.dormant == {WEB: "MetricsProducer/shop/office is at 0 until 2026-11-23 09:00 UTC"}
    assert WEB not in {item.ref for item in asleep.repository.manifests}
    assert awake.repository.dormant == {}
    assert replicas(awake, WEB) == 2, "its own number, since no schedule gives it another"


def test_a_static_pool_follows_its_schedule_by_namespace_and_name() -> None:
    declared = documents(OFFICE, POOL)
    assert [item.code for item in declared.findings] == []
    early = OPENING - timedelta(minutes=10)
    assert [followed(declared, at).effective.node_pools[0].replicas for at in (NIGHT, early, OPENING)] == [0, 4, 4]
    assert replicas(followed(declared, early), REPORTS) == 4


def test_a_pool_that_is_dynamic_in_the_cluster_stays_dynamic() -> None:
    declared = documents(OFFICE, POOL_WITHOUT_A_SIZE)
    assert [item.code for item in declared.findings] == ["static-by-schedule"]
    live = LiveObject(REPORTS, {"metadata": {"name": "reports"}, "spec": {}})
    assert followed(declared, OPENING, live).effective.node_pools[0].replicas is None


def test_without_its_schedule_what_is_in_the_cluster_stays_as_it_is() -> None:
    declared = documents(two_chunks(replicas_from="office"), POOL)
    live = LiveObject(
        WEB,
        {"metadata": {"name": "web", "namespace": "shop"}, "spec": {"replicas": 7, "podTemplateRef": {"name": "web"}}},
    )
    answer = followed(declared, OPENING, live)
    assert answer.effective.buffers[0].replicas == 7
    assert {item.ref for item in answer.repository.manifests} & {WEB, REPORTS} == set()
    assert {WEB, REPORTS} <= answer.repository.broken, "and is not pruned"
    assert [(item.code, item.ref) for item in answer.findings] == [
        ("schedule-not-found", WEB),
        ("schedule-not-found", REPORTS),
    ]


@pytest.mark.parametrize(
    ("written", "live"),
    [
        ("{pods: {replicaNum: 2, podSpec: {containers: [{name: a}]}}}", {"pods": {"replicaNum": 7}}),
        ("{replicas: {exactly: 2}}", {"replicas": {"exactly": 7}}),
    ],
)
def test_a_buffer_of_the_proposal_stays_at_its_size_without_its_schedule(written: str, live: dict[str, object]) -> None:
    """It went to the size in Git: a misspelt name of a schedule released its nodes."""
    target = "targetRef: {apiGroup: apps, kind: Deployment, name: web}" if "exactly" in written else ""
    text = buffer("web", target, of=f"capacity: {written}", replicas_from="office")
    declared = documents(text.replace("v1beta1", "v1alpha1").replace("CapacityBuffer", "Buffer"))
    ref = WEB._replace(kind="Buffer")
    body = {"metadata": {"name": "web", "namespace": "shop"}, "spec": {"capacity": live}}
    assert followed(declared, OPENING, LiveObject(ref, body)).effective.buffers[0].replicas == 7


def test_a_pool_without_its_schedule_counts_as_static_of_the_size_that_it_has() -> None:
    declared = documents(POOL_WITHOUT_A_SIZE)
    live = LiveObject(REPORTS, {"metadata": {"name": "reports"}, "spec": {"replicas": 5}})
    assert followed(declared, OPENING, live).effective.node_pools[0].replicas == 5
    assert followed(declared, OPENING).effective.node_pools[0].replicas == 0


def test_a_new_buffer_waits_for_a_schedule_that_is_not_there() -> None:
    declared = documents(two_chunks(replicas_from="office"))
    answer = followed(declared, OPENING)
    assert answer.effective.buffers[0].waits_for == "MetricsProducer/shop/office does not exist"


def test_a_schedule_that_only_the_cluster_has_counts() -> None:
    declared = documents(two_chunks(replicas_from="office"))
    (office,) = documents(OFFICE).manifests
    answer = followed(declared, OPENING, LiveObject(office.ref, office.manifest))
    assert replicas(answer, WEB) == 4


def test_the_next_edge_is_the_lead_before_the_schedules_own() -> None:
    declared = documents(OFFICE, POOL)
    first = next_edge(declared, NIGHT)
    assert first is not None
    assert (first.at, first.why) == (OPENING - timedelta(minutes=10), "MetricsProducer/shop/office, 10m ahead")
    second = next_edge(declared, first.at)
    assert second is not None
    assert (second.at, second.why) == (OPENING, "MetricsProducer/shop/office")
    assert next_edge(Declared(), NIGHT) is None


def test_the_timeline_shows_what_each_asks_for_with_its_lead() -> None:
    declared = documents(OFFICE, two_chunks(active_during="office"), POOL)
    declared = replace(declared, manifests=())
    end = NIGHT + timedelta(days=1)
    spans = demand_spans(declared, ClusterView(), NIGHT, end, dialect=Dialect.KARPENTER)
    early = OPENING - timedelta(minutes=10)
    closing = OPENING + timedelta(hours=8)
    assert [(str(span.ref), span.start, span.end, span.replicas) for span in spans] == [
        ("CapacityBuffer/shop/web", NIGHT, OPENING, 0),
        ("CapacityBuffer/shop/web", OPENING, closing, 2),
        ("CapacityBuffer/shop/web", closing, end, 0),
        ("NodePool/reports", NIGHT, early, 0),
        ("NodePool/reports", early, closing, 4),
        ("NodePool/reports", closing, end, 0),
    ]


def test_a_percentage_counts_for_as_long_as_it_exists_and_is_the_more_where_the_schedule_is_the_less() -> None:
    marks = {
        "by-day": (("headroom.dev/active-during", "office"),),
        "at-least": (("headroom.dev/replicas-from", "office"),),
        "plain": (),
    }
    buffers = tuple(
        Buffer(
            ObjectRef(WEB.group, WEB.kind, "shop", name),
            target=deployment_ref(),
            percentage=20,
            annotations=annotations,
        )
        for name, annotations in marks.items()
    )
    declared = Declared(buffers=buffers, workloads=(deployment(replicas=10),), schedules=documents(OFFICE).schedules)
    end = NIGHT + timedelta(days=1)
    spans = demand_spans(declared, ClusterView(), NIGHT, end, dialect=Dialect.KARPENTER)
    told = [(span.ref.name, (span.start - NIGHT) / timedelta(hours=1), span.replicas) for span in spans]
    assert told == [
        *(("at-least", 0, 2), ("at-least", 3, 4), ("at-least", 11, 2)),
        *(("by-day", 0, 0), ("by-day", 3, 2), ("by-day", 11, 0)),
        ("plain", 0, 2),
    ]


@pytest.mark.parametrize("marks", [{"replicas_from": "office"}, {"active_during": "office"}])
@pytest.mark.parametrize("state", ["plain", "suspended", "scaled", "suspended and scaled"])
def test_a_forecast_says_of_each_hour_what_the_pass_of_that_hour_will(marks: dict[str, str], state: str) -> None:
    """Also of a buffer that no schedule changes, since it is suspended or somebody scales it."""
    declared = documents(OFFICE, two_chunks(**marks, **({"suspend": "true"} if "suspended" in state else {})))
    if "scaled" in state:
        scaled = replace(declared.buffers[0], replicas=7, sized_by="an HPA through /scale", is_scaled=True)
        declared = replace(declared, buffers=(scaled,))
    view = ClusterView(objects={WEB: LiveObject(WEB, {"spec": {"replicas": 3}, "status": {"replicas": 3}})})

    def effective(hour: int) -> Declared:
        return follow_schedules(declared, declared, view.objects, NIGHT + timedelta(hours=hour)).effective

    spans = demand_spans(effective(0), view, NIGHT, NIGHT + timedelta(days=1), dialect=Dialect.KARPENTER)
    for hour in range(24):
        (demand,), _ = buffer_demands(effective(hour), view, dialect=Dialect.KARPENTER)
        (told,) = (span for span in spans if span.start <= NIGHT + timedelta(hours=hour) < span.end)
        assert told.replicas == demand.desired, hour


def test_a_schedule_that_both_annotations_name_is_named_once() -> None:
    both = two_chunks(replicas_from="office", active_during="office")
    declared = replace(documents(OFFICE, both), manifests=())
    spans = demand_spans(declared, ClusterView(), OPENING, OPENING + timedelta(hours=1), dialect=Dialect.KARPENTER)
    assert [span.why for span in spans] == ["4 by MetricsProducer/shop/office"]


def test_what_is_remembered_of_edges_is_what_would_be_found_anew() -> None:
    declared = documents(OFFICE, POOL)
    instants = [NIGHT + timedelta(hours=hours) for hours in (0, 1, 2.9, 3, 5, 4, 12, 40, 2)]  # also back
    remembered = [next_edge(declared, at) for at in instants]
    anew = []
    for at in instants:
        _last_answer.cache_clear()
        anew.append(next_edge(declared, at))
    assert remembered == anew
    changed = documents(schedule("office", 4, "hours: 10", "hours: 17"), POOL)
    assert next_edge(changed, NIGHT) != next_edge(declared, NIGHT)


def test_a_limit_that_decides_the_size_is_among_its_reasons() -> None:
    declared = documents(OFFICE, two_chunks())
    (buffer,) = declared.buffers
    limited = replace(buffer, replicas=8, percentage=None, limits=(("cpu", 4000),))
    spans = demand_spans(
        replace(declared, buffers=(limited,), manifests=()),
        ClusterView(),
        NIGHT,
        NIGHT + timedelta(hours=1),
        dialect=Dialect.KARPENTER,
    )
    assert [(span.replicas, span.why) for span in spans] == [(4, "8 requested; 4 fit into its limits (cpu 4)")]


def test_a_schedule_that_headroom_fails_on_hides_the_edges_of_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(schedule: Schedule, lead: timedelta, after: datetime) -> datetime | None:
        if schedule.ref.name == "bad":
            raise ValueError("a planted fault")
        return next_look(schedule, lead, after)

    monkeypatch.setattr("reconciler.demand.schedules.next_look", broken)
    (good,) = documents(OFFICE).schedules
    both = Declared(schedules=(replace(good, ref=good.ref._replace(name="bad")), good))
    found = next_edge(both, NIGHT)
    assert found == next_edge(Declared(schedules=(good,)), NIGHT)
    assert found is not None

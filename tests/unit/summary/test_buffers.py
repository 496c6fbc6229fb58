"""The status that a buffer shows, when it is left alone, and the events about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from reconciler.model.autoscalers import ServingAutoscaler
from reconciler.model.changes import ApplyStatus, ChangeSet, DemandOutcome, Outcome, Plan, WriteResult
from reconciler.model.conditions import Condition, ConditionStatus
from reconciler.model.placement import Cause, UnplacedReason
from reconciler.model.view import ClusterView, LiveObject
from reconciler.summary.events import buffer_events
from reconciler.summary.statuses import buffer_status
from tests import builders
from tests.builders import buffer_ref, demand
from tests.unit.stages.test_fulfilment import World

# The status that a buffer shows, and when it is left alone.

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
READY = Condition("ReadyForProvisioning", ConditionStatus.TRUE, "Resolved", "4 × 1 CPU")
MISSING = Condition("Provisioning", ConditionStatus.FALSE, "RequiresNewCapacity", "2 on nodes to be made")
FULL = Condition("Provisioning", ConditionStatus.TRUE, "FitsExistingCapacity", "all 3 chunks have room")


def outcome(*conditions: Condition, pod_template: tuple[str, int | None] | None = None, **demand: Any) -> DemandOutcome:
    wanted = replace(builders.demand(count=3), pod_template=pod_template, **demand)
    return DemandOutcome(wanted, on_existing=3, on_new=0, unplaced=0, conditions=conditions or (READY, FULL))


def live(
    status: Mapping[str, Any] | None = None,
    *,
    kind: str = "CapacityBuffer",
    managers: Mapping[str, frozenset[str]] | None = None,
) -> LiveObject:
    ref = builders.buffer_ref()._replace(kind=kind)
    body = {"metadata": {"name": "web", "generation": 5}, "spec": {"replicas": 3}, "status": status or {}}
    return LiveObject(ref, body, managers or {})


def written(result: DemandOutcome, on: LiveObject, at: datetime = NOON) -> Mapping[str, Any]:
    write = buffer_status(result, on, at)
    assert write is not None
    return write.status


def test_a_new_buffer_gets_all_of_it() -> None:
    assert written(outcome(pod_template=("web", 2)), live()) == {
        "replicas": 3,
        "podTemplateRef": {"name": "web"},
        "podTemplateGeneration": 2,
        "provisioningStrategy": "buffer.x-k8s.io/active-capacity",
        "conditions": [
            {
                "type": "Provisioning",
                "status": "True",
                "reason": "FitsExistingCapacity",
                "message": "all 3 chunks have room",
                "lastTransitionTime": "2026-03-01T12:00:00Z",
                "observedGeneration": 5,
            },
            {
                "type": "ReadyForProvisioning",
                "status": "True",
                "reason": "Resolved",
                "message": "4 × 1 CPU",
                "lastTransitionTime": "2026-03-01T12:00:00Z",
                "observedGeneration": 5,
            },
        ],
    }


@pytest.mark.parametrize("kind", ["CapacityBuffer", "Buffer"])
def test_the_same_again_is_not_written(kind: str) -> None:
    status = written(outcome(), live(kind=kind))
    assert buffer_status(outcome(), live(status, kind=kind), NOON + timedelta(hours=1)) is None


def test_a_transition_time_moves_only_with_the_status() -> None:
    status = written(outcome(READY, MISSING), live())
    reworded = replace(MISSING, message="1 on nodes to be made")
    later = written(outcome(READY, reworded), live(status), NOON + timedelta(minutes=5))
    assert [item["lastTransitionTime"] for item in later["conditions"]] == ["2026-03-01T12:00:00Z"] * 2
    full = written(outcome(READY, FULL), live(later), NOON + timedelta(minutes=9))
    assert [item["lastTransitionTime"] for item in full["conditions"]] == [
        "2026-03-01T12:09:00Z",
        "2026-03-01T12:00:00Z",
    ]


def test_a_size_that_no_longer_holds_is_cleared() -> None:
    status = written(outcome(), live())
    unresolved = replace(READY, status=ConditionStatus.FALSE, reason="ScalableRefNotFound")
    assert "replicas" not in written(outcome(unresolved, desired=None), live(status))
    assert "replicas" not in written(outcome(desired=None), live(status)), "also when all else is the same"


def test_a_condition_that_is_gone_is_a_change() -> None:
    limited = Condition("LimitedByQuotas", ConditionStatus.TRUE, "LimitedByQuotas", "")
    status = written(outcome(READY, FULL, limited), live())
    assert [item["type"] for item in written(outcome(), live(status))["conditions"]] == [
        "Provisioning",
        "ReadyForProvisioning",
    ]


def test_conditions_keep_their_places_and_new_ones_come_last() -> None:
    status = written(outcome(), live())
    turned = {**status, "conditions": status["conditions"][::-1]}
    assert buffer_status(outcome(), live(turned), NOON) is None
    limited = Condition("LimitedByQuotas", ConditionStatus.TRUE, "LimitedByQuotas", "")
    assert [item["type"] for item in written(outcome(READY, FULL, limited), live(turned))["conditions"]] == [
        "ReadyForProvisioning",
        "Provisioning",
        "LimitedByQuotas",
    ]


OWNED = frozenset({"status.replicas", "status.conditions.Provisioning", "status.conditions.ReadyForProvisioning"})
KARPENTER = ServingAutoscaler("Karpenter", conditions=frozenset({"Provisioning"}), last_write=NOON, answers=True)
SERVED = Condition("Fulfilment", ConditionStatus.TRUE, "ServedByAutoscaler", "Karpenter serves this buffer")


def theirs(status: str = "True", *, part_of_it: bool = True) -> LiveObject:
    """A status that headroom wrote and of which Karpenter has written Provisioning since."""
    mine = written(outcome(), live())
    said = [item for item in mine["conditions"] if item["type"] != "Provisioning"]
    said.append({"type": "Provisioning", "status": status, "reason": "R", "message": "all 3 virtual pods", "x": 1})
    own = OWNED if part_of_it else OWNED - {"status.conditions.Provisioning"}
    managers = {"headroom": own, "karpenter": frozenset({"status.conditions.Provisioning"})}
    return live({**mine, "conditions": said}, managers=managers)


def test_what_an_autoscaler_wrote_stays_as_it_is_and_headrooms_own_word_goes() -> None:
    native = outcome(SERVED, fulfilment="native", autoscaler=KARPENTER, holds_nodes=False)
    status = written(native, theirs())
    assert [item["type"] for item in status["conditions"]] == ["Provisioning", "Fulfilment"], "readiness was ours alone"
    assert status["conditions"][0]["message"] == "all 3 virtual pods"
    assert status["replicas"] == 3, "left out, it would be taken away"
    alone = written(native, theirs(part_of_it=False))
    assert [item["type"] for item in alone["conditions"]] == ["Fulfilment"], "what is wholly theirs is not mentioned"


def test_once_handed_over_nothing_more_is_written() -> None:
    native = outcome(SERVED, fulfilment="native", autoscaler=KARPENTER, holds_nodes=False)
    before = theirs()
    status = written(native, before)
    managers = {**before.managers, "headroom": frozenset({f"status.conditions.{SERVED.type}", *OWNED})}
    assert buffer_status(native, live(status, managers=managers), NOON + timedelta(hours=1)) is None


def test_a_native_buffer_that_nobody_serves_says_only_that() -> None:
    left = Condition("Fulfilment", ConditionStatus.UNKNOWN, "LeftToAutoscaler", "")
    status = written(outcome(left, fulfilment="native", holds_nodes=False), theirs())
    assert [item["type"] for item in status["conditions"]] == ["Fulfilment"]
    assert "replicas" not in status


def test_two_that_keep_a_buffer_do_not_fight_over_its_words() -> None:
    both = Condition("Fulfilment", ConditionStatus.FALSE, "AlsoServed", "")
    ours = outcome(READY, FULL, both, autoscaler=KARPENTER)
    ours = replace(ours, demand=replace(ours.demand, conditions=(READY, both)))
    later = NOON + timedelta(minutes=10)
    agreed = {item["type"]: item for item in written(ours, theirs(), later)["conditions"]}
    assert agreed["Provisioning"]["message"] == "all 3 virtual pods", "it says the same in other words"
    asked = {item["type"]: item for item in written(ours, theirs(), later + timedelta(seconds=1))["conditions"]}
    assert asked["Provisioning"]["message"] == FULL.message, "one that is there will say so again"
    silent = replace(ours, demand=replace(ours.demand, autoscaler=replace(KARPENTER, answers=False)))
    left = {item["type"]: item for item in written(silent, theirs(), NOON + timedelta(hours=1))["conditions"]}
    assert left["Provisioning"]["message"] == "all 3 virtual pods", "not every autoscaler would"
    wrong = theirs("False")
    young = {item["type"]: item for item in written(ours, wrong, NOON)["conditions"]}
    assert young["Provisioning"]["status"] == "False", "what it has just written is not corrected at once"
    corrected = {item["type"]: item for item in written(ours, wrong, later)["conditions"]}
    assert (corrected["Provisioning"]["status"], corrected["Provisioning"]["message"]) == ("True", FULL.message)


def test_a_buffer_says_which_pods_it_was_translated_into() -> None:
    shaped = outcome(shape=builders.shape("2", "1Gi", node_selector={"disk": "ssd"}))
    container = {"name": "chunk", "resources": {"requests": {"cpu": "2", "memory": "1Gi"}}}
    status = written(shaped, live(kind="Buffer"))
    assert status["podBasedBufferSpec"] == {
        "replicaNum": 3,
        "podSpec": {"containers": [container], "nodeSelector": {"disk": "ssd"}},
    }
    assert "podBasedBufferSpec" not in written(shaped, live())
    unready = outcome(desired=None, shape=builders.shape())
    assert "podBasedBufferSpec" not in written(unready, live(status, kind="Buffer"))


def test_a_spec_that_another_manager_writes_does_not_matter() -> None:
    managers = {"kubectl": frozenset({"spec.replicas"}), "headroom": frozenset({"status.replicas"})}
    assert buffer_status(outcome(), live(managers=managers), NOON) is not None


def test_last_fully_provisioned_is_when_fullness_began_or_ended() -> None:
    full = written(outcome(READY, FULL), live(kind="Buffer"))
    assert (full["lastFullyProvisioned"], full["observedGeneration"]) == ("2026-03-01T12:00:00Z", 5)
    after = NOON + timedelta(hours=1)
    missing = written(outcome(READY, MISSING), live(full, kind="Buffer"), after)
    assert missing["lastFullyProvisioned"] == "2026-03-01T13:00:00Z"
    reworded = replace(MISSING, message="still two")
    later = written(outcome(READY, reworded), live(missing, kind="Buffer"), after + timedelta(hours=1))
    assert later["lastFullyProvisioned"] == "2026-03-01T13:00:00Z"


def test_a_buffer_that_was_never_full_has_no_such_time() -> None:
    assert "lastFullyProvisioned" not in written(outcome(READY, MISSING), live(kind="Buffer"))


# Events about what a buffer's status begins to say.

NO_STOCK = UnplacedReason(Cause.NOT_AVAILABLE, 1, "m-4x in zone-a on-demand")
AT_ITS_LIMIT = UnplacedReason(Cause.AT_LIMIT, 1, "NodePool general is at its cpu limit of 10")
Said = tuple[str, str, str]


def said(kind: str, words: Said | None) -> list[dict[str, Any]]:
    return [] if words is None else [dict(zip(("type", "status", "reason", "message"), (kind, *words), strict=True))]


def told(
    kind: str, before: Said | None, after: Said, *reasons: UnplacedReason, result: Outcome = Outcome.APPLIED
) -> list[tuple[str, str]]:
    ref = buffer_ref()
    outcome = DemandOutcome(demand(), 0, 0, 0, unplaced_reasons=reasons)
    plan = Plan(None, datetime(2026, 11, 22, tzinfo=UTC), demands=(outcome,))
    view = ClusterView(objects={ref: LiveObject(ref, {"status": {"conditions": said(kind, before)}})})
    write = ApplyStatus(ref, {"conditions": said(kind, after)})
    found = buffer_events(plan, ChangeSet((WriteResult(write, result),)), view)
    return [(event.kind, event.reason) for event in found]


IS_FULL: Said = ("True", "FitsExistingCapacity", "all 3 chunks have room")
SHORT: Said = ("False", "RequiresNewCapacity", "of 3 chunks, 1 on nodes to be made")
EMPTY: Said = ("False", "BufferEmpty", "the buffer asks for nothing")


@pytest.mark.parametrize(
    ("before", "after", "reasons", "expected"),
    [
        (SHORT, IS_FULL, (), [("Normal", "Full")]),
        (None, IS_FULL, (), [("Normal", "Full")]),
        (IS_FULL, (*IS_FULL[:2], "all 4 chunks have room"), (), []),
        (IS_FULL, SHORT, (), [("Normal", "Short")]),
        (EMPTY, SHORT, (), [("Normal", "Short")]),
        (SHORT, (*SHORT[:2], "of 3 chunks, 1 on nodes that are on their way"), (), []),
        (SHORT, (*SHORT[:2], "of 3 chunks, 1 without a place"), (NO_STOCK,), [("Warning", "OutOfStock")]),
        (IS_FULL, (*SHORT[:2], "of 3 chunks, 1 without a place"), (AT_ITS_LIMIT,), [("Warning", "NodePoolLimit")]),
        (SHORT, SHORT, (NO_STOCK,), []),
        (IS_FULL, EMPTY, (), []),
    ],
)
def test_full_short_and_out_of_stock(
    before: Said | None, after: Said, reasons: tuple[UnplacedReason, ...], expected: list[tuple[str, str]]
) -> None:
    assert told("Provisioning", before, after, *reasons) == expected


def test_a_buffer_that_is_not_ready_any_more_tells_why_once() -> None:
    ready: Said = ("True", "Resolved", "3 chunks")
    gone: Said = ("False", "PodTemplateNotFound", "PodTemplate/shop/web does not exist")
    assert told("ReadyForProvisioning", ready, gone) == [("Warning", "NotReady")]
    assert told("ReadyForProvisioning", gone, gone) == []
    assert told("ReadyForProvisioning", gone, ready) == []


def test_who_keeps_it_is_told_once() -> None:
    served: Said = ("True", "ServedByAutoscaler", "Karpenter serves this buffer")
    assert told("Fulfilment", None, served) == [("Normal", "StandingDown")]
    assert told("Fulfilment", served, served) == []
    missing: Said = ("False", "CapacityMissing", "")
    assert told("Fulfilment", served, missing) == [("Warning", "CapacityMissing")]


def test_what_was_not_written_is_not_told() -> None:
    assert told("Provisioning", SHORT, IS_FULL, result=Outcome.REFUSED) == []


def test_a_buffer_that_fills_and_is_used_tells_so() -> None:
    world = World()
    world.run()
    world.scale(4)
    world.run()
    counts = {item.event.reason: item.count for item in world.sandbox.cluster.events if item.event.ref == buffer_ref()}
    assert (counts["Short"], counts["Full"]) == (2, 2)

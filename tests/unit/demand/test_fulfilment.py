"""Who keeps a buffer: when headroom stands down, what it still holds meanwhile, and when it takes a buffer back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from reconciler.demand.buffers import buffer_demands
from reconciler.model.buffers import Dialect, Fulfilment
from reconciler.model.declared import Declared
from reconciler.model.demand import Demand
from reconciler.model.findings import Finding
from reconciler.model.view import ClusterView, LiveObject
from tests.builders import buffer, deployment

NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)
READY, PROVISIONING = "status.conditions.ReadyForProvisioning", "status.conditions.Provisioning"
THEIRS = frozenset({"status.replicas", READY, PROVISIONING})
OURS = frozenset({"status.replicas", READY, PROVISIONING})


def minutes_ago(minutes: float) -> str:
    return (NOON - timedelta(minutes=minutes)).isoformat()


def condition(kind: str, status: str, reason: str, *, generation: int | None = 5, since: float = 0) -> dict[str, Any]:
    seen = {} if generation is None else {"observedGeneration": generation}
    said = {"type": kind, "status": status, "reason": reason, "message": "", "lastTransitionTime": minutes_ago(since)}
    return {**said, **seen}


def live(
    *conditions: Mapping[str, Any],
    managers: Mapping[str, frozenset[str]],
    written: float = 0,
    replicas: int | None = 3,
    kind: str = "CapacityBuffer",
) -> LiveObject:
    status = {"conditions": list(conditions)} | ({} if replicas is None else {"replicas": replicas})
    body = {"metadata": {"name": "web", "generation": 5, "uid": "u"}, "spec": {}, "status": status}
    ref = buffer().ref._replace(kind=kind)
    return LiveObject(ref, body, managers, dict.fromkeys(managers, minutes_ago(written)))


def ask(
    item: LiveObject, *, asked: str = "", default: Fulfilment = Fulfilment.PLACEHOLDER
) -> tuple[Demand, tuple[Finding, ...]]:
    one = buffer(ref=item.ref, default_fulfilment=default)
    if asked:
        one = replace(one, annotations=(("headroom.dev/fulfilment", asked),))
    declared = Declared(buffers=(one,), workloads=(deployment(),))
    view = ClusterView(objects={item.ref: item})
    demands, findings = buffer_demands(declared, view, dialect=Dialect.KARPENTER, now=NOON)
    return demands[0], findings


def said(demand: Demand) -> tuple[str, str] | None:
    return next(((item.status, item.reason) for item in demand.conditions if item.type == "Fulfilment"), None)


def kept(demand: Demand) -> tuple[str, bool, bool, int]:
    """By whom, whether headroom holds nodes for it and may make some, and how many chunks take room."""
    return (demand.fulfilment, demand.holds_nodes, demand.opens_nodes, sum(group.count for group in demand.groups))


HELD_BY_HEADROOM = ("placeholder", True, True, 3)
FULL = condition("Provisioning", "True", "FitsExistingCapacity")
SHORT = condition("Provisioning", "False", "RequiresNewCapacity")


@pytest.mark.parametrize(
    "managers",
    [
        {"reviewer-bot": frozenset({"status.conditions", "status.conditions.ReviewedBy"})},
        {"kubectl-edit": THEIRS},
        {"karpenter": frozenset({"status.conditions.NodePoolReady", "status.podTemplateRef"})},
        {"karpenter-reviewer": THEIRS},
    ],
    ids=["a bot's condition", "a person", "other fields", "another program of a like name"],
)
def test_who_writes_other_fields_or_is_no_autoscaler_changes_nothing(managers: Mapping[str, frozenset[str]]) -> None:
    demand, findings = ask(live(FULL, managers=managers))
    assert (kept(demand), said(demand), findings) == (HELD_BY_HEADROOM, None, ())


def test_a_buffer_of_the_older_kind_is_never_left_to_anybody() -> None:
    demand, findings = ask(live(FULL, managers={"karpenter": THEIRS}, kind="Buffer"))
    assert (kept(demand), findings) == (HELD_BY_HEADROOM, ())


def test_native_on_a_buffer_of_the_older_kind_would_leave_it_to_nobody() -> None:
    demand, _ = ask(live(managers={}, kind="Buffer"), asked="native")
    assert (kept(demand), said(demand)) == (HELD_BY_HEADROOM, None)


@pytest.mark.parametrize("manager", ["karpenter", "cluster-autoscaler", "gke-cluster-autoscaler"])
@pytest.mark.parametrize("field", sorted(THEIRS))
def test_headroom_stands_down_for_a_known_autoscaler(manager: str, field: str) -> None:
    demand, (finding,) = ask(live(FULL, managers={manager: frozenset({field})}))
    assert kept(demand) == ("native", False, False, 3), "its room is counted, and headroom holds none of it"
    assert said(demand) == ("True", "ServedByAutoscaler")
    assert finding.code == "status-of-another"


def test_what_headroom_holds_is_kept_until_the_other_reports_it() -> None:
    both = {"headroom": OURS, "karpenter": frozenset({READY})}
    demand, _ = ask(live(FULL, managers=both))
    assert kept(demand) == ("native", True, False, 3), "the word that it is provisioned is headroom's own"
    assert said(demand) == ("False", "HandingOver")
    both = {"headroom": OURS, "karpenter": THEIRS}
    assert kept(ask(live(SHORT, managers=both))[0])[1], "it reports, but not that the capacity is there"
    old = condition("Provisioning", "True", "FitsExistingCapacity", generation=4)
    assert kept(ask(live(old, managers=both))[0])[1], "it reports on the generation before"
    assert not kept(ask(live(FULL, managers=both))[0])[1]
    unsaid = condition("Provisioning", "True", "Fits", generation=None)
    assert not kept(ask(live(unsaid, managers=both))[0])[1], "Cluster Autoscaler says no generation"


def test_once_let_go_it_is_not_held_again_when_its_room_is_used() -> None:
    told = condition("Fulfilment", "True", "ServedByAutoscaler")
    both = {"headroom": OURS | {"status.conditions.Fulfilment"}, "karpenter": THEIRS}
    demand, _ = ask(live(SHORT, told, managers=both))
    assert (kept(demand)[1], said(demand)) == (False, ("True", "ServedByAutoscaler"))


def test_what_the_autoscaler_keeps_has_the_size_that_it_says() -> None:
    demand, _ = ask(live(FULL, managers={"karpenter": THEIRS}, replicas=7))
    assert (demand.desired, kept(demand)[3]) == (7, 7)


def test_it_is_taken_back_when_the_fields_have_gone() -> None:
    told = condition("Fulfilment", "True", "ServedByAutoscaler")
    demand, findings = ask(live(told, managers={"headroom": frozenset({"status.conditions.Fulfilment"})}))
    assert (kept(demand), said(demand), findings) == (HELD_BY_HEADROOM, None, ())


def test_it_is_taken_back_when_it_asks_for_placeholders_and_that_both_serve_it_is_said() -> None:
    demand, (finding,) = ask(live(FULL, managers={"karpenter": THEIRS}), asked="placeholder")
    assert kept(demand) == HELD_BY_HEADROOM
    assert said(demand) == ("False", "AlsoServed")
    assert (finding.code, "Karpenter" in finding.message) == ("served-twice", True)


@pytest.mark.parametrize(
    ("written", "missing_since", "taken_back"),
    [(11, 2, True), (9, 2, False), (11, 0.5, False)],
    ids=["silent and missing", "it wrote lately", "missing only just now"],
)
def test_it_is_taken_back_from_a_silent_autoscaler_when_the_capacity_is_missing(
    written: float, missing_since: float, *, taken_back: bool
) -> None:
    told = condition("Fulfilment", "False", "CapacityMissing", since=missing_since)
    demand, _ = ask(live(FULL, told, managers={"karpenter": THEIRS}, written=written))
    assert kept(demand) == (HELD_BY_HEADROOM if taken_back else ("native", False, False, 3))
    assert demand.silent is (written > 10 and not taken_back)
    native, _ = ask(live(FULL, told, managers={"karpenter": THEIRS}, written=written), asked="native")
    assert native.fulfilment == "native", "who asked for it is taken at the word"


def test_what_was_taken_back_goes_again_to_an_autoscaler_that_has_come_back() -> None:
    told = condition("Fulfilment", "False", "TakenBack", since=30)
    assert said(ask(live(FULL, told, managers={"karpenter": THEIRS}, written=40))[0]) == ("False", "TakenBack")
    assert said(ask(live(SHORT, told, managers={"karpenter": THEIRS}, written=1))[0]) == ("False", "TakenBack")
    assert said(ask(live(FULL, told, managers={"karpenter": THEIRS}, written=1))[0]) == ("True", "ServedByAutoscaler")


def test_native_keeps_what_headroom_has_until_somebody_serves_it() -> None:
    demand, findings = ask(live(FULL, managers={"headroom": OURS}), asked="native")
    assert kept(demand) == ("native", True, False, 3)
    assert said(demand) == ("False", "HandingOver")
    assert findings == ()


def test_native_without_anything_held_asks_for_nothing() -> None:
    demand, _ = ask(live(managers={}), asked="native")
    assert (kept(demand), said(demand)) == (("native", False, False, 0), ("Unknown", "LeftToAutoscaler"))
    by_setting, _ = ask(live(managers={}), default=Fulfilment.NATIVE)
    assert by_setting == demand


def test_the_annotation_goes_before_the_setting() -> None:
    demand, _ = ask(live(managers={}), asked="placeholder", default=Fulfilment.NATIVE)
    assert kept(demand) == HELD_BY_HEADROOM


def test_native_shows_the_autoscalers_own_conditions() -> None:
    theirs = condition("ReadyForProvisioning", "True", "Resolved")
    item = live(theirs, FULL, managers={"karpenter": THEIRS})
    demand, findings = ask(item, asked="native")
    assert [each.type for each in demand.conditions] == ["Fulfilment"], "without a typed status there is none to show"
    assert findings == ()

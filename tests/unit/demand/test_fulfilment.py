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


OLDER = condition("Provisioning", "True", "FitsExistingCapacity", generation=4)
WITHOUT_GENERATION = condition("Provisioning", "True", "Fits", generation=None)
SERVED, TAKEN_BACK = (
    condition("Fulfilment", "True", "ServedByAutoscaler"),
    condition("Fulfilment", "False", "TakenBack", since=30),
)
KARPENTERS: Mapping[str, frozenset[str]] = {"karpenter": THEIRS}
BOTH: Mapping[str, frozenset[str]] = {"headroom": OURS, **KARPENTERS}
TOLD = frozenset({"status.conditions.Fulfilment"})
HANDING_OVER, LET_GO = ("native", True, False, 3), ("native", False, False, 3)
SERVES, GOES_OVER = ("True", "ServedByAutoscaler"), ("False", "HandingOver")
Kept = tuple[str, bool, bool, int]
CASES: dict[str, tuple[tuple[Demand, tuple[Finding, ...]], Kept, tuple[str, str] | None, list[str]]] = {
    "a bot's condition changes nothing": (
        ask(live(FULL, managers={"bot": frozenset({"status.conditions", "status.conditions.ReviewedBy"})})),
        HELD_BY_HEADROOM, None, []
    ),
    "nor does a person": (ask(live(FULL, managers={"kubectl-edit": THEIRS})), HELD_BY_HEADROOM, None, []),
    "nor do other fields": (
        ask(live(FULL, managers={"karpenter": frozenset({"status.conditions.NodePoolReady", "status.podTemplateRef"})})),
        HELD_BY_HEADROOM, None, []
    ),
    "nor another program of a like name": (
        ask(live(FULL, managers={"karpenter-reviewer": THEIRS})), HELD_BY_HEADROOM, None, []
    ),
    "one of the older kind is never left to anybody": (
        ask(live(FULL, managers=KARPENTERS, kind="Buffer")), HELD_BY_HEADROOM, None, []
    ),
    "since native would leave it to nobody": (
        ask(live(managers={}, kind="Buffer"), asked="native"), HELD_BY_HEADROOM, None, []
    ),
    "what headroom holds is kept while the word that it is provisioned is headroom's own": (
        ask(live(FULL, managers={"headroom": OURS, "karpenter": frozenset({READY})})),
        HANDING_OVER, GOES_OVER, ["status-of-another"]
    ),
    "or the other reports that it is not there": (
        ask(live(SHORT, managers=BOTH)), HANDING_OVER, GOES_OVER, ["status-of-another"]
    ),
    "or reports on the generation before": (
        ask(live(OLDER, managers=BOTH)), HANDING_OVER, GOES_OVER, ["status-of-another"]
    ),
    "until the other reports it": (ask(live(FULL, managers=BOTH)), LET_GO, SERVES, ["status-of-another"]),
    "also without a generation, as Cluster Autoscaler": (
        ask(live(WITHOUT_GENERATION, managers=BOTH)), LET_GO, SERVES, ["status-of-another"]
    ),
    "once let go it is not held again when its room is used": (
        ask(live(SHORT, SERVED, managers={**BOTH, "headroom": OURS | TOLD})), LET_GO, SERVES, ["status-of-another"]
    ),
    "it is taken back when the fields have gone": (
        ask(live(SERVED, managers={"headroom": TOLD})), HELD_BY_HEADROOM, None, []
    ),
    "or when it asks for placeholders, and that both serve it is said": (
        ask(live(FULL, managers=KARPENTERS), asked="placeholder"),
        HELD_BY_HEADROOM, ("False", "AlsoServed"), ["served-twice"]
    ),
    "what was taken back stays": (
        ask(live(FULL, TAKEN_BACK, managers=KARPENTERS, written=40)), HELD_BY_HEADROOM, ("False", "TakenBack"), ["served-twice"]
    ),
    "while an autoscaler that writes again has not the capacity": (
        ask(live(SHORT, TAKEN_BACK, managers=KARPENTERS, written=1)), HELD_BY_HEADROOM, ("False", "TakenBack"), ["served-twice"]
    ),
    "and goes again to one that has": (
        ask(live(FULL, TAKEN_BACK, managers=KARPENTERS, written=1)), LET_GO, SERVES, ["status-of-another"]
    ),
    "native keeps what headroom has until somebody serves it": (
        ask(live(FULL, managers={"headroom": OURS}), asked="native"), HANDING_OVER, GOES_OVER, []
    ),
    "native without anything held asks for nothing": (
        ask(live(managers={}), asked="native"), ("native", False, False, 0), ("Unknown", "LeftToAutoscaler"), []
    ),
    "also by the setting": (
        ask(live(managers={}), default=Fulfilment.NATIVE), ("native", False, False, 0), ("Unknown", "LeftToAutoscaler"), []
    ),
    "before which the annotation goes": (
        ask(live(managers={}), asked="placeholder", default=Fulfilment.NATIVE), HELD_BY_HEADROOM, None, []
    ),
}  # fmt: skip


@pytest.mark.parametrize(("answer", "by", "says", "codes"), CASES.values(), ids=CASES)
def test_who_keeps_a_buffer(
    answer: tuple[Demand, tuple[Finding, ...]], by: Kept, says: tuple[str, str] | None, codes: list[str]
) -> None:
    demand, findings = answer
    assert (kept(demand), said(demand), [item.code for item in findings]) == (by, says, codes)


def test_native_shows_the_autoscalers_own_conditions() -> None:
    item = live(condition("ReadyForProvisioning", "True", "Resolved"), FULL, managers=KARPENTERS)
    demand, findings = ask(item, asked="native")
    assert [each.type for each in demand.conditions] == ["Fulfilment"], "without a typed status there is none to show"
    assert findings == ()


@pytest.mark.parametrize("manager", ["karpenter", "cluster-autoscaler", "gke-cluster-autoscaler"])
@pytest.mark.parametrize("field", sorted(THEIRS))
def test_headroom_stands_down_for_a_known_autoscaler(manager: str, field: str) -> None:
    demand, (finding,) = ask(live(FULL, managers={manager: frozenset({field})}))
    assert kept(demand) == ("native", False, False, 3), "its room is counted, and headroom holds none of it"
    assert said(demand) == ("True", "ServedByAutoscaler")
    assert finding.code == "status-of-another"


def test_what_the_autoscaler_keeps_has_the_size_that_it_says() -> None:
    demand, _ = ask(live(FULL, managers=KARPENTERS, replicas=7))
    assert (demand.desired, kept(demand)[3]) == (7, 7)


@pytest.mark.parametrize(
    ("written", "missing_since", "taken_back"),
    [(11, 2, True), (9, 2, False), (11, 0.5, False)],
    ids=["silent and missing", "it wrote lately", "missing only just now"],
)
def test_it_is_taken_back_from_a_silent_autoscaler_when_the_capacity_is_missing(
    written: float, missing_since: float, *, taken_back: bool
) -> None:
    told = condition("Fulfilment", "False", "CapacityMissing", since=missing_since)
    demand, _ = ask(live(FULL, told, managers=KARPENTERS, written=written))
    assert kept(demand) == (HELD_BY_HEADROOM if taken_back else ("native", False, False, 3))
    assert demand.silent is (written > 10 and not taken_back)
    native, _ = ask(live(FULL, told, managers=KARPENTERS, written=written), asked="native")
    assert native.fulfilment == "native", "who asked for it is taken at the word"

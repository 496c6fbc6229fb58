"""What `headroom status` prints of a pass: the findings themselves, not where else to look for them."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from reconciler.model.buffers import Fulfilment
from reconciler.model.changes import ChangeSet, DemandOutcome, Outcome, Plan
from reconciler.model.conditions import Condition, ConditionStatus
from reconciler.model.demand import Demand
from reconciler.model.errors import Transient
from reconciler.model.findings import Finding, Severity
from reconciler.model.provisioning_requests import Phase, RequestKind, RequestState
from reconciler.model.refs import ObjectRef, SourcePosition
from reconciler.model.remembered import RequestRecord, WaitingDeletions
from reconciler.model.schedules import Edge, ScheduleOutcome
from reconciler.report.status.clusters import clusters_page, clusters_text
from reconciler.report.status.document import Live, PassReport, daemon_status_document, live_document
from reconciler.report.status.text import daemon_status_text
from reconciler.report.status.words import headline, held_back, size_words
from tests.builders import buffer_ref, demand
from tests.fakes.passes import wrote
from tests.fakes.requests import BatchShop, request, request_ref
from tests.fakes.status import shown
from tests.plans import NOW, full_plan


def document(plan: Plan) -> dict[str, Any]:
    return shown(PassReport("production", NOW, NOW, passes=3, plan=plan, settled=True))


def status(plan: Plan) -> str:
    return daemon_status_text(document(plan))


def finding(number: int, severity: Severity) -> Finding:
    return Finding("code", severity, f"message {number}", SourcePosition("a.yaml", number, 1), buffer_ref(f"b{number}"))


def test_a_pass_with_errors_is_not_healthy_and_says_how_many_documents_have_them() -> None:
    """However long ago the commit was made that has them."""
    text = status(full_plan())
    assert " is not healthy: 1 document has errors." in text
    assert document(full_plan())["counts"]["error"] == 1
    assert (
        "  error       buffers.yaml:25: CapacityBuffer/shop/broken:"
        " spec.scalableRef names Deployment broken, which is nowhere\n"
    ) in text


def test_what_to_write_instead_stands_below_an_error() -> None:
    slip = replace(finding(1, Severity.ERROR), hint='did you mean "CapacityBuffer"?')
    text = status(replace(full_plan(), findings=(slip, replace(slip, severity=Severity.INFO, hint="no slip"))))
    assert 'message 1\n              did you mean "CapacityBuffer"?\n' in text
    assert "no slip" not in text


def test_a_pass_whose_writes_are_refused_is_not_well() -> None:
    report = PassReport("production", NOW, NOW, passes=3, plan=full_plan(), change_set=wrote(Outcome.REFUSED))
    told = shown(report)
    assert " is not healthy: 1 write did not succeed; 1 document has errors." in daemon_status_text(told)


def test_an_object_and_its_status_that_fail_for_the_same_reason_are_one_row() -> None:
    failed = wrote(Outcome.FAILED)
    twice = ChangeSet((*failed.results, *failed.results))
    told = shown(PassReport("production", NOW, NOW, passes=3, plan=full_plan(), change_set=twice))
    assert daemon_status_text(told).count(str(failed.results[0].write.ref)) == 1


def test_two_errors_of_one_document_are_one_document() -> None:
    error = finding(1, Severity.ERROR)
    assert "not healthy: 1 document has errors" in status(
        replace(full_plan(), findings=(error, replace(error, message="other")))
    )


def test_errors_come_before_warnings_and_no_more_than_ten_are_listed() -> None:
    warnings = tuple(finding(number, Severity.WARNING) for number in range(1, 12))
    text = status(replace(full_plan(), findings=(*warnings, finding(99, Severity.ERROR))))
    assert text.index("message 99") < text.index("message 1\n")
    assert "message 9\n" in text
    assert "message 10" not in text
    assert "  … and 2 findings more (headroom validate shows them)\n" in text


def test_without_errors_it_is_plainly_well_and_the_notes_are_told() -> None:
    notes = tuple(finding(number, Severity.INFO) for number in range(1, 300))
    told = (*notes, replace(notes[0], code="other", message="another"))
    text = status(replace(full_plan(), blocked=(), findings=told))
    assert " is healthy.\n" in text
    assert "  info        a.yaml:1: CapacityBuffer/shop/b1: message 1 (and 298 more of code)\n" in text
    assert "  info        a.yaml:1: CapacityBuffer/shop/b1: another\n" in text
    assert "message 2" not in text


def test_errors_stay_in_the_status_while_passes_fail() -> None:
    """The API server does not answer: the repository is no better than it was."""
    before = document(full_plan())
    failed = PassReport("production", NOW, NOW, 4, plan=full_plan(), planned=False, failure=Transient("no answer"))
    told = shown(failed)
    assert (told["findings"], told["counts"]) == (before["findings"], before["counts"])
    assert (
        " is not healthy: the last pass failed and is tried again: no answer; 1 document has errors."
        in daemon_status_text(told)
    )


def test_the_next_edge_and_what_schedules_are_worth_are_told() -> None:
    rows = (
        ScheduleOutcome("shop", "for-good", 4, None, None),
        ScheduleOutcome("shop", "office", 1, 3, NOW + timedelta(hours=2)),
    )
    edge = Edge(NOW + timedelta(minutes=110), "MetricsProducer/shop/office, 10m ahead")
    report = PassReport("production", NOW, NOW, passes=3, plan=replace(full_plan(), schedules=rows))
    told = shown(report, Live(next_edge=edge))
    assert told["nextEdge"] == {"time": "2026-11-21T09:20:00Z", "schedule": "MetricsProducer/shop/office, 10m ahead"}
    lines = daemon_status_text(told).splitlines()
    assert [line.split(": ", 1)[1] for line in lines if line.startswith("  next change ")] == [
        "MetricsProducer/shop/office, 10m ahead"
    ]
    lines_of_schedules = [line for line in lines if line.startswith("  schedule ")]
    assert lines_of_schedules[0].startswith("  schedule    shop/office: 1 now, 3 from 2026-11-21 ")
    assert lines_of_schedules[1] == "  schedule    shop/for-good: 4 now, no further change"


def test_the_no_of_a_request_is_an_answer_and_no_shortage() -> None:
    shop = BatchShop()
    shop.cluster.apply(request("too-large", count=40))
    text = status(shop.settle(passes=2))
    assert "  request     shop/too-large  no room yet for 40 of 40 pods: " in text
    assert "short" not in text


def test_what_is_not_ready_says_why() -> None:
    shop = BatchShop()
    shop.cluster.apply(request("early", template="later"))
    text = status(shop.settle(passes=1))
    assert "  request     shop/early  not ready: PodTemplate/shop/later does not exist\n" in text


def test_what_another_provides_for_is_not_told_as_not_ready() -> None:
    theirs = Demand(request_ref(), request=RequestState(RequestKind.CHECK, Phase.LEFT, RequestRecord("", "")))
    text = status(Plan(None, NOW, demands=(DemandOutcome(theirs, 0, 0, 0),)))
    assert "not ready" not in text


def test_a_pass_that_is_held_up_is_not_healthy() -> None:
    """The last pass was told as healthy while the next one waited for an API server that never answered."""
    report = PassReport("production", NOW, NOW, passes=3, plan=Plan(None, NOW))
    assert "is healthy." in daemon_status_text(shown(report))
    held_up = Live(held_up="a pass has made no progress for 21 s (phase: cluster)")
    assert "is not healthy: a pass has made no progress for 21 s (phase: cluster).\n" in daemon_status_text(
        shown(report, held_up)
    )


def test_what_cannot_be_read_is_not_healthy() -> None:
    """Where no Lease tells of it, an API server that was away was told as healthy."""
    text = status(Plan(None, NOW, blocked=("nodes cannot be read: no answer",)))
    assert " is not healthy: nothing is deleted or released.\n" in text
    assert "  waits       nothing is deleted or released: nodes cannot be read: no answer\n" in text


def test_without_a_pass_for_long_what_is_shown_may_be_out_of_date() -> None:
    """It was told as healthy for as long as the process answered."""
    report = PassReport("production", NOW, NOW, passes=3, plan=Plan(None, NOW), failure=Transient("no answer"))
    late = live_document(daemon_status_document(replace(report, failure=None)), Live(), NOW + timedelta(minutes=12))
    assert late["health"] == {
        "healthy": False,
        "late": True,
        "why": ["no pass has ended for 11m, so that all of this may be out of date"],
    }
    standby = live_document(daemon_status_document(report), Live(leads=False), NOW + timedelta(minutes=12))
    assert not standby["health"]["late"], "only the replica that leads makes passes"
    assert standby["health"]["healthy"], "what failed when it led is the leader's concern"


def test_a_pass_that_somebody_asked_for_is_told_by_what_they_wrote() -> None:
    asked = {**document(full_plan()), "handledRequest": "noon \u202e"}
    assert "  requested   noon \\u202e: a pass was made for it\n" in daemon_status_text(asked)
    assert "requested " not in status(full_plan())


def test_a_document_without_a_name_is_told_as_one() -> None:
    nameless = Finding(
        "missing-field", Severity.ERROR, "metadata.name is missing", ref=ObjectRef("", "PodTemplate", "shop", "")
    )
    assert "error       PodTemplate without a name: metadata.name is missing\n" in status(
        Plan(None, NOW, findings=(nameless,))
    )


# All clusters of one daemon: those that fail come first, and sums are of all.


def row(name: str, *, ready: int = 2, why: tuple[str, ...] = (), planned: bool = True) -> dict[str, Any]:
    return {
        "name": name,
        "finished": "2026-11-25T08:00:00Z",
        "revision": "main@sha1:0123456789abcdef0123456789abcdef01234567",
        "planned": "2026-11-25T08:00:00Z" if planned else None,
        "why": list(why),
        "headline": "All 1 buffers are ready",
        "buffers": 1,
        "wanted": 2,
        "ready": ready,
        "coming": 0,
        "missing": 2 - ready,
        "nodes": 3,
        "held": 1,
        "perHour": 0.5,
    }


DOCUMENT = {
    "schemaVersion": "headroom.dev/clusters/v1",
    "version": "0.1.0",
    "clusters": [row("a"), row("short", ready=1), row("fails", why=("the last pass failed\x1b[2J",))],
}


def test_the_page_has_what_fails_first_then_what_is_short_and_the_sums() -> None:
    page = clusters_page(DOCUMENT)
    assert page["headline"] == "1 of 3 clusters needs attention"
    assert [each["name"] for each in page["rows"]] == ["fails", "short", "a"]
    assert [(tile["name"], tile["value"]) for tile in page["tiles"]] == [
        ("Clusters", "2 of 3"),
        ("Chunks ready", "5 of 6"),
        ("Nodes", "9"),
        ("Cost an hour", "$1.50"),
    ]


def test_the_text_has_a_line_for_each_and_nothing_that_moves_a_cursor() -> None:
    lines = clusters_text(DOCUMENT).splitlines()
    assert lines[0] == "1 of 3 clusters needs attention"
    assert lines[1].startswith("fails: 2 of 2 chunks ready, 3 nodes, $0.50/h; the last pass failed")
    assert "\x1b" not in lines[1]


def test_of_a_cluster_without_a_plan_no_counts_are_told() -> None:
    unread = row("away", why=("no pass has ended yet",), planned=False)
    text = clusters_text({**DOCUMENT, "clusters": [unread]})
    assert text.splitlines()[1] == "away: no pass has ended yet"


# How buffers are, in one sentence and one line each.

FULL = (Condition("Provisioning", ConditionStatus.TRUE, "FitsExistingCapacity"),)
READY = DemandOutcome(demand("ready", count=2), 2, 0, 0, conditions=FULL)
OTHER = DemandOutcome(demand("other", count=1), 1, 0, 0, conditions=FULL)
FILLING = DemandOutcome(demand("filling", count=4), 3, 1, 0, on_its_way=2)
SHORT = DemandOutcome(demand("short", count=4), 1, 0, 3)
LOST = DemandOutcome(demand("lost", count=4), 4, 0, 0, not_ready=1)
SUSPENDED = DemandOutcome(replace(demand("suspended", count=4), suspended=True), 0, 0, 4)
EMPTY = DemandOutcome(demand("empty", count=0), 0, 0, 0)
NOT_READY = DemandOutcome(replace(demand("not-ready", count=0), desired=None), 0, 0, 0)
LEFT = DemandOutcome(replace(demand("native", count=3), fulfilment=Fulfilment.NATIVE), 3, 0, 0)


@pytest.mark.parametrize(
    ("outcome", "state", "words"),
    [
        (READY, "ready", "2/2 ready"),
        (FILLING, "filling", "1/4 ready, 3 coming"),
        (SHORT, "short", "1/4 ready, 3 missing"),
        (LOST, "short", "3/4 ready, 1 missing"),
        (SUSPENDED, "suspended", "suspended"),
        (EMPTY, "empty", "asks for nothing"),
        (NOT_READY, "not ready", "not ready"),
        (LEFT, "unknown", "not known"),
    ],
)
def test_a_buffer_in_a_few_words(outcome: DemandOutcome, state: str, words: str) -> None:
    (row,) = document(Plan(None, NOW, demands=(outcome,)))["demands"]
    assert (row["capacity"]["state"], size_words(row)) == (state, words)
    assert sum(row["capacity"][part] for part in ("ready", "coming", "missing")) == (outcome.demand.desired or 0)


def test_a_very_long_name_moves_no_column_of_the_others() -> None:
    long = DemandOutcome(demand("x" * 200, count=2), 2, 0, 0, conditions=FULL)
    assert re.search(
        r"^  buffer      shop/ready {1,45} 2/2 ready", status(Plan(None, NOW, demands=(READY, long))), re.MULTILINE
    )


@pytest.mark.parametrize(
    ("outcomes", "said"),
    [
        ((), "No buffers are declared"),
        ((READY,), "The buffer is ready"),
        ((READY, OTHER), "All 2 buffers are ready"),
        ((READY, SUSPENDED), "1 buffer is ready; 1 is suspended, empty or kept by others"),
        ((SUSPENDED, EMPTY), "No buffer asks for capacity of headroom's now"),
        ((READY, FILLING), "1 of 2 buffers is not full: shop/filling waits for 3 of 4 chunks"),
        (
            (READY, FILLING, SHORT, NOT_READY),
            "3 of 4 buffers are not full: shop/not-ready is not ready, shop/short lacks 3 of 4 chunks and 1 more",
        ),
    ],
)
def test_all_buffers_in_one_sentence_the_worst_first(outcomes: tuple[DemandOutcome, ...], said: str) -> None:
    assert headline(document(Plan(None, NOW, demands=outcomes))) == said


def test_a_replica_that_waits_says_who_leads() -> None:
    report = PassReport("shop", NOW, NOW, 0)
    assert headline(shown(report, Live(leads=False, leader="a"))) == "This replica is on standby: a leads"
    assert headline(shown(report)) == "No pass has made a plan yet"
    led = shown(replace(report, plan=full_plan()), Live(leads=False, leader="a"))
    assert headline(led) == "This replica is on standby: a leads; what follows is as of its last pass"


def test_what_is_due_and_not_done() -> None:
    report = PassReport("shop", NOW, NOW, 1, plan=full_plan())
    assert held_back(shown(report)) == [
        (None, "nothing is deleted or released: the repository was rewound 3 minutes ago"),
        (None, "2 of 5 nodes were left for the next pass: caps.newNodesPerPass is 3"),
    ]
    stalled = Plan(None, NOW, blocked=("the repository is stalled",), waiting=WaitingDeletions((buffer_ref(),)))
    said = "nothing is deleted or released, and 1 object waits to be deleted: the repository is stalled"
    assert held_back(shown(replace(report, plan=stalled))) == [(None, said)]


def test_a_sum_without_the_price_of_some_nodes_says_so() -> None:
    """It was `$0.00/h of all nodes` where no price is known."""
    plan = full_plan()
    (made,) = plan.node_claims.create
    unpriced = replace(made, planned=replace(made.planned, price=0.0, price_known=False))
    text = status(replace(plan, node_claims=replace(plan.node_claims, create=(unpriced,))))
    assert "/h of all nodes, without the price of 1 node" in text
    assert "  nodes       general: 1 node, 1 coming, 1 without a price, $0.00/h" in text
    assert "without" not in status(plan)


def test_what_comes_in_one_minute_is_told_once() -> None:
    """`a node may be left for cheaper room` stood there twice, with the same minute."""
    edges = tuple(Edge(NOW + timedelta(minutes=minute, seconds=minute), "a node may be left") for minute in (1, 2))
    twice = (*edges, replace(edges[1], at=edges[1].at + timedelta(seconds=9)))
    text = daemon_status_text(shown(PassReport("shop", NOW, NOW, 1, plan=Plan(None, NOW, edges=twice))))
    assert text.count("a node may be left") == 2

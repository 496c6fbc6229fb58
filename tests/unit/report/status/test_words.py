"""How buffers are, in one sentence and one line each."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from reconciler.model.buffers import Fulfilment
from reconciler.model.changes import DemandOutcome, Plan
from reconciler.model.conditions import Condition, ConditionStatus
from reconciler.model.remembered import WaitingDeletions
from reconciler.model.schedules import Edge
from reconciler.report.status.document import Live, PassReport
from reconciler.report.status.text import daemon_status_text
from reconciler.report.status.words import headline, held_back, size_words
from tests.builders import buffer_ref, demand
from tests.fakes.status import shown
from tests.plans import NOW, full_plan

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


def document(*outcomes: DemandOutcome) -> dict[str, Any]:
    return shown(PassReport("shop", NOW, NOW, 1, plan=Plan(None, NOW, demands=outcomes)))


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
    (row,) = document(outcome)["demands"]
    assert (row["capacity"]["state"], size_words(row)) == (state, words)
    assert sum(row["capacity"][part] for part in ("ready", "coming", "missing")) == (outcome.demand.desired or 0)


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
    assert headline(document(*outcomes)) == said


def test_a_replica_that_waits_says_who_leads() -> None:
    report = PassReport("shop", NOW, NOW, 0)
    assert headline(shown(report, Live(leads=False, leader="a"))) == "This replica is on standby: a leads"
    assert headline(shown(report)) == "No pass has made a plan yet"


def test_what_is_due_and_not_done() -> None:
    report = PassReport("shop", NOW, NOW, 1, plan=full_plan())
    assert held_back(shown(report)) == [
        (None, "nothing is deleted or released: the repository was rewound 3 minutes ago"),
        (None, "2 of 5 nodes were left for the next pass: caps.newNodesPerPass is 3"),
    ]
    stalled = Plan(None, NOW, blocked=("the repository is stalled",), waiting=WaitingDeletions((buffer_ref(),)))
    said = "nothing is deleted or released, and 1 object waits to be deleted: the repository is stalled"
    assert held_back(shown(replace(report, plan=stalled))) == [(None, said)]


def test_what_comes_in_one_minute_is_told_once() -> None:
    """`a node may be left for cheaper room` stood there twice, with the same minute."""
    edges = tuple(Edge(NOW + timedelta(minutes=minute, seconds=minute), "a node may be left") for minute in (1, 2))
    twice = (*edges, replace(edges[1], at=edges[1].at + timedelta(seconds=9)))
    text = daemon_status_text(shown(PassReport("shop", NOW, NOW, 1, plan=Plan(None, NOW, edges=twice))))
    assert text.count("a node may be left") == 2

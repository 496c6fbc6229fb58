"""What /status serves after a pass, and which passes a person at a console is shown."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import jsonschema_rs

from reconciler.cli.schema import output_schema
from reconciler.model.changes import ApplyStatus, ChangeSet, DemandOutcome, Outcome, Plan, WriteResult
from reconciler.model.declared import SourceTree
from reconciler.model.errors import Transient
from reconciler.model.refs import ObjectRef
from reconciler.model.remembered import WaitingDeletions
from reconciler.ports import PassResult
from reconciler.report.status.document import Live
from reconciler.report.status.text import daemon_status_text
from reconciler.telemetry.last_pass import LastPass
from reconciler.telemetry.logs import logger
from reconciler.telemetry.metrics import Metrics, ShownPasses
from tests.builders import buffer_ref, demand
from tests.fakes.clock import ManualClock
from tests.fakes.passes import wrote
from tests.fakes.status import shown
from tests.plans import NOW, full_plan

# What /status serves after a pass.


def last_pass(log: Any = None, metrics: Metrics | None = None) -> LastPass:
    return LastPass(cluster="embedded", clock=ManualClock(), metrics=metrics or Metrics(), log=log or logger())


def test_before_the_first_pass_there_is_nothing_to_tell() -> None:
    told = shown(last_pass().report())
    assert (told["passes"], told["planned"], told["health"]["why"]) == (0, None, ["no pass has ended yet"])


def test_the_document_is_of_the_last_pass_and_counts_them_all() -> None:
    last = last_pass(metrics=(metrics := Metrics()))
    last.observe("start", PassResult(failure=Transient("no answer")))
    last.observe("retry", PassResult(plan=full_plan()))
    document = shown(last.report())
    assert (document["passes"], document["result"]) == (2, "ok")
    assert json.loads(json.dumps(document)) == document
    assert metrics.registry.get_sample_value("headroom_reconcile_total", {"result": "transient"}) == 1


class Lines:
    """A log that keeps what it is told, as (level, event)."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str]] = []
        self.without: list[str] = []
        self.objects: list[str] = []

    def debug(self, event: str, **facts: Any) -> None:
        del event, facts

    def info(self, event: str, **facts: Any) -> None:
        self.told.append(("info", f"{event} {facts.get('code', '')}".strip()))
        self.without += [facts["without"]] if "without" in facts else []
        self.objects += [facts["object"]] if "object" in facts else []

    def warning(self, event: str, **facts: Any) -> None:
        self.told.append(("warning", f"{event} {facts.get('code', '')}".strip()))

    def error(self, event: str, **facts: Any) -> None:
        self.told.append(("error", f"{event} {facts}"))


def test_what_begins_and_ends_is_told_once() -> None:
    last = last_pass(log := Lines())
    stalled = SourceTree("main@sha1:0", stalled=("GitOperationFailed", "no answer"))
    for result in (
        PassResult(plan=full_plan()),
        PassResult(plan=full_plan()),
        PassResult(plan=Plan(None, NOW), tree=stalled, suspended=True),
        PassResult(plan=Plan(None, NOW), tree=SourceTree("main@sha1:0"), settled=True),
        PassResult(plan=Plan(None, NOW), tree=SourceTree("main@sha1:0"), settled=True),
    ):
        last.observe("tick", result)
    assert log.told == [
        ("warning", "finding missing-target"),
        ("warning", "nothing is deleted or released"),
        ("info", "finding is gone missing-target"),
        ("warning", "stalled: the last good commit stays in force"),
        ("info", "deletions and releases go on"),
        ("warning", "suspended: nothing is applied"),
        ("info", "the repository can be read again"),
        ("info", "no longer suspended"),
        ("info", "settled: the cluster is as declared"),
    ]


def test_settled_without_all_capacity_is_said_and_named() -> None:
    """It said that the cluster was as declared."""
    last = last_pass(log := Lines())
    short = [DemandOutcome(demand(name, count=5), 3, 0, 2) for name in ("a", "b", "c", "d")]
    outcomes = (DemandOutcome(demand("full", count=1), 1, 0, 0), *short)
    last.observe("tick", PassResult(plan=Plan(None, NOW, demands=outcomes), settled=True))
    (told,) = log.told
    assert told == ("info", "settled: nothing is left that can be changed now, but not all capacity is there")
    names = ", ".join(f"2 of 5 chunks of CapacityBuffer/shop/{name}" for name in ("a", "b", "c"))
    assert log.without == [f"{names} and 1 more"]


def test_objects_that_wait_to_be_deleted_are_told_once_and_are_not_as_declared() -> None:
    """The log said nothing, and then that the cluster was as declared."""
    last = last_pass(log := Lines())
    waiting = WaitingDeletions((buffer_ref("a"), buffer_ref("b")), most=2, held=11, next_at=NOW + timedelta(hours=1))
    for skew in range(3):
        later = replace(waiting, next_at=NOW + timedelta(hours=1, seconds=skew))
        last.observe("tick", PassResult(plan=Plan(None, NOW, waiting=later), settled=True))
    assert log.told == [
        (
            "info",
            "2 objects wait to be deleted (at most 2 of 11 objects go within an hour, the next by 2026-11-21 08:30 UTC)",
        ),
        ("info", "settled: nothing is left that can be changed now, but objects wait to be deleted"),
    ]


def test_a_write_that_keeps_failing_is_logged_once_and_again_when_it_no_longer_fails() -> None:
    """A conflict of field managers lasts until a person ends it. Every pass logged it."""
    last = last_pass(log := Lines())
    for outcomes in ((Outcome.CONFLICT,), (Outcome.CONFLICT,), (Outcome.REFUSED,), (Outcome.APPLIED,), ()):
        last.observe("change", PassResult(change_set=wrote(*outcomes)))
    assert log.told == [("warning", "write"), ("warning", "write"), ("info", "pass"), ("info", "write no longer fails")]


def test_writes_that_wait_for_the_same_are_logged_in_one_line() -> None:
    """Five NodeClaims of a new NodePool were five lines of the first seven that a newcomer saw."""
    last = last_pass(log := Lines())
    waits = [
        replace(each, message="waits until NodePool batch is applied") for each in wrote(*[Outcome.SKIPPED] * 5).results
    ]
    last.observe("start", PassResult(change_set=ChangeSet((*waits, replace(waits[0], message="waits for another")))))
    assert log.objects == [
        "NodeClaim/general-0",
        "NodeClaim/general-0, NodeClaim/general-1, NodeClaim/general-2 and 2 more",
    ]


def history(last: LastPass) -> list[tuple[str, str, int]]:
    document = shown(last.report())
    return [(row["trigger"], row["result"], row["applied"]) for row in document["history"]]


def test_what_a_pass_did_can_be_read_after_those_that_did_nothing() -> None:
    last = last_pass()
    last.observe("commit", PassResult(plan=full_plan(), change_set=wrote(Outcome.APPLIED, Outcome.APPLIED)))
    for _ in range(50):
        last.observe("tick", PassResult(plan=full_plan()))
    last.observe("tick", PassResult(failure=Transient("no answer")))
    last.observe("retry", PassResult(plan=full_plan()))
    assert history(last) == [("retry", "ok", 0), ("tick", "transient", 0), ("commit", "ok", 2)]
    document = shown(last.report())
    assert [row["object"] for row in document["history"][2]["writes"]] == ["NodeClaim/general-0", "NodeClaim/general-1"]


def test_a_pass_that_wrote_statuses_alone_is_not_told_with_a_plan_that_changes_nothing() -> None:
    clock = ManualClock()
    last = LastPass(cluster="embedded", clock=clock, metrics=Metrics(), log=logger())
    web = ObjectRef("autoscaling.x-k8s.io", "CapacityBuffer", "shop", "web")
    written = ChangeSet((WriteResult(ApplyStatus(web, {}), Outcome.APPLIED),))
    last.observe("commit", PassResult(plan=Plan(None, NOW), change_set=written))
    clock.advance(60)
    last.observe("tick", PassResult(plan=Plan(None, NOW)))
    text = daemon_status_text(shown(last.report()))
    assert "  before      2026-11-23 09:00 UTC, new commit: 1 status written\n" in text


def test_a_pass_of_which_writes_did_not_succeed_is_not_told_as_ok() -> None:
    """It was `ok (1 node to create)`, though the cluster had refused every write."""
    clock = ManualClock()
    last = LastPass(cluster="embedded", clock=clock, metrics=Metrics(), log=logger())
    for outcomes in ((Outcome.FAILED, Outcome.REFUSED), (Outcome.APPLIED, Outcome.CONFLICT), (Outcome.APPLIED,), ()):
        last.observe("commit", PassResult(plan=full_plan(), change_set=wrote(*outcomes)))
        clock.advance(60)
    document = shown(last.report())
    assert [(row["result"], row["applied"], row["failed"]) for row in document["history"]] == [
        ("ok", 1, 0),
        ("partial", 1, 1),
        ("partial", 0, 2),
    ]
    told = [line for line in daemon_status_text(document).splitlines() if line.startswith("  before ")]
    assert [line.split(" UTC, ")[1].split(" (")[0] for line in told] == [
        "new commit: 1 write applied",
        "new commit: 1 write applied, 1 write did not succeed",
        "new commit: 2 writes did not succeed",
    ]


def test_passes_in_a_row_that_came_to_the_same_are_one_row() -> None:
    """A conflict that stays pushed everything else out of the history."""
    clock = ManualClock()
    last = LastPass(cluster="embedded", clock=clock, metrics=Metrics(), log=logger())
    last.observe("commit", PassResult(plan=full_plan(), change_set=wrote(Outcome.APPLIED)))
    for _ in range(15):
        clock.advance(60)
        last.observe("change", PassResult(plan=full_plan(), change_set=wrote(Outcome.CONFLICT)))
    clock.advance(60)
    last.observe("commit", PassResult(plan=full_plan(), change_set=wrote(Outcome.APPLIED)))
    assert history(last) == [("commit", "ok", 1), ("change", "partial", 0), ("commit", "ok", 1)]
    text = daemon_status_text(shown(last.report()))
    assert "cluster changed: 1 write did not succeed, 15 times since 2026-11-23 09:01 UTC (" in text


def test_the_history_is_bounded() -> None:
    last = last_pass()
    for number in range(100):
        last.observe(f"t{number}", PassResult(plan=full_plan(), change_set=wrote(*[Outcome.APPLIED] * 50)))
    document = shown(last.report())
    assert [row["trigger"] for row in document["history"]] == [f"t{number}" for number in range(99, 79, -1)]
    assert {len(row["writes"]) for row in document["history"]} == {20}


def test_its_document_and_that_of_a_replica_that_waits_are_what_the_schema_says() -> None:
    schema = output_schema("status.v1")
    validator = jsonschema_rs.validator_for(schema, validate_formats=True)
    last = last_pass()
    standby = shown(last.report(), Live(leads=False, leader="headroom-7f_1"))
    validator.validate(standby)
    assert (standby["message"], standby["health"]["why"]) == ("another replica leads: headroom-7f_1", [])
    last.observe("commit", PassResult(plan=full_plan(), change_set=wrote(Outcome.APPLIED)))
    validator.validate(shown(last.report(), Live(leads=True)))


# Which passes the daemon prints for a person at a console.


def test_a_conflict_that_lasts_is_shown_once() -> None:
    """A conflict of field managers printed the whole plan at every pass."""
    shown = ShownPasses()
    conflict = PassResult(plan=full_plan(), change_set=wrote(Outcome.CONFLICT))
    assert [shown.is_news(conflict) for _ in range(3)] == [True, False, False]


def test_another_cause_is_shown_and_so_is_the_same_one_after_it_was_gone() -> None:
    shown = ShownPasses()
    conflict, refused = (
        PassResult(plan=full_plan(), change_set=wrote(outcome)) for outcome in (Outcome.CONFLICT, Outcome.REFUSED)
    )
    nothing = PassResult(plan=Plan(None, NOW), change_set=wrote())
    passes = (conflict, refused, nothing, conflict)
    assert [shown.is_news(one) for one in passes] == [True, True, False, True]


def test_a_pass_that_writes_something_is_shown_whatever_else_fails() -> None:
    shown = ShownPasses()
    partial = PassResult(plan=full_plan(), change_set=wrote(Outcome.APPLIED, Outcome.CONFLICT))
    assert [shown.is_news(partial) for _ in range(2)] == [True, True]


def test_a_plan_that_is_not_applied_is_shown() -> None:
    shown = ShownPasses()
    assert [shown.is_news(PassResult(plan=full_plan())) for _ in range(2)] == [True, True]

"""Objects that are no longer declared and wait: the cluster is not as declared."""

from __future__ import annotations

import json
from datetime import UTC, timedelta
from importlib.resources import files

import jsonschema_rs

from reconciler.model.changes import Action, ObjectChange, Plan
from reconciler.model.departures import WaitingDeletions
from reconciler.report.plan.document import plan_document
from reconciler.report.plan.words import summary
from reconciler.report.status.document import PassReport, daemon_status_document
from tests.builders import buffer_ref
from tests.plans import NOW

WAITING = WaitingDeletions(
    (buffer_ref("checkout"),), most=5, held=11, most_nodes=2, nodes_held=7, next_at=NOW + timedelta(hours=1)
)
NODES = {"mostNodesInAnHour": 2, "outOfNodes": 7}
BLOCKED = WaitingDeletions((buffer_ref("checkout"), buffer_ref("web")))


def test_a_plan_that_waits_does_not_say_that_the_cluster_is_as_declared() -> None:
    words = "1 object waits to be deleted (at most 5 of 11 objects and 2 of 7 held nodes go within an hour, the next by 2026-11-21 08:30 UTC)"
    assert summary(Plan(None, NOW, waiting=WAITING), UTC) == f"No change now: {words}"
    change = ObjectChange(buffer_ref(), Action.CREATE)
    assert summary(Plan(None, NOW, objects=(change,), waiting=WAITING), UTC) == f"1 object to apply; {words}"


def test_while_nothing_may_be_deleted_no_time_is_told() -> None:
    told = summary(Plan(None, NOW, blocked=("the branch was force-pushed",), waiting=BLOCKED))
    assert told == "No change now: 2 objects wait to be deleted (nothing may be deleted at present)"


def test_the_json_of_plan_and_status_tell_what_waits() -> None:
    name = {"kind": "CapacityBuffer", "namespace": "shop", "name": "checkout"}
    for waiting, cap in (
        (WAITING, {"mostInAnHour": 5, "outOf": 11, **NODES, "next": "2026-11-21T08:30:00Z"}),
        (BLOCKED, {"mostInAnHour": None, "outOf": None, **dict.fromkeys(NODES), "next": None}),
    ):
        plan = Plan(None, NOW, waiting=waiting)
        planned = plan_document(plan)
        status = daemon_status_document(PassReport("production", NOW, NOW, passes=3, plan=plan))
        for schema, document in (("plan", planned), ("status", status)):
            validated(schema, document)
            row = document["waitingDeletions"]
            assert row == {**cap, "objects": [name, {**name, "name": "web"}][: len(waiting.refs)]}


def validated(schema: str, document: object) -> None:
    text = (files("reconciler.report") / "schemas" / f"{schema}.v1.json").read_text()
    jsonschema_rs.validator_for(json.loads(text), validate_formats=True).validate(document)

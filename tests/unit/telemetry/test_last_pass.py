"""What /status serves after a pass."""

from __future__ import annotations

import json
from typing import Any

from reconciler.model.changes import Plan
from reconciler.model.errors import Transient
from reconciler.model.source import SourceTree
from reconciler.telemetry.last_pass import LastPass
from reconciler.telemetry.logs import logger
from reconciler.telemetry.metrics import Metrics
from tests.fakes.clock import ManualClock
from tests.fakes.passes import FakePass
from tests.plans import NOW, full_plan


def last_pass(metrics: Metrics | None = None) -> LastPass:
    return LastPass(cluster="embedded", clock=ManualClock(), metrics=metrics or Metrics(), log=logger())


def test_there_is_no_document_before_the_first_pass() -> None:
    assert last_pass().document() is None


def test_the_document_is_of_the_last_pass_and_counts_them_all() -> None:
    last, metrics = last_pass(shared := Metrics()), shared
    last.observe("start", FakePass(failure=Transient("no answer")))
    last.observe("retry", FakePass(plan=full_plan()))
    document = last.document()
    assert document is not None
    assert (document["passes"], document["result"]) == (2, "ok")
    assert json.loads(json.dumps(document)) == document
    assert metrics.registry.get_sample_value("headroom_reconcile_total", {"result": "transient"}) == 1


def test_no_credential_is_served() -> None:
    last = last_pass()
    last.observe("start", FakePass(failure=Transient("https://bot:s3cret@git.example/r.git does not answer")))
    assert "s3cret" not in json.dumps(last.document())


class Lines:
    """A log that keeps what it is told, as (level, event)."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str]] = []

    def debug(self, event: str, **facts: Any) -> None:
        del event, facts

    def info(self, event: str, **facts: Any) -> None:
        self.told.append(("info", f"{event} {facts.get('code', '')}".strip()))

    def warning(self, event: str, **facts: Any) -> None:
        self.told.append(("warning", f"{event} {facts.get('code', '')}".strip()))

    def error(self, event: str, **facts: Any) -> None:
        self.told.append(("error", f"{event} {facts}"))


def test_what_begins_and_ends_is_told_once() -> None:
    log = Lines()
    last = LastPass(cluster="embedded", clock=ManualClock(), metrics=Metrics(), log=log)
    stalled = SourceTree("main@sha1:0", stalled=("GitOperationFailed", "no answer"))
    for result in (
        FakePass(plan=full_plan()),
        FakePass(plan=full_plan()),
        FakePass(plan=Plan(None, NOW), tree=stalled),
        FakePass(plan=Plan(None, NOW), tree=SourceTree("main@sha1:0"), settled=True),
        FakePass(plan=Plan(None, NOW), tree=SourceTree("main@sha1:0"), settled=True),
    ):
        last.observe("tick", result)
    assert log.told == [
        ("warning", "finding missing-target"),
        ("info", "finding is gone missing-target"),
        ("warning", "stalled: the last good commit stays in force"),
        ("info", "the repository can be read again"),
        ("info", "settled: the cluster is as declared"),
    ]

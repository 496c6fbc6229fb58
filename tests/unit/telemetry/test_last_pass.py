"""What /status serves after a pass."""

from __future__ import annotations

import json

from reconciler.model.errors import Transient
from reconciler.telemetry.last_pass import LastPass
from reconciler.telemetry.logs import logger
from reconciler.telemetry.metrics import Metrics
from tests.fakes.clock import ManualClock
from tests.fakes.passes import FakePass
from tests.plans import full_plan


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

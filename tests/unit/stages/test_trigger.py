"""Why a pass was made is told with it: in its log line, and in every event about what it did."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.catalog.observed import ClusterCatalog
from reconciler.daemon.daemon import Daemon, Listeners
from reconciler.settings.settings import Settings
from reconciler.telemetry.last_pass import LastPass
from reconciler.telemetry.metrics import Metrics
from reconciler.wiring.cycle import make_cycle
from tests.fakes.embedded import Sandbox, buffer, node_pool, workload
from tests.fakes.source import FakeSource


class Lines:
    """A log that keeps what it is told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, dict[str, Any]]] = []

    def info(self, event: str, **facts: Any) -> None:
        self.told.append((event, facts))

    debug = warning = error = info


@pytest.mark.parametrize("trigger", ["commit", "edge"])
def test_the_events_of_a_pass_end_with_its_trigger(trigger: str) -> None:
    sandbox = Sandbox()
    for document in (node_pool(), workload(replicas=0), buffer()):
        sandbox.cluster.apply(document)
    cycle = make_cycle(
        Settings(),
        source=FakeSource(),
        cluster=sandbox.cluster,
        catalog=ClusterCatalog("embedded"),
        clock=sandbox.clock,
    )

    assert cycle.run(trigger).failure is None

    own = [item.event for item in sandbox.cluster.events if item.event.reason in {"PlaceholderCreated", "Applied"}]
    assert {event.reason for event in own} == {"PlaceholderCreated", "Applied"}
    assert all(event.message.endswith(f" (trigger: {trigger})") for event in own)


def test_the_daemons_first_pass_says_in_log_and_events_that_it_is_the_first() -> None:
    sandbox, log = Sandbox(), Lines()
    for document in (node_pool(), workload(replicas=0), buffer()):
        sandbox.cluster.apply(document)
    cycle = make_cycle(
        Settings(),
        source=FakeSource(),
        cluster=sandbox.cluster,
        catalog=ClusterCatalog("embedded"),
        clock=sandbox.clock,
    )
    last = LastPass(cluster="embedded", clock=sandbox.clock, metrics=Metrics(), log=log)
    daemon = Daemon(
        run_pass=lambda trigger: cycle.run(trigger.value),
        poll_source=lambda: False,
        clock=sandbox.clock,
        listeners=Listeners(lambda trigger, result: last.observe(trigger.value, result)),
    )

    assert daemon.run(max_passes=1) == 0

    assert [facts["trigger"] for event, facts in log.told if event == "pass"] == ["start"]
    assert any("(trigger: start)" in item.event.message for item in sandbox.cluster.events)

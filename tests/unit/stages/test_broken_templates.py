"""What broken templates hold up, and why a pass was made."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from reconciler.daemon.daemon import Daemon, Listeners
from reconciler.model.changes import Apply, Outcome
from reconciler.ports import PassResult
from reconciler.render.templates import RenderProcess
from reconciler.report.explanation import explanation, explanation_text
from reconciler.report.plan.words import summary
from reconciler.settings.load import load_settings
from reconciler.telemetry.last_pass import LastPass
from reconciler.telemetry.metrics import Metrics
from reconciler.timetable.agenda import Trigger
from reconciler.wiring.session import Session, open_session
from tests.fakes.embedded import Sandbox, buffer, node_pool, workload

# Passes over a repository with a template that hangs: its documents are refused, and everything else goes on.

EXAMPLES = Path(__file__).resolve().parents[3] / "examples-repo"
NOW = datetime(2026, 11, 21, 7, 30, tzinfo=UTC)


@pytest.fixture(autouse=True)
def own_render_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of one test, and a template has less time in it, so that nobody waits long for one that hangs."""
    monkeypatch.setattr("reconciler.render.templates.RenderProcess", RenderProcess)
    monkeypatch.setattr("reconciler.render.templates.SECONDS", 0.3)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    shutil.copytree(EXAMPLES, tmp_path / "repository")
    (tmp_path / "repository" / "templates").mkdir()
    return tmp_path / "repository"


@pytest.fixture
def session(repository: Path) -> Iterator[Session]:
    flags = {
        "repository": str(repository),
        "path": "clusters/production",
        "cluster": f"embedded:{repository / 'snapshots' / 'production'}",
    }
    with open_session(
        load_settings(None, environment={}, flags=flags), now=NOW, progress=lambda _stage: None
    ) as opened:
        yield opened


def test_only_what_the_template_would_make_is_held_up(repository: Path, session: Session) -> None:
    (repository / "templates" / "nodeclaim.yaml.j2").write_text("\n{% if 3 ** (10 ** 9) %}{% endif %}")
    for _ in range(2):  # Karpenter must have taken up the NodePools before NodeClaims are made
        result = session.cycle.run("test")
        assert result.failure is None
        found = [finding for finding in result.required_plan.findings if finding.code == "template-failed"]
        assert [str(finding.position) for finding in found] == ["templates/nodeclaim.yaml.j2:1:1"]
    assert result.change_set is not None
    claims = [
        item
        for item in result.change_set.results
        if isinstance(item.write, Apply) and item.write.ref.kind == "NodeClaim"
    ]
    assert {item.outcome for item in claims} == {Outcome.REFUSED}
    applied = {ref.kind for ref in session.cluster.view().objects}
    assert {"NodePool", "CapacityBuffer"} <= applied


def test_what_no_template_can_be_rendered_for_is_not_planned(repository: Path, session: Session) -> None:
    session.cycle.run("test")  # Karpenter has taken up the NodePools
    before = session.cycle.plan().required_plan
    (repository / "templates" / "nodeclaim.yaml.j2").write_text("\n{{ nothing }}")
    plan = session.cycle.plan().required_plan
    assert before.node_claims.create
    assert (plan.node_claims.create, plan.cost.per_hour_after) == ((), plan.cost.per_hour_before)
    assert "create" not in summary(plan)
    short = explanation_text(explanation(plan, "CapacityBuffer/shop/web"))
    assert "template failed (" in short
    assert "nodeclaim.yaml.j2 (from the repository), line 2: 'nothing' is undefined" in short
    done = session.cycle.run("test")
    assert done.change_set is not None
    assert {item.outcome for item in done.change_set.failures} == {Outcome.REFUSED}
    assert not done.settled


def test_nodes_of_a_node_pool_that_cannot_be_rendered_wait_for_it(repository: Path, session: Session) -> None:
    template = repository / "templates" / "nodepool.yaml.j2"
    template.write_text("{{ nothing }}")
    plan = session.cycle.plan().required_plan
    assert (plan.node_claims.create, [ref for ref in plan.objects if ref.ref.kind == "NodePool"]) == ((), [])
    assert any(outcome.unplaced for outcome in plan.demands)


def test_once_the_template_is_mended_nodes_are_made(repository: Path, session: Session) -> None:
    template = repository / "templates" / "nodeclaim.yaml.j2"
    template.write_text("{{ nothing }}")
    session.cycle.run("test")
    template.write_text((EXAMPLES.parent / "templates" / "nodeclaim.yaml.j2").read_text())
    result = session.cycle.run("test")
    assert "template-failed" not in {finding.code for finding in result.required_plan.findings}


# Why a pass was made is told with it: in its log line, and in every event about what it did.


class Lines:
    """A log that keeps what it is told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, dict[str, Any]]] = []

    def info(self, event: str, **facts: Any) -> None:
        self.told.append((event, facts))

    debug = warning = error = info


def test_the_daemons_first_pass_says_in_log_and_events_that_it_is_the_first() -> None:
    sandbox, log = Sandbox(), Lines()
    for document in (node_pool(), workload(replicas=0), buffer()):
        sandbox.cluster.apply(document)
    cycle = sandbox.new_cycle()
    last = LastPass(cluster="embedded", clock=sandbox.clock, metrics=Metrics(), log=log)

    def heard(trigger: Trigger, result: PassResult) -> None:
        last.observe(trigger.value, result)
        daemon.stop()

    daemon = Daemon(
        run_pass=lambda trigger: cycle.run(trigger.value),
        poll_source=lambda: False,
        clock=sandbox.clock,
        listeners=Listeners(heard),
    )

    assert daemon.run() == 0

    assert [facts["trigger"] for event, facts in log.told if event == "pass"] == ["start"]
    assert any("(trigger: start)" in item.event.message for item in sandbox.cluster.events)

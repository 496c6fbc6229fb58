"""The placement checker at run time: what it rejects is an error finding, and nothing of it is applied."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from reconciler.model.errors import Stalled
from reconciler.model.findings import Severity
from reconciler.model.placement import Placement
from reconciler.optimizer.place_in_mode import place_in_mode
from reconciler.render.templates import TemplateSource
from reconciler.report.explanation import explanation, explanation_text
from reconciler.settings.load import load_settings
from reconciler.settings.settings import Settings
from reconciler.stages import placement as stage
from reconciler.stages.state import PassState
from reconciler.stages.writes import Render
from reconciler.wiring.session import Session, open_session

EXAMPLES = Path(__file__).resolve().parents[3] / "examples-repo"
NOW = datetime(2026, 11, 21, 7, 30, tzinfo=UTC)


def settings(*, check: bool) -> Settings:
    return load_settings(
        None,
        environment={},
        flags={
            "repository": str(EXAMPLES),
            "path": "clusters/production",
            "cluster": f"embedded:{EXAMPLES / 'snapshots' / 'production'}",
            "placement.check": check,
        },
    )


@pytest.fixture
def checked() -> Iterator[Session]:
    with open_session(settings(check=True), now=NOW, progress=lambda _stage: None) as session:
        yield session


def spoiled(*arguments: Any, **options: Any) -> Placement:
    """The real placement, but with a hundred times as many chunks on its first new node."""
    placement = place_in_mode(*arguments, **options)
    first, *others = placement.planned
    crowd = tuple(replace(holding, count=holding.count * 100) for holding in first.holdings)
    return replace(placement, planned=(replace(first, holdings=crowd), *others))


def test_a_placement_that_holds_passes_unnoticed(checked: Session) -> None:
    plan = checked.cycle.plan().required_plan
    assert plan.node_claims.create
    assert "placement-rejected" not in {finding.code for finding in plan.findings}


def test_what_placement_had_checked_already_is_not_checked_again(
    checked: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    def asked(*_arguments: Any, **_options: Any) -> tuple[str, ...]:
        return ("node-1: broken",)

    monkeypatch.setattr(stage, "violations", asked)
    monkeypatch.setattr(
        stage, "place_in_mode", lambda *given, **named: replace(place_in_mode(*given, **named), checked=True)
    )

    assert "placement-rejected" not in {finding.code for finding in checked.cycle.plan().required_plan.findings}


def test_a_placement_that_breaks_a_rule_is_an_error_and_is_not_applied(
    checked: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stage, "place_in_mode", spoiled)
    plan = checked.cycle.plan().required_plan
    found = [finding for finding in plan.findings if finding.code == "placement-rejected"]
    assert {finding.severity for finding in found} == {Severity.ERROR}
    assert any("cpu is overcommitted" in finding.message for finding in found)
    before = checked.cluster.view()
    result = checked.cycle.run("test")
    assert isinstance(result.failure, Stalled)
    assert result.failure.reason == "PlacementRejected"
    assert result.change_set is None
    assert checked.cluster.view() == before


def test_one_broken_rule_is_one_rule() -> None:
    state = PassState(NOW, broken_rules=("node-4: cpu is overcommitted",))
    with pytest.raises(Stalled) as caught:
        Render(TemplateSource({})).run(state)
    words = "the placement breaks 1 rule, the first: node-4: cpu is overcommitted; nothing is applied"
    assert caught.value.message == words


def test_an_explanation_says_that_the_placement_was_rejected(checked: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage, "place_in_mode", spoiled)
    found = explanation(checked.cycle.plan().required_plan, "CapacityBuffer/shop/web")
    assert "placement-rejected" in {finding.code for finding in found.findings}
    assert "cpu is overcommitted" in explanation_text(found)


def test_without_the_flag_nothing_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage, "place_in_mode", spoiled)
    with open_session(settings(check=False), now=NOW, progress=lambda _stage: None) as session:
        assert "placement-rejected" not in {finding.code for finding in session.cycle.plan().required_plan.findings}

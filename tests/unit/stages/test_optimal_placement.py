"""The optimal mode in a whole pass: the plan says under its cost what came of it, and within which time."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from reconciler.model.errors import Invalid
from reconciler.settings.load import load_settings
from reconciler.wiring.session import open_session

EXAMPLES = Path(__file__).resolve().parents[3] / "examples-repo"
NOW = datetime(2026, 11, 21, 7, 30, tzinfo=UTC)


def sentences(mode: str, within: str) -> str:
    settings = load_settings(
        None,
        environment={},
        flags={
            "repository": str(EXAMPLES),
            "path": "clusters/production",
            "cluster": f"embedded:{EXAMPLES / 'snapshots' / 'production'}",
            "placement.mode": mode,
            "placement.optimal_within": within,
        },
    )
    with open_session(settings, now=NOW, progress=lambda _stage: None) as session:
        return "\n".join(session.cycle.plan().required_plan.cost.assumptions)


def test_the_plan_says_how_far_its_price_is_from_the_least_possible() -> None:
    assert "the least possible" in sentences("optimal", "1m")


def test_the_fast_mode_says_nothing_of_it() -> None:
    assert "placement.mode" not in sentences("fast", "1m")


def test_when_the_time_is_over_the_fast_placement_stands() -> None:
    assert "the time for it was over: the fast placement stands" in sentences("optimal", "1ms")


def test_no_other_mode_is_known() -> None:
    with pytest.raises(Invalid, match="fast"):
        sentences("best", "1m")

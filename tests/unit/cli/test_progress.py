"""What commands say on stderr of a stage that takes long."""

from __future__ import annotations

import pytest

from reconciler.cli import options
from reconciler.cli.options import COMPILING, STAGES, Progress
from reconciler.placement.loops import kernel
from tests.controlplane.waiting import eventually


def test_compiling_is_named_only_while_a_stage_compiles(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel, "not_cached", ["one before"])
    monkeypatch.setattr(options, "PATIENCE", 0.0)
    told = ""

    def tells(words: str) -> bool:
        nonlocal told
        told += capsys.readouterr().err
        return words in told

    with Progress() as progress:
        progress("placement")
        eventually(lambda: tells(STAGES["placement"]), within=20, what="placing is named")
        assert COMPILING not in told
        kernel.not_cached.append("choose")
        eventually(lambda: tells(COMPILING), within=20, what="compiling is named")
        progress("")

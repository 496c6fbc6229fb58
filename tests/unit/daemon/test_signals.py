"""A signal that comes before the daemon runs ends it as one that comes later does."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

PATIENCE = 60.0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize(("flags", "code"), [((), 0), (("--until-settled",), 1)], ids=["daemon", "bounded"])
def test_it_ends_in_order_while_its_settings_are_still_read(
    tmp_path: Path, number: signal.Signals, flags: tuple[str, ...], code: int
) -> None:
    settings = tmp_path / "headroom.yaml"
    os.mkfifo(settings)
    command = [sys.executable, "-m", "reconciler", "run", "--config", str(settings), "--cluster", "embedded", *flags]
    # Opening the file waits for its reader, which is the process in the middle of its start.
    with (
        subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=tmp_path) as process,
        settings.open("w"),
    ):
        process.send_signal(number)
        _, said = process.communicate(timeout=PATIENCE)
    assert (process.returncode, said) == (code, "")

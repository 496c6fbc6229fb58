"""A signal that comes before the daemon runs ends it as one that comes later does."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

PATIENCE = 60.0
MOST_OF_A_PIPE = 2**16
"""Bytes that a pipe takes without a reader."""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize(("flags", "code"), [((), 0), (("--until-settled",), 1)], ids=["daemon", "bounded"])
def test_it_ends_in_order_while_its_settings_are_still_read(
    tmp_path: Path, number: signal.Signals, flags: tuple[str, ...], code: int
) -> None:
    command = [sys.executable, "-m", "reconciler", "run", "--config", "/dev/stdin", "--cluster", "embedded", *flags]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path, bufsize=0) as process:
        assert process.stdin is not None
        # More than a pipe holds: it is written when its reader, the process in the middle of its start, has begun.
        process.stdin.write(b"#" * (MOST_OF_A_PIPE + 1))
        process.send_signal(number)
        _, said = process.communicate(timeout=PATIENCE)
    assert (process.returncode, said) == (code, b"")

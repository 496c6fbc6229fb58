"""Programs that some tests run and that Python packages do not bring: a browser, node, kubectl. In CI an absent one is a failure."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

import pytest


def program(*names: str, install: str) -> str:
    """The path of the first that is on PATH. install: what to tell who has none of them."""
    found = next(filter(None, map(shutil.which, names)), None)
    if found is None:
        fail_or_skip(f"none of {', '.join(names)} is on PATH: install {install}")
    return found


def ended(
    *command: str, folder: Path | None = None, env: Mapping[str, str] | None = None, within: float | None = None
) -> subprocess.CompletedProcess[str]:
    """A process at its end, with its exit code and both outputs as text. within: seconds."""
    return subprocess.run(command, cwd=folder, env=env, timeout=within, capture_output=True, text=True, check=False)


def kustomized(folder: Path, *flags: str) -> str:
    """What `kubectl kustomize` renders."""
    command = [program("kubectl", install="kubectl"), "kustomize", *flags, str(folder)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def fail_or_skip(missing: str) -> NoReturn:
    """Ends a test that needs what is absent: a failure in CI, so that nothing goes untested there."""
    if os.environ.get("CI", "").lower() in {"true", "1"}:
        pytest.fail(missing, pytrace=False)
    pytest.skip(missing)

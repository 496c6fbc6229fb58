"""`kubectl headroom`: kubectl finds the plugin, which is the same command under another name. Needs kubectl."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.programs import program

PLUGIN = """\
#!{python} -I
import sys
sys.path.insert(0, {root!r})
from reconciler.__main__ import main
main()
"""
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """With the plugin on PATH, as the wheel's entry point would be."""
    plugin = tmp_path / "kubectl-headroom"
    plugin.write_text(PLUGIN.format(python=sys.executable, root=str(ROOT)))
    plugin.chmod(0o700)
    return {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "KUBECONFIG": str(tmp_path / "none")}


def kubectl(environment: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    command = [program("kubectl", install="kubectl"), *words]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_kubectl_lists_it_and_usage_says_what_was_typed(environment: dict[str, str]) -> None:
    assert "/kubectl-headroom" in kubectl(environment, "plugin", "list").stdout
    shown = kubectl(environment, "headroom", "status", "--help")
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.startswith("Usage: kubectl headroom status [OPTIONS]\n")

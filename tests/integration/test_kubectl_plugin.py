"""`kubectl headroom`: kubectl finds the plugin, which is the same command under another name. Needs kubectl."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from reconciler.model.changes import Plan
from reconciler.ports import PassResult
from tests.page_worlds import COMMIT, empty
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


# `headroom status --watch` against the pages of a daemon: it is shown again when something is new, and only then.


def test_each_line_is_a_new_status_until_it_is_stopped() -> None:
    made = empty()
    with made.served() as address:
        command = [sys.executable, "-m", "reconciler", "status", "--address", address.removeprefix("http://")]
        watching = subprocess.Popen(
            [*command, "--watch", "--output", "json"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=ROOT,
            text=True,
        )
        assert watching.stdout is not None
        assert json.loads(watching.stdout.readline())["passes"] == 1
        made.clock.advance(1)
        made.last.observe("commit", PassResult(plan=Plan(COMMIT, made.clock.now())))
        again = json.loads(watching.stdout.readline())
        assert (again["passes"], again["trigger"]) == (2, "commit")
    assert watching.stderr is not None
    assert watching.stderr.readline().endswith("; what stands above may be out of date\n"), "the daemon has gone"
    watching.terminate()
    assert watching.communicate(timeout=60)[0] == "", "nothing was shown twice"

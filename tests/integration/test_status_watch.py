"""`headroom status --watch` against the pages of a daemon: it is shown again when something is new, and only then."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from reconciler.model.changes import Plan
from reconciler.ports import PassResult
from tests.page_worlds import COMMIT, empty

ROOT = Path(__file__).resolve().parents[2]


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

"""The example repository gives the plan that lies beside it, and `headroom diff` says what a change to it would do.

Renew the plan with HEADROOM_GOLDEN=write, and read the difference.
"""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests import headroom_command
from tests.git_repository import GitRepository
from tests.goldens import check

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples-repo"
NOW = "--now=2026-11-21T08:00:00Z"
SNAPSHOT = "--cluster=snapshot:snapshots/production"
PATH = "--path=clusters/production"


BERLIN = {**os.environ, "TZ": "Europe/Berlin"}


def headroom(*words: str, folder: Path = EXAMPLES) -> subprocess.CompletedProcess[str]:
    return headroom_command.headroom(*words, folder=folder, environment=BERLIN)


@pytest.mark.parametrize("cluster", ["production", "staging"])
@pytest.mark.parametrize(("output", "ending"), [("json", "json"), ("text", "txt")])
def test_the_plan_is_the_one_beside_it(cluster: str, output: str, ending: str) -> None:
    """Byte by byte, and each run of the tests is of a process that hashes differently."""
    where = (f"--path=clusters/{cluster}", f"--cluster=snapshot:snapshots/{cluster}")
    done = headroom("plan", *where, NOW, "--output", output)
    assert done.returncode == 1, done.stderr
    check(EXAMPLES / "expected" / f"{cluster}.{ending}", done.stdout)


def test_explain_says_where_the_chunks_are() -> None:
    done = headroom("explain", "CapacityBuffer/shop/web", PATH, SNAPSHOT, NOW)
    assert done.returncode == 0, done.stderr
    assert "20% of" in done.stdout
    assert "new node in NodePool general" in done.stdout


def test_explain_names_the_flag_that_pods_need() -> None:
    done = headroom("explain", "Pod/shop/web-1", PATH, SNAPSHOT, NOW)
    assert done.returncode == 1
    assert "pending pods are explained with --include-pending" in done.stderr


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A Git repository of the examples with a branch that asks for more."""
    made = GitRepository(tmp_path)
    shutil.copytree(EXAMPLES, made.work, dirs_exist_ok=True)
    made.commit()
    made.git("checkout", "--quiet", "-b", "more")
    buffer = "clusters/production/buffers/shop.yaml"
    made.commit({buffer: (EXAMPLES / buffer).read_text().replace("percentage: 20", "percentage: 80")})
    made.git("checkout", "--quiet", "main")
    return made.work


@pytest.mark.parametrize("output", ["json", "markdown"])
def test_diff_tells_what_merging_would_change(repository: Path, output: str) -> None:
    done = headroom("diff", "main..more", PATH, SNAPSHOT, NOW, "--output", output, folder=repository)
    assert done.returncode == 1, done.stderr
    assert "main@" in done.stdout
    if output == "json":
        changes = json.loads(done.stdout)["changes"]
        assert [(row["name"], row["before"], row["after"]) for row in changes["demands"]] == [("web", 2, 8)]
        assert changes["cost"]["perMonthDelta"] > 0
    else:
        assert "2 → 8" in done.stdout
        assert len(done.stdout.encode()) < 60_000


def test_diff_looks_at_both_revisions_at_one_instant(repository: Path) -> None:
    """What the clock does between the two plans is no difference: only the lane that grows is among those that change."""
    document = json.loads(headroom("diff", "main..more", PATH, SNAPSHOT, "--output=json", folder=repository).stdout)
    assert document["base"]["now"] == document["head"]["now"]
    page = headroom("diff", "main..more", PATH, SNAPSHOT, "--output=markdown", folder=repository).stdout
    assert "before and after: 1 differs<" in page


def test_diff_against_the_working_tree(repository: Path) -> None:
    (repository / "clusters" / "production" / "buffers" / "ci.yaml").unlink()
    done = headroom("diff", "main..", PATH, SNAPSHOT, NOW, folder=repository)
    assert done.returncode == 1, done.stderr
    assert "CapacityBuffer/ci/ci-runners: 3 → absent" in done.stdout

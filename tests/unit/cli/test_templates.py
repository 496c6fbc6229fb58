"""Templates of a repository on the command line: found broken by `validate` and `plan`, wherever `path` points."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.headroom_command import headroom_at

ROOT = Path(__file__).resolve().parents[3]
CLAIM = (ROOT / "templates" / "nodeclaim.yaml.j2").read_text()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    shutil.copytree(ROOT / "examples-repo", tmp_path / "repository")
    (tmp_path / "repository" / "templates").mkdir()
    return tmp_path / "repository"


def plan(folder: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    cluster = f"embedded:{folder / 'snapshots' / 'production'}"
    return headroom_at(
        folder, "plan", "--path", "clusters/production", "--cluster", cluster, "--now", "2026-11-21T07:30:00Z", *flags
    )


def test_validate_names_the_line_of_a_broken_template(repository: Path) -> None:
    (repository / "templates" / "nodeclaim.yaml.j2").write_text(CLAIM.replace("labels | json", "lables | json"))
    done = headroom_at(repository, "validate", "--output", "json")
    (finding,) = (item for item in json.loads(done.stdout)["findings"] if item["code"] == "template-failed")
    assert (finding["file"], finding["line"]) == ("templates/nodeclaim.yaml.j2", 6)
    assert "'lables' is undefined" in finding["message"]
    assert done.returncode == 1


def test_plan_names_the_line_of_a_template_that_is_broken_for_one_real_node(repository: Path) -> None:
    """No made-up object holds chunks of this buffer."""
    broken = "{% if holds[0].demand.startswith('CapacityBuffer') and pool.name == 'general' and requests.cpu %}\n"
    text = CLAIM + broken + "{{ [][holds | length] }}\n{% endif %}\n"
    (repository / "templates" / "nodeclaim.yaml.j2").write_text(text)
    done = plan(repository, "--output", "json")
    found = [item for item in json.loads(done.stdout)["findings"] if item["code"] == "template-failed"]
    assert [(item["file"], item["line"]) for item in found] == [
        ("templates/nodeclaim.yaml.j2", len(CLAIM.splitlines()) + 2)
    ]


def test_a_template_at_the_root_counts_though_a_path_is_set(repository: Path) -> None:
    (repository / "templates" / "nodeclaim.yaml.j2").write_text("{{ 1 / 0 }}")
    assert "template nodeclaim.yaml.j2 (from the repository), line 1: ZeroDivisionError" in plan(repository).stdout


def test_validate_reads_below_path_what_the_daemon_reads(repository: Path) -> None:
    """The templates at the root, and not what the root's `.sourceignore` leaves out."""
    (repository / "templates" / "nodeclaim.yaml.j2").write_text("{{ 1 / 0 }}")
    (repository / "clusters" / "production" / "draft.yaml").write_text("a: [")
    (repository / ".sourceignore").write_text("draft.yaml\n")
    done = headroom_at(repository, "validate", "--path", "clusters/production")
    assert "  templates/nodeclaim.yaml.j2:1:1: error: template nodeclaim.yaml.j2 (from the repository)" in done.stdout
    assert "draft.yaml" not in done.stdout
    assert (done.returncode, " 1 error, " in done.stdout) == (1, True)

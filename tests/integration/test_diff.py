"""`headroom diff` on a Git repository and a snapshot: numbers that a reviewer decides by are those of the merge."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.git_repository import Files, GitRepository
from tests.headroom_command import headroom
from tests.manifests import applied, buffer, snapshot_in
from tests.unit.cli.two_folders import CATALOGUE, POOL, SHAPE, office

SUNDAY = "2026-11-22T12:00:00Z"


START = {"pool.yaml": POOL, "shape.yaml": SHAPE, "web.yaml": buffer("web", "replicas: 10")}


class Repository(GitRepository):
    """With a snapshot of an empty cluster beside it, in which one type of node has 8 cores and costs $0.40 an hour."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.snapshot = folder / "snapshot"
        snapshot_in(self.snapshot, {}, CATALOGUE)

    def branch(self, name: str, files: Files) -> None:
        """A branch of main with these files written, or removed for None. Main is checked out afterwards."""
        self.git("checkout", "--quiet", "-B", name, "main")
        self.commit(files)
        self.git("checkout", "--quiet", "main")

    def diff(self, *words: str, now: str = SUNDAY) -> subprocess.CompletedProcess[str]:
        where = (f"--cluster=snapshot:{self.snapshot}", f"--now={now}")
        return headroom("diff", *words, *where, folder=self.work, environment={**os.environ, "TZ": "Europe/Berlin"})

    def changes(self, *words: str) -> dict[str, Any]:
        done = self.diff(*words, "--output=json")
        assert done.returncode in {0, 1}, done.stderr
        found: dict[str, Any] = json.loads(done.stdout)["changes"]
        return found


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    repository = Repository(tmp_path)
    repository.commit(START)
    return repository


def test_caps_of_a_pass_do_not_cut_the_price(repository: Repository) -> None:
    """A report once counted 100 nodes, as many as one pass makes."""
    repository.commit({"pool.yaml": POOL.replace('cpu: "400"', 'cpu: "9000"')})
    repository.branch("change", {"web.yaml": buffer("web", 'limits: {cpu: "4000"}')})
    done = repository.diff("main..change", "--output=json")
    cost = json.loads(done.stdout)["changes"]["cost"]["over30Days"]
    assert cost["after"] == pytest.approx(-(-4000 // 7) * 0.4 * 720, rel=0.01)
    note = "472 nodes wait for a later pass: at most 100 nodes made in a pass (caps.newNodesPerPass); the figures count all"
    assert note in repository.diff("main..change").stdout


def test_values_are_not_cut(repository: Repository) -> None:
    noted = START["web.yaml"].replace(
        "namespace: shop", f"namespace: shop, annotations: {{example.com/note: {'x' * 70} before}}"
    )
    repository.commit({"web.yaml": noted})
    repository.branch("change", {"web.yaml": noted.replace("before", "after")})
    changed = f"{'x' * 70} after"
    for output in ("text", "markdown", "html", "json"):
        text = repository.diff("main..change", f"--output={output}").stdout
        assert changed in " ".join(text.split()), output


def test_headrooms_own_annotations_are_no_change(repository: Repository) -> None:
    """A document that moves to another file has another `headroom.dev/source`, and another hash."""
    repository.branch("change", {"web.yaml": None, "moved/web.yaml": START["web.yaml"]})
    done = repository.diff("main..change")
    assert done.returncode == 0, done.stdout


def test_a_removed_buffer_frees_its_nodes(repository: Repository) -> None:
    """One that is in the cluster is deleted by one pass, and only the next finds what it held free."""
    snapshot_in(repository.snapshot, {"capacitybuffers": [applied(buffer("web", "replicas: 10", source="web.yaml"))]})
    repository.branch("change", {"web.yaml": None})
    changes = repository.changes("main..change")
    assert [(row["name"], row["before"], row["after"]) for row in changes["demands"]] == [("web", 10, None)]
    assert changes["cost"]["over30Days"]["delta"] == pytest.approx(-2 * 0.4 * 720)


def test_a_broken_template_is_an_error_and_a_forks_is_not_rendered(repository: Repository) -> None:
    repository.branch("change", {"templates/nodeclaim.yaml.j2": "{{ nothing.at.all }}"})
    (found,) = repository.changes("main..change")["findings"]["new"]
    assert (found["code"], found["severity"]) == ("template-failed", "error")
    done = repository.diff("main..change", "--fork")
    assert "template-failed" not in done.stdout
    assert "templates/nodeclaim.yaml.j2" in done.stdout


def test_what_a_template_makes_of_an_unchanged_manifest_is_shown(repository: Repository) -> None:
    template = '{{ dict(manifest, metadata=dict(manifest.metadata, labels={"team": "x"})) | json }}'
    repository.branch("change", {"templates/nodepool.yaml.j2": template})
    done = repository.diff("main..change", "--output=json")
    assert done.returncode == 1, done.stdout
    (row,) = json.loads(done.stdout)["changes"]["templates"]
    assert row["name"] == "general"
    assert [(item["path"], item["after"]) for item in row["changes"]] == [("metadata.labels", {"team": "x"})]


def test_a_conflict_is_said(repository: Repository) -> None:
    repository.branch("change", {"web.yaml": buffer("web", "replicas: 20")})
    repository.commit({"web.yaml": buffer("web", "replicas: 15")})
    done = repository.diff("main..change")
    assert "web.yaml" in done.stdout.splitlines()[1]
    assert "conflict" in done.stdout.splitlines()[1]
    assert json.loads(repository.diff("main..change", "--output=json").stdout)["conflicts"] == ["web.yaml"]


@pytest.mark.parametrize(
    ("gate", "code"),
    [
        ("--max-monthly-increase=10", 3),
        ("--max-monthly-increase=5000", 1),
        ("--max-new-nodes=1", 3),
        ("--max-new-nodes=10", 1),
        ("--no-unplaced", 1),
    ],
)
def test_gates_look_at_all_of_the_coming_days(repository: Repository, gate: str, code: int) -> None:
    """On a Sunday the schedule asks for nothing more."""
    repository.commit({"office.yaml": office(3), "web.yaml": buffer("web", "replicas: 1", replicas_from="office")})
    repository.branch("change", {"office.yaml": office(60)})
    done = repository.diff("main..change", gate)
    assert done.returncode == code, done.stdout
    assert (code == 3) == ("allowed" in done.stderr)


def test_the_folder_of_a_new_cluster_need_not_be_checked_out(repository: Repository) -> None:
    """The folder was once looked for in the working tree, so the pull request that brings it had no report."""
    east = {f"clusters/east/{name}": text for name, text in START.items()}
    repository.commit({**east, "clusters/west/web.yaml": START["web.yaml"]})
    repository.branch("change", {"clusters/east/web.yaml": buffer("web", "replicas: 20")})
    repository.git("checkout", "--quiet", "main~1")
    (row,) = repository.changes("main..change", "--path=clusters/east")["demands"]
    assert (row["before"], row["after"]) == (10, 20)


def test_a_new_error_about_no_object_names_its_file(repository: Repository) -> None:
    repository.branch("change", {"more.ymal": buffer("more", "replicas: 1")})
    done = repository.diff("main..change", "--no-new-errors")
    assert done.returncode == 3
    assert "headroom: new error: more.ymal:1:1: not read" in done.stderr


@pytest.mark.parametrize("words", [(), ("--path=clusters/west",)], ids=["all", "one"])
def test_a_cluster_that_only_one_side_has_is_new_or_gone(repository: Repository, words: tuple[str, ...]) -> None:
    """A pull request that added a cluster had no report: the base has no such folder."""
    repository.commit({f"clusters/east/{name}": text for name, text in START.items()})
    west: dict[str, str | None] = {f"clusters/west/{name}": text for name, text in START.items()}
    repository.branch("change", west)
    assert "More room: shop/web new (10 chunks)" in repository.diff("main..change", *words).stdout
    done = repository.diff("main..change", "--path=clusters/wset")
    assert done.returncode == 2
    assert "the repository has no folder 'clusters/wset'" in done.stderr
    repository.git("merge", "--quiet", "change")
    repository.branch("gone", dict.fromkeys(west))
    done = repository.diff("main..gone", *words, "--no-less-room")
    assert done.returncode == 1
    stalls = "the repository would stall: the repository has no folder 'clusters/west'"
    said = " ".join(done.stdout.split())
    assert f"The {stalls.removeprefix('the ')}; no change in cost" in said, "as the daemon holds it"
    assert "Do not merge as it is" in done.stdout
    done = repository.diff("main..gone", *words, "--no-new-errors")
    assert done.returncode == 3
    assert stalls in done.stderr

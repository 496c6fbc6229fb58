"""`headroom init`: what it looks at, and what it says when there is nothing to look at."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.fakes.embedded import workload
from tests.headroom_command import headroom_at
from tests.manifests import snapshot_in

ROOT = Path(__file__).resolve().parents[3]


def snapshot(folder: Path, *workloads: dict[str, Any], pools: bool = True) -> str:
    """A snapshot with a NodePool and these workloads; what `--cluster` calls it."""
    scaffolded = yaml.safe_load((ROOT / "config" / "scaffold" / "nodepools.yaml").read_text())
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}
    lists = {"workloads": workloads, "nodepools": [scaffolded] if pools else [], "namespaces": [namespace]}
    types = (ROOT / "examples-repo" / "snapshots" / "staging" / "instance_types.json").read_text()
    return snapshot_in(folder / "kept", lists, json.loads(types))


def test_the_first_plan_shows_a_node_and_its_price_for_the_largest_deployment(tmp_path: Path) -> None:
    cluster = snapshot(tmp_path, workload("checkout", replicas=40, cpu="1"))
    made = headroom_at(tmp_path, "init", "capacity", "--cluster", cluster, "--forge", "none")
    assert made.returncode == 0, made.stderr
    assert "The buffer is for Deployment/shop/checkout, the largest Deployment without one." in made.stdout
    plan = next(line.strip() for line in made.stdout.splitlines() if line.startswith("  headroom plan "))
    done = headroom_at(tmp_path / "capacity", *plan.split()[1:])
    assert done.returncode == 1, done.stderr
    assert "CapacityBuffer/shop/checkout: 8 chunks, 8 on new nodes" in done.stdout
    assert "/h\n      NodePool general, for " in done.stdout


def test_without_anything_to_buffer_or_to_make_nodes_with_it_says_so(tmp_path: Path) -> None:
    made = headroom_at(tmp_path, "init", "capacity", "--cluster", snapshot(tmp_path, pools=False), "--forge", "none")
    assert made.returncode == 0, made.stderr
    assert "the cluster has no NodePool" in made.stderr
    assert "the cluster has no Deployment to buffer" in made.stderr
    assert "podTemplateRef" in (tmp_path / "capacity" / "clusters" / "production" / "buffers.yaml").read_text()


def test_a_cluster_that_cannot_be_reached_is_told_of_and_the_example_is_written(tmp_path: Path) -> None:
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "gone",
        "contexts": [{"name": "gone", "context": {"cluster": "gone", "user": "me"}}],
        "clusters": [{"name": "gone", "cluster": {"server": "http://127.0.0.1:1"}}],
        "users": [{"name": "me", "user": {}}],
    }
    (tmp_path / "kubeconfig").write_text(json.dumps(config))
    made = headroom_at(tmp_path, "init", "capacity")
    assert made.returncode == 0, made.stderr
    assert "the cluster cannot be read (" in made.stderr
    assert "the buffer is an example for the embedded one" in made.stderr
    assert "headroom plan --path clusters/production --cluster embedded" in made.stdout
    assert (tmp_path / "capacity" / "clusters" / "production" / "nodepools.yaml").exists()


def test_a_cluster_that_was_named_must_be_there(tmp_path: Path) -> None:
    made = headroom_at(tmp_path, "init", "capacity", "--cluster", "snapshot:nowhere")
    assert made.returncode == 2
    assert "nowhere" in made.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("remote", "file"),
    [
        ("git@github.com:example/capacity.git", ".github/workflows/headroom.yaml"),
        ("https://gitlab.example.com/platform/capacity.git", ".gitlab-ci.yml"),
        ("https://codeberg.org/example/capacity.git", ".gitea/workflows/headroom.yaml"),
    ],
)
def test_the_remote_decides_whose_ci_file_is_written(tmp_path: Path, remote: str, file: str) -> None:
    """Its commands are run in tests/config/test_ways_in.py and tests/integration/test_gitea_ci_jobs.py."""
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "remote", "add", "origin", remote)
    made = headroom_at(tmp_path, "init")
    assert made.returncode == 0, made.stderr
    assert "CI" not in made.stderr
    written = (tmp_path / file).read_text()
    assert "--path clusters/production --cluster embedded" in written
    assert not re.search("clusters/CLUSTER|PLANNED_ON", written)


def git(folder: Path, *words: str) -> None:
    subprocess.run(["git", "-C", str(folder), *words], check=True)


def test_without_a_remote_it_says_how_to_get_a_ci_file(tmp_path: Path) -> None:
    made = headroom_at(tmp_path, "init", "capacity")
    assert "no CI file: the folder has no remote origin; --forge github, gitlab or gitea writes one" in made.stderr
    assert "there is no cluster here" in made.stderr
    named = headroom_at(tmp_path, "init", "other", "--forge", "gitlab")
    assert "no CI file" not in named.stderr
    assert (tmp_path / "other" / ".gitlab-ci.yml").exists()
    git(tmp_path, "init", "--quiet", "third")
    git(tmp_path / "third", "remote", "add", "origin", "git@git.example.com:platform/capacity.git")
    assert "its remote origin names no forge that is known" in headroom_at(tmp_path, "init", "third").stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [((), "already exists"), (("taken",), "headroom: taken/"), (("taken",), "cannot be written (")],
    ids=["into a folder with a README", "onto a file, which is named", "onto a file, with the reason"],
)
def test_nothing_is_overwritten(tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    for name in ("README.md", "taken"):
        (tmp_path / name).write_text("mine")
    done = headroom_at(tmp_path, "init", *words)
    assert (done.returncode, said in done.stderr) == (1, True), done.stderr
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"README.md": "mine", "taken": "mine"}


def test_the_example_names_its_snapshot(tmp_path: Path) -> None:
    done = headroom_at(tmp_path, "init", "--example", "capacity")
    assert "--path clusters/production --cluster embedded:snapshots/production" in done.stdout
    assert (tmp_path / "capacity" / "clusters" / "production" / "buffers" / "shop.yaml").is_file()

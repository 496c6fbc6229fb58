"""`headroom validate PATH` says the same of a folder however its path is spelt: absolute, relative, through a link."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from reconciler.cli.application import application

POOL = """\
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: general}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
      requirements: []
"""


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with a broken template, a file with a warning, and a link to it. The test stands beside it."""
    folder = tmp_path / "capacity"
    (folder / "templates").mkdir(parents=True)
    (folder / "clusters").mkdir()
    (folder / "templates" / "nodeclaim.yaml.j2").write_text("{{ broken")
    (folder / "clusters" / "pool.yaml").write_text(POOL.replace("name: general", "name: general, labels: {x: [1]}"))
    (tmp_path / "link").symlink_to(folder)
    monkeypatch.chdir(tmp_path)
    return folder


def found(*paths: str) -> tuple[int, set[tuple[str, str]]]:
    """Exit code, and code and file of each finding, files from the top of the repository."""
    done = CliRunner().invoke(application, ["validate", *paths, "--output", "json"], standalone_mode=False)
    rows: list[dict[str, Any]] = json.loads(done.stdout)["findings"]
    return done.return_value, {(row["code"], "/".join(Path(row["file"]).parts[-2:])) for row in rows}


SPELLINGS = [
    "capacity",
    "capacity/",
    "./capacity",
    "link",
    "link/",
    "capacity/../capacity",
    "ABSOLUTE",
    "ABSOLUTE/",
    "LINK",
]


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_every_spelling_of_a_folder_finds_the_same(repository: Path, spelling: str) -> None:
    path = spelling.replace("ABSOLUTE", str(repository)).replace("LINK", str(repository.parent / "link"))
    expected = {("template-failed", "templates/nodeclaim.yaml.j2"), ("wrong-type", "clusters/pool.yaml")}
    assert found(path) == (1, expected)


@pytest.mark.parametrize("inside", ["", "clusters", "templates"])
def test_from_within_the_folder_too(repository: Path, inside: str) -> None:
    os.chdir(repository / inside)
    code, findings = found(".." if inside else ".")
    assert code == 1
    assert ("wrong-type", "clusters/pool.yaml") in findings
    assert any(name == "template-failed" for name, _ in findings)


def test_several_paths_and_single_files(repository: Path) -> None:
    template = ("template-failed", "templates/nodeclaim.yaml.j2")
    pool = ("wrong-type", "clusters/pool.yaml")
    assert found(str(repository / "templates"), "capacity/clusters") == (1, {template, pool})
    assert found(str(repository / "templates" / "nodeclaim.yaml.j2")) == (1, {template})
    assert found(str(repository / "clusters" / "pool.yaml")) == (1, {pool})

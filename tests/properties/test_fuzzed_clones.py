"""Clones damaged at random between two runs of the daemon: the next run has the remote's commit, at once or after some tries.

Until then the daemon keeps the commit that it had, and says why.

HEADROOM_SCENARIOS=10000 damages as many of them; each has a seed, which alone makes it again.
"""

from __future__ import annotations

import os
import random
import shutil
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest

from reconciler.source.credentials import GitOptions
from reconciler.source.git import GitSource
from tests.fakes.clock import ManualClock
from tests.git_repository import GitRepository

SCENARIOS = int(os.environ.get("HEADROOM_SCENARIOS", "10"))
BATCH = 10
TRIES = 2
"""An hour apart."""


def damage(draw: random.Random, file: Path) -> None:
    data = file.read_bytes()
    file.chmod(0o600)
    at = draw.randrange(len(data) + 1)
    match draw.randrange(4):
        case 0:
            file.write_bytes(data[:at])
        case 1:
            file.write_bytes(data[:at] + draw.randbytes(draw.randint(1, 64)) + data[at + 1 :])
        case 2:
            file.write_bytes(draw.randbytes(len(data)))
        case _:
            file.unlink()


@dataclass(frozen=True)
class Remote:
    """A repository with two commits; each draw says which of them its branch points to after the damage."""

    repository: GitRepository
    older: str
    newer: str

    def points_to(self, commit: str) -> None:
        self.repository.git("update-ref", "refs/heads/main", commit, at=self.repository.remote)


@pytest.fixture(scope="module", params=[True, False], ids=["filtering", "plain"])
def remote(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Remote:
    repository = GitRepository(tmp_path_factory.mktemp("remote"), filters=request.param)
    repository.push({f"clusters/{number % 5}/{number}.yaml": f"a: {number}\n" for number in range(60)})
    older = repository.push({"pool.yaml": "pool"})
    return Remote(repository, older, newer=repository.push({"pool.yaml": "larger"}))


@pytest.mark.parametrize("batch", range(0, SCENARIOS, BATCH))
def test_a_damaged_clone_is_made_anew(batch: int, remote: Remote, tmp_path: Path) -> None:
    clock = ManualClock()
    whole, files = tmp_path / remote.older, {}
    for commit in (remote.newer, remote.older):
        remote.points_to(commit)
        source = GitSource(remote.repository.url, clock=clock, options=GitOptions(state=tmp_path / commit))
        files[commit] = source.read().files
    source.passes.begins(remote.older)
    source.passes.ended()
    for seed in range(batch, min(SCENARIOS, batch + BATCH)):
        draw = random.Random(seed)
        state = tmp_path / str(seed)
        shutil.copytree(whole, state)
        there = sorted(path for path in state.rglob("*") if path.is_file() and path.name != "lock")
        for file in draw.sample(there, draw.randint(1, 3)):
            damage(draw, file)
        commit = draw.choice((remote.older, remote.newer))
        remote.points_to(commit)
        source = GitSource(
            remote.repository.url, clock=clock, options=GitOptions(state=state, timeout=timedelta(seconds=60))
        )
        tree = source.read()
        assert tree.files == files[commit] or (tree.files == files[remote.older] and tree.stalled), seed
        for _ in range(TRIES):
            clock.advance(3_600)
            tree = source.read()
        assert (tree.files, tree.stalled) == (files[commit], None), seed
        shutil.rmtree(state)

"""Clones damaged at random between two runs of the daemon: the next run has the same tree again, or says why not.

HEADROOM_SCENARIOS=10000 damages as many of them; each has a seed, which alone makes it again.
"""

from __future__ import annotations

import os
import random
import shutil
from datetime import timedelta
from pathlib import Path

import pytest

from reconciler.source.git import GitSource
from reconciler.source.git_options import GitOptions
from tests.fakes.clock import ManualClock
from tests.integration.git_repository import GitRepository

SCENARIOS = int(os.environ.get("HEADROOM_SCENARIOS", "30"))
BATCH = 10


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


@pytest.fixture(scope="module", params=[True, False], ids=["filtering", "plain"])
def repository(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> GitRepository:
    repository = GitRepository(tmp_path_factory.mktemp("remote"), filters=request.param)
    repository.push({f"clusters/{number % 5}/{number}.yaml": f"a: {number}\n" for number in range(60)})
    repository.push({"pool.yaml": "pool"})
    return repository


@pytest.mark.parametrize("batch", range(0, SCENARIOS, BATCH))
def test_a_damaged_clone_is_made_anew(batch: int, repository: GitRepository, tmp_path: Path) -> None:
    clock = ManualClock()
    whole = tmp_path / "whole"
    good = GitSource(repository.url, clock=clock, options=GitOptions(state=whole)).read()
    for seed in range(batch, min(SCENARIOS, batch + BATCH)):
        draw = random.Random(seed)
        state = tmp_path / str(seed)
        shutil.copytree(whole, state)
        files = sorted(path for path in state.rglob("*") if path.is_file() and path.name != "lock")
        for file in draw.sample(files, draw.randint(1, 3)):
            damage(draw, file)
        source = GitSource(repository.url, clock=clock, options=GitOptions(state=state, timeout=timedelta(seconds=60)))
        assert source.read().files == good.files, seed
        clock.advance(3_600)
        assert source.read().stalled is None, seed
        shutil.rmtree(state)

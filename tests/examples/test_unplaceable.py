"""What headroom says of pods that cannot be placed: one sentence a cause, as `headroom explain` prints them.

Renew tests/golden/unplaceable.txt with HEADROOM_GOLDEN=write, and read each sentence aloud: does it name the nearest miss, with
numbers and units, and does one know what to do?
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from click.testing import CliRunner

from reconciler.cli.application import application
from tests.examples.unplaceable import cases, write_snapshot
from tests.goldens import GOLDEN, check

NODE_REASONS = frozenset(
    {"node not available", "node labels", "node taints", "node too small", "node full", "host port taken", "topology"}
)


@cache
def explained(name: str) -> Mapping[str, Any]:
    with TemporaryDirectory() as folder:
        snapshot, repository = Path(folder) / "snapshot", Path(folder) / "repository"
        repository.mkdir()
        write_snapshot(cases()[name], snapshot)
        words = [
            "--include-pending",
            "--check-placement",
            "--repo",
            str(repository),
            "--cluster",
            f"snapshot:{snapshot}",
        ]
        done = CliRunner().invoke(application, ["explain", "Pod/shop/it", *words, "--output=json"])
        found: dict[str, Any] = json.loads(done.stdout)
        return found


def sentences(name: str) -> list[str]:
    rows = explained(name)["demand"]["unplacedReasons"]
    return [f"  {row['reason']}, {row['candidates']}: {row['example']}" for row in rows]


def test_every_sentence_is_the_one_in_the_golden_file() -> None:
    text = "\n".join(line for name in cases() for line in (name, *sentences(name), ""))
    check(GOLDEN / "unplaceable.txt", text)


@pytest.mark.parametrize("name", cases())
def test_the_counts_add_up(name: str) -> None:
    """Every node has one cause; but for what lies in the pod itself, which is all that is said then."""
    found = explained(name)
    assert found["demand"]["unplaced"] == 1
    assert found["findings"] == []
    reasons = found["demand"]["unplacedReasons"]
    if [row["reason"] for row in reasons] in (["contradiction"], ["volumes"], ["resource claims"]):
        return
    told = [row for row in reasons if row["reason"] in NODE_REASONS and not row["example"].startswith("NodePool")]
    assert {row["count"] for row in reasons} == {1}, "the one pod"
    assert sum(row["candidates"] for row in told) == len(cases()[name]["nodes"])
    pools = cases()[name]["pools"]
    assert {pool for pool in pools if any(f"NodePool {pool}" in row["example"] for row in reasons)} == set(pools)

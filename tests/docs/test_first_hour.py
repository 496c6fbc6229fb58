"""The first hour without a cluster, typed word for word from the docs. Its twin with one is in tests/e2e."""

from __future__ import annotations

from pathlib import Path

from reconciler.scaffold import FirstRepository, next_steps
from tests.docs.first_hour import WITH_A_CLUSTER, WITHOUT_ONE, first_hour, typed


def test_every_line_works_and_the_plan_shows_a_node_and_its_price(tmp_path: Path) -> None:
    lines = first_hour(WITHOUT_ONE)
    done = typed(lines, tmp_path)
    assert list(done) == lines
    plan = next(line for line in lines if line.startswith("headroom plan"))
    assert {line: output for line, (code, output) in done.items() if code != (1 if line == plan else 0)} == {}
    assert "CapacityBuffer/default/web: 3 chunks, 3 on new nodes" in done[plan][1]
    assert "1 node to create; 3 objects to apply." in done[plan][1]
    assert "$0.1086/h" in done[plan][1]
    assert "settled: the cluster is as declared" in done[lines[-1]][1]
    assert (tmp_path / "capacity" / ".github" / "workflows" / "headroom.yaml").exists()


def test_init_tells_the_steps_that_the_page_has() -> None:
    for which, first in (
        (WITHOUT_ONE, FirstRepository("production")),
        (WITH_A_CLUSTER, FirstRepository("production", seen=True)),
    ):
        assert [line for line in first_hour(which) if line in next_steps(first)] == list(next_steps(first))

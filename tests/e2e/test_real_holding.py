"""What becomes of held nodes on real Karpenter: they drift, are interrupted, and are given up for room elsewhere."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.controlplane import ControlPlane, eventually
from tests.controlplane.waiting import moments
from tests.e2e.daemon_process import USER, DaemonProcess
from tests.e2e.shop import Shop, buffer_of
from tests.e2e.warm_nodes import HOLD, POOL, held_nodes, is_full, web
from tests.git_repository import GitRepository

pytestmark = pytest.mark.e2e


@pytest.fixture
def kept(shop: Shop, repository: GitRepository, kubeconfig: Path, tmp_path: Path) -> Iterator[DaemonProcess]:
    """The daemon keeps four nodes, each of which holds one chunk."""
    repository.commit({"nodepool.yaml": POOL, "buffers/web.yaml": buffer_of(4)})
    shop.api.apply(web(0))
    with DaemonProcess(repository.work, kubeconfig, tmp_path) as daemon:
        shop.wait_for_buffer("FitsExistingCapacity")
        assert len(held_nodes(shop)) == 4
        yield daemon


def test_four_held_nodes_that_drift_are_replaced_one_at_a_time_and_the_buffer_is_never_short(
    kept: DaemonProcess, shop: Shop, repository: GitRepository, empty_control_plane: ControlPlane
) -> None:
    old = set(held_nodes(shop))
    repository.commit({"nodepool.yaml": POOL.replace("labels: {team: shop}", "labels: {team: shop, color: blue}")})
    changes: Counter[str] = Counter()
    marked: dict[str, bool] = {}
    took = 0.0
    for passed in moments(within=150, every=0.5):
        took = passed
        for node in shop.api.list("v1", "Node"):
            uid, mark = node["metadata"]["uid"], HOLD in node["metadata"].get("annotations", {})
            changes[uid] += marked.get(uid, True) != mark
            marked[uid] = mark
        holding = held_nodes(shop)
        assert len(holding) >= 4, "the buffer is short"
        assert is_full(shop)
        if old.isdisjoint(holding) and old.isdisjoint(
            {item["metadata"]["uid"] for item in shop.api.list("v1", "Node")}
        ):
            break
    sys.stdout.write(
        f"four drifted nodes were replaced in {took:.0f} s; changes of hold by node: {sorted(changes.values())}\n"
    )
    assert old.isdisjoint(held_nodes(shop)), f"{len(old & set(held_nodes(shop)))} old nodes are left after {took:.0f} s"
    assert max(changes.values()) <= 3
    kept.wait_until_settled(shop.api)
    mark_of_the_log, passes = empty_control_plane.audit_mark(), kept.status()["passes"]
    eventually(lambda: kept.status()["passes"] >= passes + 1, within=60, what="one more pass", every=0.5)
    assert empty_control_plane.writes_by(USER, since=mark_of_the_log) == []

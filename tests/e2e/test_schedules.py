"""Schedules on real Karpenter: a buffer that is full at the edge, a static NodePool that comes and goes.

Patterns have whole minutes, so each test declares a window of one minute that begins a minute or two from now. Ticks are
ten minutes apart: what happens at an edge happens because of the edge.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests import manifests
from tests.builders import manifest
from tests.controlplane import eventually
from tests.controlplane.definitions import define
from tests.controlplane.rest import Document, condition
from tests.e2e.daemon_process import DaemonProcess
from tests.e2e.shop import NODE_POOL, Shop
from tests.git_repository import GitRepository

pytestmark = pytest.mark.e2e

LEAD = timedelta(seconds=40)
PRODUCER = ("autoscaling.karpenter.sh/v1alpha1", "MetricsProducer")


def schedule(start: datetime, end: datetime, replicas: int) -> str:
    opens, closes = (f"hours: {each.hour}, minutes: {each.minute}" for each in (start, end))
    return manifests.schedule("rush", replicas, opens, closes)


RUSH = manifests.buffer("web", of=manifests.BY_DEPLOYMENT, replicas_from="rush", lead_time="40s")
ONLY_IN_THE_RUSH = manifests.buffer("ci", "percentage: 10", of=manifests.BY_DEPLOYMENT, active_during="rush")
# KWOK wants the instance type named.
ON_ONE_TYPE = (
    f"{manifests.ON_DEMAND}, {{key: kubernetes.io/arch, operator: In, values: [amd64]}},"
    " {key: node.kubernetes.io/instance-type, operator: In, values: [c-4x-amd64-linux]}"
)
REPORTS = manifests.node_pool("reports", "replicas: 0", ON_ONE_TYPE, replicas_from="shop/rush")
ONE_STAYS = {"minAvailable": 1, "selector": {"matchLabels": {"app": "queue"}}}
BUDGET = manifest("policy/v1", "PodDisruptionBudget", "queue", "shop", spec=ONE_STAYS)


def guarded(name: str, **annotations: str) -> Document:
    """A pod that needs most of a node of the static pool."""
    marks = {f"karpenter.sh/{key}": value for key, value in annotations.items()}
    spec = {
        "terminationGracePeriodSeconds": 0,
        "nodeSelector": {"karpenter.sh/nodepool": "reports"},
        "containers": [{"name": "main", "image": "main:1", "resources": {"requests": {"cpu": "3"}}}],
    }
    return manifest("v1", "Pod", name, "shop", metadata={"labels": {"app": name}, "annotations": marks}, spec=spec)


def now() -> datetime:
    return datetime.now(UTC)


def window(after: timedelta) -> tuple[datetime, datetime]:
    """The first whole minute that is at least so far away, and the one after it."""
    start = (now() + after).replace(second=0, microsecond=0) + timedelta(minutes=1)
    return start, start + timedelta(minutes=1)


def until(moment: datetime) -> float:
    """Seconds to wait for what comes with this moment."""
    return max(0.0, (moment - now()).total_seconds()) + 20


def created(item: Document) -> datetime:
    return datetime.fromisoformat(item["metadata"]["creationTimestamp"])


@pytest.fixture
def daemon(shop: Shop, repository: GitRepository, kubeconfig: Path, tmp_path: Path) -> DaemonProcess:
    define(shop.api, "MetricsProducer")
    return DaemonProcess(repository.work, kubeconfig, tmp_path, passes_interval="600s")


def status(shop: Shop) -> dict[str, Any]:
    producer = shop.api.get(*PRODUCER, "rush", namespace="shop") or {}
    found: dict[str, Any] = producer.get("status", {})
    return found


def metric(daemon: DaemonProcess) -> str:
    lines = daemon.fetch("/metrics").splitlines()
    (value,) = (
        line.rpartition(" ")[2] for line in lines if line.startswith('karpenter_scheduled_capacity{name="rush"')
    )
    return value


def wait_for_status(shop: Shop, value: int, following: int, at: datetime, *, within: float) -> None:
    def said() -> bool:
        found = {key: status(shop).get(key) for key in ("currentValue", "nextValue", "nextValueTime")}
        moment = at.strftime("%Y-%m-%dT%H:%M:%SZ")
        assert found == {"currentValue": value, "nextValue": following, "nextValueTime": moment}
        return True

    eventually(said, within=within, what=f"the schedule's status says {value}, then {following}", every=0.5)


def test_a_buffer_grows_by_its_lead_time_is_full_at_the_edge_and_is_released_after(
    daemon: DaemonProcess, shop: Shop, repository: GitRepository
) -> None:
    start, end = window(after=LEAD + timedelta(seconds=35))
    repository.commit(
        {
            "nodepool.yaml": NODE_POOL,
            "schedule.yaml": schedule(start, end, replicas=4),
            "buffers/web.yaml": RUSH,
            "buffers/ci.yaml": ONLY_IN_THE_RUSH,
        }
    )
    shop.deploy()
    shop.scale(0)
    with daemon:
        wait_for_status(shop, 0, 4, start, within=30)
        shop.wait_for_buffer("BufferEmpty", replicas=0)
        assert shop.placeholders() == []
        assert metric(daemon) == "0.0"
        assert not shop.buffer("ci"), "it does not exist while the schedule is at 0"
        edge = daemon.status()["nextEdge"]
        assert datetime.fromisoformat(edge["time"]) == start - LEAD
        assert edge["schedule"] == "MetricsProducer/shop/rush, 40s ahead"
        assert now() < start - LEAD, "too slow a machine for this window"

        placeholders = eventually(shop.placeholders, within=until(start - LEAD), what="it grows ahead", every=0.2)
        # the API server cuts fractions of seconds off
        assert all(start - LEAD <= created(item) < start - LEAD / 2 for item in placeholders), (start, placeholders)
        assert metric(daemon) == "0.0", "the schedule itself is not there yet"
        shop.wait_for_buffer("FitsExistingCapacity", within=until(start))
        assert now() < start, "full before the edge"

        wait_for_status(shop, 4, 0, end, within=until(start))
        assert metric(daemon) == "4.0"
        eventually(lambda: shop.buffer("ci"), within=20, what="the other buffer exists", every=0.5)
        assert shop.buffer()["spec"]["replicas"] == 4

        shop.wait_for_buffer("BufferEmpty", replicas=0, within=until(end))
        assert metric(daemon) == "0.0"
        wait_for_status(shop, 0, 4, start + timedelta(days=1), within=20)
        eventually(lambda: not shop.buffer("ci"), within=20, what="the other buffer is gone", every=0.5)
        eventually(lambda: shop.claims() == [], within=90, what="Karpenter has removed the nodes", every=0.5)


def test_a_static_pool_follows_its_schedule_to_zero_and_back_and_tells_what_keeps_its_nodes(
    daemon: DaemonProcess, shop: Shop, repository: GitRepository
) -> None:
    start, end = window(after=timedelta(seconds=20))
    repository.commit({"reports.yaml": REPORTS, "schedule.yaml": schedule(start, end, replicas=3)})
    shop.api.apply(BUDGET)
    with daemon:
        pool = eventually(lambda: replicas(shop) == 0, within=30, what="the pool is there, at 0", every=0.5)
        assert pool
        assert shop.claims() == []

        eventually(lambda: replicas(shop) == 3, within=until(start), what="the pool is at 3", every=0.2)
        assert now() >= start
        eventually(lambda: initialized(shop) == 3, within=50, what="Karpenter makes three nodes", every=0.5)
        shop.api.apply(guarded("report", **{"do-not-disrupt": "true"}))
        shop.api.apply(guarded("queue"))
        eventually(lambda: len(shop.running()) == 2, within=40, what="report and queue run", every=0.5)

        eventually(lambda: replicas(shop) == 0, within=until(end), what="the pool is at 0 again", every=0.2)
        eventually(lambda: len(shop.claims()) == 2, within=60, what="the empty node goes", every=0.5)
        (told,) = eventually(lambda: blockers(daemon), within=30, what="what keeps the others is told", every=0.5)
        assert "shop/report on " in told
        assert "(do-not-disrupt)" in told
        assert "shop/queue on " in told
        assert "(PodDisruptionBudget queue)" in told
        for name in ("report", "queue"):
            shop.api.delete("v1", "Pod", name, namespace="shop")
        eventually(lambda: shop.claims() == [], within=90, what="the last nodes go with their pods", every=0.5)
        eventually(lambda: not blockers(daemon), within=30, what="nothing keeps it any more", every=0.5)


def replicas(shop: Shop) -> int | None:
    pool = shop.api.get("karpenter.sh/v1", "NodePool", "reports") or {}
    found: int | None = pool.get("spec", {}).get("replicas")
    return found


def initialized(shop: Shop) -> int:
    """NodeClaims whose nodes take pods."""
    claims = shop.claims()
    found = sum(condition(claim, "Initialized") == "True" for claim in claims)
    assert found == len(claims), [claim.get("status") for claim in claims]
    return found


def blockers(daemon: DaemonProcess) -> list[str]:
    return [row["message"] for row in daemon.status()["findings"] if row["code"] == "static-pool-blocked"]

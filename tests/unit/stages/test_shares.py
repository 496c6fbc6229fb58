"""The life of a buffer that is a share of running pods: it grows with them at once, and shrinks ten minutes after them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from reconciler.model.buffers import remembered_shares
from reconciler.model.changes import Plan
from reconciler.settings.settings import BufferSettings
from tests.builders import buffer_ref
from tests.fakes.embedded import Sandbox, node_pool, workload
from tests.unit.stages.test_owners import Daemon

FILE = """\
apiVersion: autoscaling.x-k8s.io/v1beta1
kind: CapacityBuffer
metadata: {name: spare, namespace: shop, annotations: {headroom.dev/percent-of: PODS}}
spec:
  podTemplateRef: {name: shape}
  replicas: 0
  percentage: 10
---
apiVersion: v1
kind: PodTemplate
metadata: {name: shape, namespace: shop}
template:
  spec:
    containers: [{name: main, image: pause, resources: {requests: {cpu: 500m, memory: 256Mi}}}]
"""


class Shop:
    def __init__(self, percent_of: str = "nodepool/general", **settings: Any) -> None:
        self.percent_of, self.settings = percent_of, settings
        self.sandbox = Sandbox(provisions_pending=True)
        self.sandbox.cluster.apply(node_pool())
        self.restart()

    def restart(self) -> None:
        self.daemon = Daemon(self.sandbox, {"spare.yaml": FILE.replace("PODS", self.percent_of)}, **self.settings)

    def scale(self, pods: int) -> None:
        """The pods run before the next pass."""
        self.sandbox.cluster.apply(workload(replicas=pods))
        self.sandbox.wait(30)
        assert sum(node is not None for node in self.sandbox.where().values()) == pods

    def memory(self) -> Mapping[str, Any]:
        return self.sandbox.cluster.view().inventory.memory

    def plan(self, minutes: float = 0) -> Plan:
        """Of the last pass, with a pass each ten seconds."""
        return self.daemon.passes(1 + int(minutes * 6)).required_plan

    def chunks(self, plan: Plan) -> tuple[int | None, int]:
        """How many are asked for, and how many stand on nodes."""
        outcome = next(item for item in plan.demands if item.demand.ref == buffer_ref("spare"))
        return outcome.demand.desired, outcome.on_existing


def test_it_grows_with_the_pods_at_once_and_shrinks_ten_minutes_after_them() -> None:
    shop = Shop()
    shop.scale(20)
    assert shop.chunks(shop.plan())[0] == 2
    assert shop.chunks(shop.plan(1)) == (2, 2)

    shop.scale(60)
    assert shop.chunks(shop.plan())[0] == 6
    assert shop.chunks(shop.plan(1)) == (6, 6)

    shop.scale(20)
    first = shop.plan()
    assert shop.chunks(first) == (6, 6)
    (edge,) = [item for item in first.edges if "share of running pods" in item.why]
    assert (edge.at - first.now).total_seconds() == 600
    shop.plan(4)
    shop.restart()
    assert shop.chunks(shop.plan(5.5)) == (6, 6), "a restart forgets nothing"
    last = shop.plan(1)
    assert last.now >= edge.at
    assert shop.chunks(last) == (2, 2)
    live = shop.sandbox.cluster.get(buffer_ref("spare"))
    assert live is not None
    assert live["status"]["replicas"] == 2


def test_its_memory_goes_with_it() -> None:
    shop = Shop("selector:app=web")
    shop.scale(20)
    shop.plan(1)
    assert remembered_shares(shop.memory())["shop/spare"].chunks == 2
    shop.daemon.source.commit({"shape.yaml": FILE.partition("---")[2]})
    shop.plan(1)
    assert "shares" not in shop.memory()


def test_the_setting_says_how_long_it_waits() -> None:
    shop = Shop("namespace", buffers=BufferSettings(shrink_after=timedelta(minutes=1)))
    shop.scale(60)
    shop.plan()
    shop.scale(20)
    assert shop.chunks(shop.plan())[0] == 6
    assert shop.chunks(shop.plan(1))[0] == 2

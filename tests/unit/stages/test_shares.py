"""Buffers whose size somebody else decides: a share of running pods, or the scale subresource."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reconciler.model.buffers import remembered_shares
from reconciler.model.changes import Apply, Plan
from reconciler.model.refs import ObjectRef
from tests.builders import buffer_ref
from tests.fakes.embedded import LARGE, Sandbox, node_pool, workload
from tests.fakes.kept_cluster import KeptCluster
from tests.unit.stages.test_owners import Daemon

# The life of a buffer that is a share of running pods: it grows with them at once, and shrinks ten minutes after them.

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


# Buffers that somebody sizes through the scale subresource: that value counts, and nobody fights over it.

RUNNERS = """\
apiVersion: autoscaling.x-k8s.io/v1alpha1
kind: Buffer
metadata: {name: runners, namespace: shop, annotations: {}}
spec:
  replicas: 2
  capacity:
    pods:
      replicaNum: 2
      podSpec: {containers: [{name: runner, image: pause, resources: {requests: {cpu: "1"}}}]}
"""
REF = ObjectRef("autoscaling.x-k8s.io", "Buffer", "shop", "runners")
HOURS = """\
---
apiVersion: autoscaling.karpenter.sh/v1alpha1
kind: MetricsProducer
metadata: {name: hours, namespace: shop}
spec: {schedule: {timezone: UTC, defaultReplicas: 1}}
"""


def kept(text: str = RUNNERS) -> KeptCluster:
    shop = KeptCluster(instance_types=(LARGE,))
    shop.cluster.apply(node_pool())
    shop.commit({"runners.yaml": text})
    shop.keep(30)
    return shop


def live(shop: KeptCluster) -> dict[str, Any]:
    found = shop.cluster.get(REF)
    assert found is not None
    return dict(found)


def sizes(shop: KeptCluster) -> tuple[int, int]:
    """In the spec, and of the buffer."""
    found = live(shop)
    return found["spec"]["replicas"], found["status"]["replicas"]


def test_the_number_of_the_scale_subresource_counts_and_stays() -> None:
    shop = kept()
    assert sizes(shop) == (2, 2)
    shop.cluster.scale(REF, 5, manager="keda-operator")
    shop.keep(30)
    assert sizes(shop) == (5, 5)
    assert "5 by keda-operator through /scale" in shop.passes[-1].plan.demands[0].demand.explanation

    shop.commit({"runners.yaml": RUNNERS.replace("2\n", "3\n")})
    shop.restart()
    passes = shop.keep(900, step=5)

    assert sizes(shop) == (5, 5), "Git is not written over it, now or later"
    applied = [write.manifest["spec"] for each in passes for write in each.writes if isinstance(write, Apply)]
    assert [("replicas" in spec, spec["capacity"]["pods"]["replicaNum"]) for spec in applied] == [(False, 3)]


def test_a_schedule_gives_way_to_it_as_git_does() -> None:
    shop = kept(RUNNERS.replace("{}", "{headroom.dev/replicas-from: hours}") + HOURS)
    assert live(shop)["status"]["replicas"] == 1
    shop.cluster.scale(REF, 4, manager="keda-operator")
    shop.keep(30)
    assert sizes(shop) == (4, 4)


def test_an_override_takes_the_field_back() -> None:
    shop = kept()
    shop.cluster.scale(REF, 5, manager="keda-operator")
    shop.keep(30)
    shop.commit({"runners.yaml": RUNNERS.replace("{}", "{headroom.dev/ssa: Override}")})
    shop.keep(60)
    assert sizes(shop) == (2, 2)


def test_its_status_has_what_a_scaler_reads() -> None:
    status = live(kept())["status"]
    assert status["selector"] == (
        "autoscaling.x-k8s.io/buffer=runners,autoscaling.x-k8s.io/buffer-namespace=shop,karpenter.sh/capacity-type=buffer"
    )
    assert "selector" not in live(kept(RUNNERS.replace("  replicas: 2\n", "")))["status"], (
        "an older definition lacks it"
    )

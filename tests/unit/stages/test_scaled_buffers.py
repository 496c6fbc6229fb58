"""Buffers that somebody sizes through the scale subresource: that value counts, and nobody fights over it."""

from __future__ import annotations

from typing import Any

from reconciler.model.changes import Apply
from reconciler.model.refs import ObjectRef
from tests.fakes.embedded import LARGE, node_pool
from tests.fakes.kept_cluster import KeptCluster

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


def test_nothing_is_written_while_nothing_changes() -> None:
    shop = kept()
    shop.cluster.scale(REF, 5, manager="keda-operator")
    shop.keep(60)
    assert shop.keep(900, step=5) == []


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

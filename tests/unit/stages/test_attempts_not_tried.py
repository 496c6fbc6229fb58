"""An attempt of which nothing was made has not failed: nothing is waited for, and it keeps its number."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import yaml

from reconciler.model.changes import Apply, Outcome, Write, WriteResult
from reconciler.model.nodes import ATTEMPT_LABEL
from reconciler.model.view import ClusterView
from reconciler.ports import Cluster
from tests.fakes.embedded import node_pool, pool_ref
from tests.fakes.requests import ATOMIC, BatchShop, request

MADE = ("True", "CapacityIsProvisioned")
BATCH = {"batch.yaml": yaml.safe_dump(node_pool("batch"))}


class SlowKarpenter:
    """The embedded cluster, where Karpenter has not found the NodeClass of a pool yet, as on a busy cluster: the pool is not ready."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.is_late = False
        self.refuses_claims = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cluster, name)

    def view(self) -> ClusterView:
        view = self._cluster.view()
        pool = view.objects.get(pool_ref("batch"))
        if not self.is_late or pool is None:
            return view
        status = {"conditions": [{"type": "Ready", "status": "False", "reason": "NodeClassNotFound", "message": ""}]}
        late = replace(pool, body={**pool.body, "status": status})
        return replace(view, revision=f"{view.revision} late", objects={**view.objects, late.ref: late})

    def write(self, write: Write, *, dry_run: bool = False) -> WriteResult:
        if self.refuses_claims and isinstance(write, Apply) and write.ref.kind == "NodeClaim":
            return WriteResult(write, Outcome.FAILED, "timed out")
        return self._cluster.write(write, dry_run=dry_run)


def slow_shop() -> tuple[BatchShop, SlowKarpenter]:
    """The attempt begins in the pass that applies the pool, and its NodeClaims wait for that."""
    shop = BatchShop(pool=node_pool(limits={"nodes": "0"}), files=BATCH)
    slow = SlowKarpenter(shop.cluster)
    shop.cluster = slow  # type: ignore[assignment]
    shop.restart()
    shop.cluster.apply(request(count=9, class_name=ATOMIC))
    shop.run()
    assert shop.conditions()["Provisioned"] == ("False", "AttemptUnderWay")
    assert shop.claims() == []
    return shop, slow


def attempts(shop: BatchShop) -> list[str]:
    labels = (claim.label(ATTEMPT_LABEL) or "" for claim in shop.cluster.view().node_claims)
    return sorted(label.rpartition(".")[2] for label in labels)


def test_a_node_pool_that_is_not_ready_yet_fails_no_attempt() -> None:
    shop, slow = slow_shop()
    slow.is_late = True
    shop.run()
    assert shop.conditions()["Provisioned"] == ("False", "CapacityIsNotFound")
    slow.is_late = False
    shop.settle(passes=4)
    assert shop.conditions()["Provisioned"] == MADE
    assert attempts(shop) == ["1"] * 3


def test_node_claims_that_could_not_be_written_fail_no_attempt() -> None:
    shop, slow = slow_shop()
    slow.refuses_claims = True
    shop.run()
    slow.is_late = True
    shop.run()
    slow.is_late = slow.refuses_claims = False
    shop.settle(passes=4)
    assert shop.conditions()["Provisioned"] == MADE
    assert attempts(shop) == ["1"] * 3


def test_an_attempt_of_which_something_was_made_fails_when_the_rest_cannot_be() -> None:
    shop, slow = slow_shop()
    shop.run()
    shop.sandbox.wait(10)
    slow.is_late = True
    shop.sandbox.cluster.lose(shop.sandbox.node_names()[0])
    shop.run()
    assert shop.conditions()["Provisioned"] == ("False", "AttemptFailed")

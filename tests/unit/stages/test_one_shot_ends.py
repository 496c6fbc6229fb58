"""A buffer that is filled once ends for good: pods have used it, they did not come in time, or its nodes went first."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.model.changes import Apply
from tests.builders import buffer_ref, instance_type
from tests.fakes.embedded import node_pool, workload, workload_ref
from tests.fakes.kept_cluster import KeptCluster

FOUR_PODS = instance_type("m-5x", cpu="5", memory="16Gi")
"""With room for four pods of one core, and no more."""
IN_GIT = """\
apiVersion: autoscaling.x-k8s.io/v1beta1
kind: CapacityBuffer
metadata: {name: web, namespace: shop}
spec:
  scalableRef: {apiGroup: apps, kind: Deployment, name: web}
  replicas: 4
  refillStrategy: none
  fillDeadlineSeconds: 900
"""


class Shop(KeptCluster):
    """A buffer of four chunks, as the repository declares it, and no pods yet."""

    def __init__(self, text: str = IN_GIT, unknown: frozenset[str] = frozenset()) -> None:
        super().__init__(instance_types=(FOUR_PODS,))
        served: Any = self.cluster
        served.unknown_fields = lambda apply: self._unknown(apply, unknown)
        self.cluster.apply(node_pool(consolidate_after="30s"))
        self.cluster.apply(workload(replicas=0, cpu="1"))
        self.commit({"web.yaml": text})
        self.keep(60)

    @staticmethod
    def _unknown(apply: Apply, unknown: frozenset[str]) -> tuple[str, ...]:
        return tuple(f"spec.{name}" for name in sorted(apply.manifest.get("spec") or {}) if name in unknown)

    def scale(self, pods: int) -> None:
        self.cluster.scale(workload_ref(), pods)

    def object(self) -> dict[str, Any]:
        found = self.cluster.get(buffer_ref())
        assert found is not None
        return dict(found)

    def said(self, kind: str) -> tuple[str, str] | None:
        conditions = self.object()["status"]["conditions"]
        return next(((item["status"], item["reason"]) for item in conditions if item["type"] == kind), None)

    def message(self, kind: str) -> str:
        return str(next(item["message"] for item in self.object()["status"]["conditions"] if item["type"] == kind))

    def held(self) -> int:
        return sum(("headroom.dev/held", "true") in node.annotations for node in self.cluster.view().nodes)


def test_it_is_fulfilled_when_pods_have_used_it_and_stays_so() -> None:
    shop = Shop()
    assert (shop.said("Provisioning"), shop.said("Fulfilled")) == (("True", "FitsExistingCapacity"), None)
    shop.scale(3)
    shop.keep(30)
    assert (shop.object()["status"]["replicas"], shop.said("Fulfilled")) == (1, None)

    shop.scale(4)
    shop.keep(30)

    assert shop.said("Fulfilled") == ("True", "BufferFilled")
    assert shop.message("Fulfilled") == "pods have used 4 chunks, none is left"
    assert shop.said("Provisioning") == ("True", "FitsExistingCapacity"), "it is not empty: pods are in it"
    assert "Fulfilled" in shop.reasons()
    shop.scale(0)
    shop.keep(1200, step=5)
    assert (shop.said("Fulfilled"), shop.said("Expired")) == (("True", "BufferFilled"), None), "its deadline has passed"
    assert (shop.held(), shop.node_names()) == (0, [])


def test_it_gives_up_at_its_deadline_to_the_second_and_releases_its_nodes() -> None:
    shop = Shop()
    (outcome,) = shop.passes[0].plan.demands
    assert outcome.demand.explanation[-1] == "one-shot: to be filled once, pods have 15m to use all of it"
    shop.scale(1)
    shop.keep(830, step=5)
    assert (shop.held(), shop.said("Expired")) == (1, None)

    shop.keep(20)

    assert shop.said("Expired") == ("True", "FillDeadlineExceeded")
    assert shop.message("Expired") == "pods have used 1 of 4 chunks within 15m: the rest is given up"
    assert (shop.said("Provisioning"), shop.held()) == (("False", "BufferEmpty"), 0)
    assert "Expired" in shop.reasons()


def test_what_is_written_later_does_not_begin_it_again() -> None:
    shop = Shop()
    shop.keep(900, step=5)
    assert shop.said("Expired") == ("True", "FillDeadlineExceeded")
    shop.commit({"web.yaml": IN_GIT.replace("replicas: 4", "replicas: 8").replace("900", "90000")})
    shop.restart()
    shop.keep(60)
    assert (shop.said("Expired"), shop.object()["status"]["replicas"]) == (("True", "FillDeadlineExceeded"), 0)
    assert shop.held() == 0


def test_one_whose_capacity_cannot_be_had_gives_up_too() -> None:
    shop = Shop(IN_GIT.replace("replicas: 4", "replicas: 5"))
    shop.cluster.apply(node_pool(limits={"cpu": "0"}))
    shop.keep(900, step=5)
    assert shop.said("Expired") == ("True", "FillDeadlineExceeded")


def test_one_whose_nodes_went_before_any_pod_came_was_not_fulfilled() -> None:
    shop = Shop()
    for name in shop.node_names():
        shop.cluster.lose(name)
    shop.keep(120)
    assert (shop.said("Fulfilled"), shop.said("Expired")) == (None, ("True", "CapacityLost"))


def test_a_buffer_that_is_made_smaller_down_to_nothing_does_not_end() -> None:
    shop = Shop()
    shop.commit({"web.yaml": IN_GIT.replace("replicas: 4", "replicas: 0")})
    shop.keep(60)
    assert (shop.said("Fulfilled"), shop.said("Expired")) == (None, None)


@pytest.mark.parametrize("deadline", ["", "  fillDeadlineSeconds: 900\n"], ids=["no deadline", "a deadline"])
def test_where_the_definition_has_no_such_fields_annotations_say_the_same(deadline: str) -> None:
    text = IN_GIT.replace("  fillDeadlineSeconds: 900\n", deadline)
    shop = Shop(text, unknown=frozenset({"refillStrategy", "fillDeadlineSeconds"}))
    found = shop.object()
    assert not found["spec"].keys() & {"refillStrategy", "fillDeadlineSeconds"}
    annotations = found["metadata"]["annotations"]
    assert annotations["headroom.dev/one-shot"] == "true"
    assert annotations.get("headroom.dev/fill-deadline") == ("15m" if deadline else None)
    shop.scale(4)
    shop.keep(30)
    assert shop.said("Fulfilled") == ("True", "BufferFilled")


def test_a_field_that_is_nowhere_known_beside_them_is_still_an_error() -> None:
    shop = Shop(IN_GIT + "  colour: blue\n", unknown=frozenset({"refillStrategy", "fillDeadlineSeconds", "colour"}))
    assert shop.cluster.get(buffer_ref()) is None


def test_the_third_value_of_the_proposal_is_told_and_left_alone() -> None:
    shop = Shop(IN_GIT.replace("none", "recreateUpToLimit"))
    assert shop.said("ReadyForProvisioning") == ("False", "ResolutionFailed")
    assert shop.message("ReadyForProvisioning") == "refill strategy recreateUpToLimit is not supported"

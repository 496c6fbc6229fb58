"""The order in which pending pods of equal priority are placed: those first that have least choice of nodes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from reconciler.demand.pods import pending_demands
from reconciler.model.nodes import HOSTNAME_LABEL, ZONE_LABEL
from reconciler.model.pods import PodAffinityTerm, PodShape, TopologySpread
from reconciler.model.requirements import LabelSelector
from reconciler.model.view import ClusterView
from reconciler.placement.batches import batches_of
from reconciler.placement.needs import KnownNeeds
from tests.builders import pod, shape

WEB = LabelSelector((("app", "web"),))
APART = replace(shape("300m"), pod_anti_affinity=(PodAffinityTerm(HOSTNAME_LABEL, WEB),))
TOGETHER = replace(shape("200m"), pod_affinity=(PodAffinityTerm(ZONE_LABEL, WEB),))
OVER_ZONES = replace(shape("100m"), topology_spread=(TopologySpread(ZONE_LABEL, 1, "DoNotSchedule", WEB),))
OVER_HOSTS = replace(shape("1"), topology_spread=(TopologySpread(HOSTNAME_LABEL, 1, "DoNotSchedule", WEB),))
ANYWHERE, LARGE = shape("1500m"), shape("2")
"""Those with less choice ask for less, so that by size alone they would come the other way round."""
SHAPES = (LARGE, ANYWHERE, OVER_HOSTS, APART, TOGETHER, OVER_ZONES)


def in_order(*, include_pending: bool) -> list[PodShape]:
    view = ClusterView(pods=tuple(pod(f"pod-{number}", pod_shape=item) for number, item in enumerate(SHAPES)))
    demands = pending_demands(view, include_pending=include_pending)
    needs = KnownNeeds(lambda _: np.zeros(1, dtype=np.int64))
    return [batch.needs.shape for batch in batches_of(demands, needs.of, include_pending=include_pending)]


def test_pods_that_get_new_nodes_come_by_choice_and_then_by_size() -> None:
    assert in_order(include_pending=True) == [APART, TOGETHER, OVER_ZONES, OVER_HOSTS, LARGE, ANYWHERE]


def test_pods_that_wait_for_room_come_by_size() -> None:
    assert in_order(include_pending=False) == list(SHAPES)

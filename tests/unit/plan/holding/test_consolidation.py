"""Which held nodes may be opened to the pods of another node."""

from __future__ import annotations

from datetime import timedelta

import pytest

from reconciler.model.nodes import Node
from reconciler.model.view import ClusterView
from reconciler.plan.bins import Bin
from reconciler.plan.holding.consolidation import Candidate, takes_no_chunks_room
from tests.builders import pod, resources, shape


def candidate(name: str, cpu: str) -> Candidate:
    item = Bin(Node(name, resources("2", "8Gi", pods="9")), None)
    one = pod(name, node=name, pod_shape=shape(cpu, "100Mi"))
    return Candidate(item, 0.1, (one,), replaceable=False, wait=timedelta())


@pytest.mark.parametrize(
    ("other", "is_safe"),
    [("900m", False), ("1600m", True), ("100m", True)],
    ids=["fits into the chunks' room", "fits nowhere", "fits beside"],
)
def test_a_node_is_not_opened_if_other_pods_could_fill_its_chunks_room(other: str, is_safe: bool) -> None:  # noqa: FBT001 - the case
    host = Bin(Node("host", resources("2", "8Gi", pods="9")), None)
    view = ClusterView(pods=(pod("there", node="host", pod_shape=shape("500m", "100Mi")),))
    guest = candidate("guest", "700m")
    chunks = resources("600m", "100Mi", pods="1")
    assert takes_no_chunks_room(guest, [candidate("other", other).pods], [host], chunks, view) is is_safe

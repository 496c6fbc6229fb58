"""Rules between pods by kubernetes.io/hostname go by the node, node affinity by the label."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler.model.nodes import HOSTNAME_LABEL
from reconciler.model.pods import NodeSelectorTerm, PodAffinityTerm, PodShape, TopologySpread
from reconciler.model.requirements import LabelSelector, Operator, Requirement
from reconciler.model.view import ClusterView
from tests.builders import demand, node, shape
from tests.unit.placement.worlds import World, with_hostname

WEB = LabelSelector((("app", "web"),))
NODES = (with_hostname(node("n1"), "n3"), with_hostname(node("n2"), None), with_hostname(node("n3"), "n3"))


def web(**rules: object) -> PodShape:
    return replace(shape("100m", "64Mi", labels={"app": "web"}), **rules)  # type: ignore[arg-type]


def where(pod_shape: PodShape, count: int) -> dict[str | None, int]:
    """Chunks by node, found right by the checker."""
    asked = replace(demand(count=count, pod_shape=pod_shape), opens_nodes=False)
    placement = World(ClusterView(nodes=NODES), (), (), (asked,)).placed_rightly()
    return {item.node: sum(holding.count for holding in item.holdings) for item in placement.occupied}


@pytest.mark.parametrize(
    "rules",
    [
        {"topology_spread": (TopologySpread(HOSTNAME_LABEL, 1, "DoNotSchedule", WEB, 3),)},
        {"pod_anti_affinity": (PodAffinityTerm(HOSTNAME_LABEL, WEB),)},
    ],
    ids=["spread", "anti-affinity"],
)
def test_each_node_is_a_host_of_its_own(rules: dict[str, object]) -> None:
    assert where(web(**rules), 3) == {"n1": 1, "n2": 1, "n3": 1}


@pytest.mark.parametrize(
    ("operator", "nodes"),
    [(Operator.IN, {"n1", "n3"}), (Operator.NOT_IN, {"n2"}), (Operator.DOES_NOT_EXIST, {"n2"})],
)
def test_node_affinity_by_hostname_goes_by_the_label(operator: Operator, nodes: set[str]) -> None:
    values = () if operator is Operator.DOES_NOT_EXIST else ("n3",)
    terms = (NodeSelectorTerm((Requirement(HOSTNAME_LABEL, operator, values),)),)
    alone = (PodAffinityTerm(HOSTNAME_LABEL, WEB),)
    assert where(web(required_node_terms=terms, pod_anti_affinity=alone), len(nodes)).keys() == nodes

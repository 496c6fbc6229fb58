"""A catalog of what the cluster's nodes show."""

from __future__ import annotations

from reconciler.catalog.observed import ClusterCatalog, ObservedCatalog
from reconciler.model.nodes import Node
from reconciler.model.quantity import Resources
from reconciler.model.view import ClusterView
from tests.builders import instance_type


def node(name: str, *, memory: str = "8Gi", deleting: bool = False, **labels: str) -> Node:
    known = {
        "node.kubernetes.io/instance-type": labels.get("type", "m5.large"),
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
        "topology.kubernetes.io/zone": labels.get("zone", "zone-a"),
        "karpenter.sh/capacity-type": labels.get("capacity_type", "spot"),
        "karpenter.k8s.aws/instance-family": "m5",
        "kubernetes.io/hostname": name,
        "team": "shop",
    }
    return Node(
        name=name,
        capacity=Resources.parse({"cpu": "2", "memory": memory, "pods": "29"}),
        allocatable=Resources.parse({"cpu": "1930m", "memory": "7Gi", "pods": "29"}),
        labels=tuple(sorted((key, value) for key, value in known.items() if value)),
        deleting=deleting,
    )


def test_a_type_is_sold_where_it_was_seen() -> None:
    view = ClusterView(
        nodes=(
            node("a"),
            node("b", zone="zone-b", capacity_type="on-demand"),
            node("c"),
            node("d", type="c5.large", zone="zone-c"),
        )
    )
    small, large = ObservedCatalog().instance_types(view)
    assert (small.name, large.name) == ("c5.large", "m5.large")
    assert [(each.zone, each.capacity_type) for each in large.offerings] == [
        ("zone-a", "spot"),
        ("zone-b", "on-demand"),
    ]
    assert large.overhead == Resources.parse({"cpu": "70m", "memory": "1Gi"})


def test_no_price_is_known() -> None:
    (only,) = ObservedCatalog().instance_types(ClusterView(nodes=(node("a"),)))
    assert not any(offering.price_known for offering in only.offerings)
    assert "not known" in ObservedCatalog().source


def test_only_labels_of_the_type_are_the_types() -> None:
    (only,) = ObservedCatalog().instance_types(ClusterView(nodes=(node("a"), node("b"))))
    assert {key for key, _ in only.labels} == {
        "node.kubernetes.io/instance-type",
        "kubernetes.io/arch",
        "kubernetes.io/os",
        "karpenter.k8s.aws/instance-family",
    }


def test_of_nodes_that_differ_the_smaller_is_believed() -> None:
    (only,) = ObservedCatalog().instance_types(ClusterView(nodes=(node("a", memory="7700Mi"), node("b"))))
    assert only.capacity.get("memory") == 7700 * 2**20


def test_a_node_that_was_not_bought_by_karpenter_counts_as_on_demand() -> None:
    (only,) = ObservedCatalog().instance_types(ClusterView(nodes=(node("a", capacity_type=""),)))
    assert [offering.capacity_type for offering in only.offerings] == ["on-demand"]


def test_nodes_that_tell_nothing_are_left_out() -> None:
    view = ClusterView(nodes=(node("a", deleting=True), node("b", zone=""), node("c", type="")))
    assert ObservedCatalog().instance_types(view) == ()


def test_the_clusters_own_catalogue_comes_before_what_its_nodes_show() -> None:
    catalog = ClusterCatalog("snapshot:before")
    assert [item.name for item in catalog.instance_types(ClusterView(nodes=(node("a"),)))] == ["m5.large"]
    assert catalog.source == ObservedCatalog().source
    view = ClusterView(nodes=(node("a"),), catalog=(instance_type("m-4x"),))
    assert catalog.instance_types(view) == view.catalog
    assert catalog.source == "the catalog of snapshot:before, undated"

"""Instance types from what the cluster has and from a file."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reconciler.catalog.file import FileCatalog
from reconciler.catalog.observed import ClusterCatalog, ObservedCatalog
from reconciler.manifests.instance_types import instance_types_document
from reconciler.model.errors import Invalid, Misused
from reconciler.model.nodes import INITIALIZED_LABEL, REGISTERED_LABEL, Node
from reconciler.model.quantity import Resources
from reconciler.model.view import ClusterView
from tests import builders
from tests.builders import instance_type, resources


def node(name: str, instance_type: str = "m5.large", *, memory: str = "8Gi", **fields: Any) -> Node:
    """What is "" of its type, zone and capacity type is no label of it."""
    found = builders.node(
        name,
        instance_type=instance_type,
        labels={"karpenter.k8s.aws/instance-family": "m5", "team": "shop"},
        capacity=resources("2", memory, pods="29"),
        allocatable=resources("1930m", "7Gi", pods="29"),
        **{"capacity_type": "spot", **fields},
    )
    return replace(found, labels=tuple(label for label in found.labels if label[1]))


def test_a_type_is_sold_where_it_was_seen() -> None:
    view = ClusterView(
        nodes=(
            node("a"),
            node("b", zone="zone-b", capacity_type="on-demand"),
            node("c"),
            node("d", "c5.large", zone="zone-c"),
        )
    )
    small, large = ObservedCatalog().instance_types(view)
    assert (small.name, large.name) == ("c5.large", "m5.large")
    assert [(each.zone, each.capacity_type) for each in large.offerings] == [
        ("zone-a", "spot"),
        ("zone-b", "on-demand"),
    ]
    assert large.overhead == Resources.parse({"cpu": "70m", "memory": "1Gi"})


def test_a_node_that_has_just_joined_takes_no_label_and_no_device_off_its_type() -> None:
    joined, device = node("b"), resources("2", "7Gi", gpu="1")
    up = replace(node("a"), capacity=device, allocatable=device)
    told_later = {INITIALIZED_LABEL, REGISTERED_LABEL, "karpenter.k8s.aws/instance-family"}
    joined = replace(joined, labels=tuple(label for label in joined.labels if label[0] not in told_later))
    assert ObservedCatalog().instance_types(ClusterView(nodes=(up, joined))) == ObservedCatalog().instance_types(
        ClusterView(nodes=(up,))
    )
    (alone,) = ObservedCatalog().instance_types(ClusterView(nodes=(joined,)))
    assert alone.name == "m5.large", "better than nothing where it is the first of its type"


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
    view = ClusterView(nodes=(node("a", deleting=True), node("b", zone=""), node("c", "")))
    assert ObservedCatalog().instance_types(view) == ()


def test_the_clusters_own_catalogue_comes_before_what_its_nodes_show() -> None:
    catalog = ClusterCatalog("snapshot:before")
    assert [item.name for item in catalog.instance_types(ClusterView(nodes=(node("a"),)))] == ["m5.large"]
    assert catalog.source == ObservedCatalog().source
    view = ClusterView(nodes=(node("a"),), catalog=(instance_type("m-4x"),))
    assert catalog.instance_types(view) == view.catalog
    assert catalog.source == "the catalog of snapshot:before, undated"


# A catalog in a file: read once, read again when it changes, refused with a place when it is wrong.


def write(path: Path, *names: str) -> None:
    path.write_text(json.dumps(instance_types_document(instance_type(name) for name in names)))


def test_types_are_those_of_the_file_and_follow_it(tmp_path: Path) -> None:
    path = tmp_path / "instance_types.json"
    write(path, "m-4x", "c-4x")
    catalog = FileCatalog(path)
    assert [item.name for item in catalog.instance_types(ClusterView())] == ["c-4x", "m-4x"]
    assert catalog.instance_types(ClusterView()) is catalog.instance_types(ClusterView())
    write(path, "m-4x", "c-4x", "s-4x")
    assert [item.name for item in catalog.instance_types(ClusterView())] == ["c-4x", "m-4x", "s-4x"]


@pytest.mark.parametrize(
    ("as_of", "when"),
    [
        ("", "undated: it has no asOf"),
        ("2026-11-21", "prices as of 2026-11-21"),
        ("2026-11-21T08:30:00Z", "prices as of 2026-11-21 08:30 UTC"),
    ],
)
def test_the_source_names_the_file_and_its_date(tmp_path: Path, as_of: str, when: str) -> None:
    """The time of the file itself would be that of the checkout."""
    path = tmp_path / "prices.json"
    write(path, "m-4x")
    if as_of:
        path.write_text(json.dumps({"asOf": as_of, "instanceTypes": json.loads(path.read_text())}))
    catalog = FileCatalog(path)
    assert [item.name for item in catalog.instance_types(ClusterView())] == ["m-4x"]
    assert catalog.source == f"file {path}, {when}"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'[\n  {"name": }\n]', "{path}:2:12: is not JSON (Expecting value)"),
        (b"\xff\xfe\xff", "catalog {path} is not text in UTF-8"),
        (b'{"asOf": "soon", "instanceTypes": []}', "{path}: asOf of a catalog is a date, not a string"),
        (b'[{"name": "m"}]', "{path}: instance type m: object missing required field `architecture`"),
        (b"[" * 100_000, "catalog {path} is nested too deeply"),
        (b"[" + b"9" * 5000 + b"]", "catalog {path} has a number that is too large"),
        (b'[{"name": "\\ud800"}]', "catalog {path} has half of a surrogate pair, which no text can hold"),
    ],
)
def test_a_file_that_cannot_be_used(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "bad.json"
    path.write_bytes(content)
    with pytest.raises(Invalid) as caught:
        FileCatalog(path).instance_types(ClusterView())
    assert caught.value.message == message.format(path=path)


def test_a_file_that_is_not_there_is_wrong_usage(tmp_path: Path) -> None:
    with pytest.raises(Misused, match="No such file"):
        FileCatalog(tmp_path / "typo.json").instance_types(ClusterView())

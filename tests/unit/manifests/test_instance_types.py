"""Catalogues of instance types as JSON: what is read, what is derived, and what a mistake looks like."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.manifests.instance_types import (
    SYNTHETIC_ZONES,
    instance_types_document,
    instance_types_from,
    kwok_labels,
    synthetic_instance_types,
)
from reconciler.model.errors import Invalid
from reconciler.model.nodes import InstanceType
from reconciler.model.quantity import Resources


def requirement(key: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": "In", "values": list(values)}


def offering(**changes: Any) -> dict[str, Any]:
    where = [
        requirement("topology.kubernetes.io/zone", "zone-a"),
        requirement("karpenter.sh/capacity-type", "on-demand"),
    ]
    return {"Price": 0.2, "Available": True, "Requirements": where} | changes


def entry(**changes: Any) -> dict[str, Any]:
    return {
        "name": "m5.large",
        "architecture": "amd64",
        "operatingSystems": ["linux"],
        "resources": {"cpu": "2", "memory": "8Gi"},
        "offerings": [offering()],
    } | changes


def read_one(**changes: Any) -> InstanceType:
    (item,) = instance_types_from([entry(**changes)])
    return item


def test_an_entry_of_the_kwok_format() -> None:
    item = read_one()
    assert item.capacity == Resources.parse({"cpu": "2", "memory": "8Gi", "pods": "110"})
    assert item.allocatable == Resources.parse({"cpu": "1900m", "memory": "8182Mi", "pods": "110"})
    assert dict(item.labels) == {
        "node.kubernetes.io/instance-type": "m5.large",
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
        "karpenter.kwok.sh/instance-family": "m5",
        "karpenter.kwok.sh/instance-size": "large",
        "karpenter.kwok.sh/instance-cpu": "2",
        "karpenter.kwok.sh/instance-memory": "8Gi",
    }
    (only,) = item.offerings
    assert (only.zone, only.capacity_type, only.price, only.price_known) == ("zone-a", "on-demand", 0.2, True)


def test_labels_overhead_and_pods_that_are_written_replace_what_is_derived() -> None:
    item = read_one(
        labels={"example.com/rack": "r1"}, overhead={"cpu": "300m"}, resources={"cpu": "2", "memory": "8Gi", "pods": 29}
    )
    assert dict(item.labels)["example.com/rack"] == "r1"
    assert "karpenter.kwok.sh/instance-family" not in dict(item.labels)
    assert item.overhead == Resources.parse({"cpu": "300m"})
    assert item.capacity.get("pods") == 29


def test_a_type_for_two_systems_has_no_label_for_the_system() -> None:
    item = read_one(operatingSystems=["linux", "windows"])
    assert item.operating_systems == ("linux", "windows")
    assert "kubernetes.io/os" not in dict(item.labels)


def test_an_offering_in_two_zones_becomes_two_offerings() -> None:
    where = [
        requirement("topology.kubernetes.io/zone", "zone-b", "zone-a"),
        requirement("karpenter.sh/capacity-type", "reserved"),
    ]
    item = read_one(offerings=[offering(Requirements=where, ReservationCapacity=3)])
    assert [(each.zone, each.reservation_capacity) for each in item.offerings] == [("zone-a", 3), ("zone-b", 3)]
    assert item.offerings[0].requirements[1].values == ("zone-a",)


@pytest.mark.parametrize("price", [1_000_001, 1e12, 1e30, 10**400, float("inf"), float("nan"), "0.2", True])
def test_what_is_no_price_is_refused(price: object) -> None:
    with pytest.raises(Invalid, match=r"rice"):
        read_one(offerings=[offering(Price=price)])


def test_a_price_of_null_is_unknown_and_not_free() -> None:
    (only,) = read_one(offerings=[offering(Price=None)]).offerings
    assert not only.price_known


@pytest.mark.parametrize(
    ("name", "resources", "size", "family", "cpu", "memory"),
    [
        ("m5.2xlarge", {"cpu": "8", "memory": "32Gi"}, "2xlarge", "m5", "8", "32Gi"),
        ("n2-standard-4", {"cpu": "4000m", "memory": "16384Mi"}, "4", "n2", "4", "16Gi"),
        ("Standard_D4s_v5", {"cpu": 4, "memory": "16G"}, "4", "S", "4", "16G"),
        ("tiny", {"cpu": "500m", "memory": "1.5Gi"}, "500m", "t", "500m", "1536Mi"),
    ],
)
def test_labels_that_the_kwok_provider_derives(
    name: str, resources: dict[str, Any], size: str, family: str, cpu: str, memory: str
) -> None:
    assert list(kwok_labels(name, resources).values()) == [size, family, cpu, memory]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"architecture": 64}, "architecture: expected `str`, got `int`"),
        ({"operatingSystems": []}, "operatingsystems: expected `array` of length >= 1"),
        ({"resources": {"cpu": "2"}}, "resources.memory is None, expected an amount above zero"),
        ({"resources": {"cpu": "2x", "memory": "8Gi"}}, "resource cpu: '2x' is not a quantity"),
        ({"labels": {"a": 1}}, "labels[...]: expected `str`, got `int`"),
        ({"offerings": [3]}, "offerings[0]: expected `object`, got `int`"),
        ({"offerings": [offering(), offering(Price=-1)]}, "offerings[1].price: expected `float` >= 0.0"),
        ({"offerings": [offering(Available="yes")]}, "offerings[0].available: expected `bool | null`, got `str`"),
        (
            {"offerings": [offering(Requirements=[requirement("karpenter.sh/capacity-type", "spot")])]},
            "offerings[0].Requirements do not say topology.kubernetes.io/zone In […]",
        ),
        (
            {"offerings": [offering(Requirements=[{"key": "zone", "operator": "Is", "values": ["a"]}])]},
            "offerings[0].requirements[0].operator: invalid enum value 'Is'",
        ),
    ],
)
def test_a_mistake_is_told_with_the_type_and_the_field(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(Invalid) as caught:
        instance_types_from([entry(**changes)])
    assert caught.value.message == f"instance type m5.large: {message}"


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"items": []}, "a catalog of instance types is a list, not an object"),
        ([entry(), "m5"], "instance type [1] is a string, expected an object with a name"),
        ([entry(), entry()], "instance type m5.large is listed twice"),
        ([{"architecture": "amd64"}], "instance type [0]: name is nothing, expected a string"),
    ],
)
def test_a_catalogue_that_is_none(document: Any, message: str) -> None:
    with pytest.raises(Invalid) as caught:
        instance_types_from(document)
    assert caught.value.message == message


def test_every_mistake_is_told_at_once() -> None:
    with pytest.raises(Invalid) as caught:
        instance_types_from([entry(name="a", architecture=""), entry(name="b", offerings=[offering(Price="x")])])
    assert caught.value.message.startswith("2 instance types are wrong; the first: instance type a: architecture")
    (second,) = caught.value.causes
    assert "instance type b: offerings[0].price" in str(second)


def test_what_is_written_is_read_back_equal() -> None:
    types = (*synthetic_instance_types()[:5], read_one(offerings=[offering(Price=None)], labels={}))
    assert instance_types_from(instance_types_document(types)) == tuple(sorted(types, key=lambda item: item.name))


def test_the_synthetic_catalogue() -> None:
    types = synthetic_instance_types()
    assert len(types) == 144
    assert [item.name for item in types] == sorted(item.name for item in types)
    by_name = {item.name: item for item in types}
    small = by_name["c-1x-amd64-linux"]
    assert small.capacity == Resources.parse({"cpu": "1", "memory": "2Gi", "pods": "16", "ephemeral-storage": "20Gi"})
    prices = {(each.zone, each.capacity_type): each.price for each in small.offerings}
    assert set(prices) == {(zone, kind) for zone in SYNTHETIC_ZONES for kind in ("on-demand", "spot")}
    assert prices["test-zone-a", "on-demand"] == pytest.approx(0.027147483648)
    assert prices["test-zone-d", "spot"] == pytest.approx(0.0190032385536)
    assert by_name["m-256x-arm64-windows"].capacity.get("pods") == 1024

"""Pods with resource claims (DRA): counted where that can be done, and kept off every node where not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from reconciler.model.attachments import (
    ClaimSpec,
    Device,
    DeviceClass,
    DeviceRequest,
    Devices,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
)
from reconciler.model.demand import Demand
from reconciler.model.nodes import INITIALIZED_LABEL, INSTANCE_TYPE_LABEL
from reconciler.model.placement import Placement
from reconciler.model.pods import GeneratedClaim, PodShape
from reconciler.model.view import ClusterView
from reconciler.placement.checker.violations import violations
from reconciler.placement.place import place
from reconciler.placement.problem import PlacementOptions, Problem
from tests.builders import demand, instance_type, node, node_pool, pending, shape
from tests.unit.placement.worlds import World, carried_out

DRIVER = "gpu.example.com"
GPU = ((DRIVER, "type"), "gpu")
WHOLE = DeviceClass("gpu", (f"device.driver == '{DRIVER}' && device.attributes['{DRIVER}'].type == 'gpu'",))
TYPES = (instance_type(),)


def devices_of(name: str, count: int, **fields: object) -> ResourceSlice:
    found = tuple(Device(f"gpu-{number}", (GPU,)) for number in range(count))
    return replace(ResourceSlice(name, DRIVER, name, node=name, devices=found), **fields)  # type: ignore[arg-type]


def template(
    name: str = "one-gpu", count: int = 1, device_class: str = "gpu", *, simple: bool = True
) -> ResourceClaimTemplate:
    return ResourceClaimTemplate("shop", name, ClaimSpec((DeviceRequest(device_class, count),), simple))


def claiming(*templates: str, claims: Sequence[str] = ()) -> PodShape:
    return replace(shape("100m"), resource_claim_templates=templates, resource_claims=tuple(claims))


def placed(devices: Devices, *demands: Demand, nodes: Sequence[str] = ("a", "b")) -> Placement:
    """Placed and found right by the checker."""
    view, pools = ClusterView(nodes=tuple(node(name) for name in nodes), devices=devices), (node_pool(),)
    options = PlacementOptions(include_pending=True)
    return World(view, pools, TYPES, demands, options=options).placed_rightly()


def on(placement: Placement) -> dict[str | None, int]:
    return {item.node: sum(holding.count for holding in item.holdings) for item in placement.occupied}


def test_devices_are_counted_node_by_node() -> None:
    devices = Devices((devices_of("a", 2), devices_of("b", 1)), (WHOLE,), templates=(template(),))
    placement = placed(devices, demand(count=5, pod_shape=claiming("one-gpu")))
    assert on(placement) == {"a": 2, "b": 1}
    assert not placement.planned
    (left,) = placement.unplaced
    words = {reason.example for reason in left.reasons}
    assert "a lacks 1 device of class gpu" in words
    unknown = "what devices a new node has is known where nodes of its NodePool and instance type are up and agree: here of none"
    assert unknown in words


def test_a_new_node_has_the_devices_that_nodes_like_it_have() -> None:
    taken = ResourceClaim("shop", "other", ClaimSpec(), allocated=((DRIVER, "a", "gpu-0"),))
    devices = Devices((devices_of("a", 2), devices_of("b", 2)), (WHOLE,), (taken,), (template(),))
    placement = placed(devices, demand(count=6, pod_shape=claiming("one-gpu")))
    assert on(placement) == {"a": 1, "b": 2}
    assert [sum(holding.count for holding in planned.holdings) for planned in placement.planned] == [1, 2]
    assert placement.planned[0].requests.names() == ("cpu", "memory", "pods"), "nobody sells a node by its devices"


def test_nodes_of_another_pool_or_type_tell_nothing_of_devices() -> None:
    devices = Devices((devices_of("a", 2), devices_of("b", 2)), (WHOLE,), templates=(template(),))
    training = demand(count=5, pod_shape=claiming("one-gpu"))
    for other in (node("a", pool="other"), node("a", instance_type="other")):
        view = ClusterView(nodes=(other,), devices=devices)
        placement = place(Problem(view, (node_pool(),), TYPES, (training,)))
        assert not placement.planned


def test_chunks_stay_with_a_node_while_it_comes_up_and_brings_its_devices() -> None:
    """From NodeClaim to node without devices to node with them; never is a second node made in the meantime."""
    devices = Devices((devices_of("a", 1),), (WHOLE,), templates=(template(),))
    demands = (demand(count=2, pod_shape=claiming("one-gpu")),)
    pools = (node_pool(),)
    world = World(ClusterView(nodes=(node("a"),), devices=devices), pools, TYPES, demands)

    def again(view: ClusterView) -> Placement:
        placement = place(Problem(view, pools, TYPES, demands))
        assert violations(Problem(view, pools, TYPES, demands), placement) == ()
        return placement

    first = again(world.view)
    assert len(first.planned) == 1
    asked = carried_out(world, first).view
    (claim,) = asked.node_claims
    settled = replace(claim, allocatable=node().allocatable, labels=(*claim.labels, (INSTANCE_TYPE_LABEL, "m-4x")))
    registered = replace(settled, node_name="b", conditions=(("Initialized", "Unknown"),))
    young = replace(node("b"), labels=tuple(pair for pair in node("b").labels if pair[0] != INITIALIZED_LABEL))
    brought = Devices((devices_of("a", 1), devices_of("b", 1)), (WHOLE,), templates=(template(),))
    in_part = replace(brought, slices=(devices_of("a", 1), devices_of("b", 1, slices=2)))
    steps = [
        asked,
        replace(asked, node_claims=(settled,)),
        replace(asked, node_claims=(registered,), nodes=(*asked.nodes, young)),
        replace(asked, node_claims=(registered,), nodes=(*asked.nodes, young), devices=in_part),
        replace(asked, node_claims=(registered,), nodes=(*asked.nodes, young), devices=brought),
        replace(asked, node_claims=(registered,), nodes=(*asked.nodes, node("b")), devices=brought),
    ]
    for view in steps:
        placement = again(view)
        assert not placement.planned
        assert not placement.unplaced

    used = ResourceClaim("shop", "other", ClaimSpec(), allocated=((DRIVER, "b", "gpu-0"),))
    taken = again(replace(steps[4], devices=replace(brought, claims=(used,))))
    assert "b" not in on(taken), "another pod was quicker"

    late = again(replace(asked, node_claims=(registered,), nodes=(*asked.nodes, node("b"))))
    assert not late.planned, "a node that is up without devices makes its kind unknown"
    assert sum(item.count for item in late.unplaced) == 1


def test_a_claim_for_several_devices_needs_them_on_one_node() -> None:
    devices = Devices((devices_of("a", 2), devices_of("b", 3)), (WHOLE,), templates=(template("three", 3),))
    assert on(placed(devices, pending("train", claiming("three")))) == {"b": 1}


def test_allocated_devices_are_not_free() -> None:
    taken = ResourceClaim("shop", "other", ClaimSpec(), allocated=((DRIVER, "a", "gpu-0"),))
    devices = Devices((devices_of("a", 1), devices_of("b", 1)), (WHOLE,), (taken,), (template(),))
    assert on(placed(devices, pending("train", claiming("one-gpu")))) == {"b": 1}


def test_devices_that_the_class_does_not_select_do_not_count() -> None:
    other = replace(devices_of("a", 1), devices=(Device("mig-0", (((DRIVER, "type"), "mig"),)),))
    devices = Devices((other, devices_of("b", 1)), (WHOLE,), templates=(template(),))
    assert on(placed(devices, pending("train", claiming("one-gpu")))) == {"b": 1}


def test_only_the_newest_whole_generation_of_a_pool_counts() -> None:
    older = devices_of("a", 3, generation=1)
    newer = devices_of("a", 1, generation=2)
    partial = devices_of("b", 4, slices=2)
    devices = Devices((older, newer, partial), (WHOLE,), templates=(template(),))
    assert on(placed(devices, demand(count=4, pod_shape=claiming("one-gpu")))) == {"a": 1}


def test_an_allocated_claim_holds_its_pods_to_the_devices_node() -> None:
    claim = ResourceClaim("shop", "mine", ClaimSpec((DeviceRequest("gpu", 1),)), allocated=((DRIVER, "b", "gpu-0"),))
    devices = Devices((devices_of("a", 1), devices_of("b", 1)), (WHOLE,), (claim,))
    pods = [pending(f"p-{number}", claiming(claims=("mine",))) for number in range(2)]
    assert on(placed(devices, *pods)) == {"b": 2}


def test_two_classes_with_the_same_devices_share_the_count() -> None:
    twin = replace(WHOLE, name="gpu-too")
    devices = Devices((devices_of("a", 2),), (WHOLE, twin), templates=(template(), template("too", 1, "gpu-too")))
    pods = [pending(f"p-{number}", claiming("one-gpu" if number % 2 else "too")) for number in range(3)]
    assert on(placed(devices, *pods)) == {"a": 2}


def reasons_of(placement: Placement) -> list[str]:
    return [reason.example for left in placement.unplaced for reason in left.reasons]


@pytest.mark.parametrize(
    ("devices", "words"),
    [
        (
            Devices((devices_of("a", 1),), (WHOLE,), templates=(template(simple=False),)),
            "ResourceClaimTemplate/shop/one-gpu asks for more than a number of devices: it is not judged",
        ),
        (
            Devices((devices_of("a", 1),), (DeviceClass("gpu", ("device.capacity['x'].memory > 1",)),), templates=(template(),)),
            "DeviceClass gpu selects by more than driver and attributes: it is not judged",
        ),
        (
            Devices((devices_of("a", 1, node=""),), (WHOLE,), templates=(template(),)),
            "DeviceClass gpu has devices that are shared, tainted or no node's own: it is not judged",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_counted_finds_no_place(devices: Devices, words: str) -> None:
    """Neither a node that is there nor one to be made could be promised."""
    placement = placed(devices, pending("train", claiming("one-gpu")))
    assert reasons_of(placement) == [words]
    assert {item.cause for left in placement.unplaced for item in left.reasons} == {"resource claims"}


def test_classes_that_share_some_devices_are_not_judged() -> None:
    every = DeviceClass("every", (f'device.driver == "{DRIVER}"',))
    mixed = replace(devices_of("a", 1), devices=(Device("gpu-0", (GPU,)), Device("mig-0")))
    devices = Devices((mixed,), (WHOLE, every), templates=(template(), template("any", 1, "every")))
    placement = placed(devices, pending("p-0", claiming("one-gpu")), pending("p-1", claiming("any")))
    assert reasons_of(placement) == [
        "DeviceClasses gpu and every share some of their devices: they are not judged",
        "DeviceClasses every and gpu share some of their devices: they are not judged",
    ]


@pytest.mark.parametrize(
    ("devices", "pod_shape", "words"),
    [
        (Devices(), claiming("one-gpu"), "ResourceClaimTemplate/shop/one-gpu does not exist"),
        (Devices(), claiming(claims=("mine",)), "ResourceClaim/shop/mine does not exist"),
        (
            Devices(templates=(template(),)),
            claiming("one-gpu"),
            "ResourceClaimTemplate/shop/one-gpu: there is no DeviceClass gpu",
        ),
    ],
)  # fmt: skip
def test_what_is_not_there_keeps_the_pod_off_every_node(devices: Devices, pod_shape: PodShape, words: str) -> None:
    placement = placed(devices, pending("train", pod_shape))
    (left,) = placement.unplaced
    assert [reason.example for reason in left.reasons] == [words]


def test_a_class_that_cannot_be_counted_is_no_class_without_devices() -> None:
    """Neither has any that are known: they are not alike for that."""
    classes = (DeviceClass("fast", ("device.capacity['x'].y.isGreaterThan(quantity('1'))",)), WHOLE)
    found = Devices((), classes, templates=(template(), template("fast", device_class="fast")))
    placement = placed(found, pending("train", claiming("one-gpu")), pending("run", claiming("fast")), nodes=("a",))
    assert sorted(item.demand.name for item in placement.unplaced) == ["run", "train"]
    assert "DeviceClass fast selects by more than driver and attributes: it is not judged" in reasons_of(placement)


def test_devices_that_cannot_be_counted_leave_other_classes_as_they_are() -> None:
    shared = ResourceSlice("net", "net.example.com", "net", devices=(Device("nic", simple=False),))
    classes = (DeviceClass("nic", ("device.driver == 'net.example.com'",)), WHOLE)
    found = Devices((devices_of("a", 1), shared), classes, templates=(template(), template("nic", device_class="nic")))
    placement = placed(
        found,
        *(pending(f"train-{number}", claiming("one-gpu")) for number in range(2)),
        pending("serve", claiming("nic")),
        nodes=("a",),
    )
    assert [holding.demand.name for item in placement.planned for holding in item.holdings] == ["train-1"]


def test_a_claim_that_cannot_be_judged_keeps_its_pod_off_whatever_else_it_has() -> None:
    odd = template("odd", simple=False)
    found = Devices((devices_of("b", 1),), (WHOLE,), templates=(template(), odd))
    placement = placed(found, pending("train-0", claiming("one-gpu", "odd")), pending("train-1", claiming("one-gpu")))
    assert on(placement) == {"b": 1}
    assert reasons_of(placement) == [
        "ResourceClaimTemplate/shop/odd asks for more than a number of devices: it is not judged"
    ]


@pytest.mark.parametrize(
    ("pod_shape", "words"),
    [
        (claiming("odd", "gone"), "ResourceClaimTemplate/shop/gone does not exist"),
        (claiming("odd", claims=("gone",)), "ResourceClaim/shop/gone does not exist"),
        (claiming("odd", "classless"), "ResourceClaimTemplate/shop/classless: there is no DeviceClass tpu"),
    ],
)
def test_what_is_not_there_counts_beside_what_cannot_be_judged(pod_shape: PodShape, words: str) -> None:
    templates = (template("odd", simple=False), template("classless", device_class="tpu"))
    placement = placed(Devices((), (WHOLE,), templates=templates), pending("train", pod_shape))
    assert [reason.example for left in placement.unplaced for reason in left.reasons] == [words]


OWN = GeneratedClaim("one-gpu", "web-1-gpu", "uid-web-1")
"""What the pod web-1 says was made for it from the template."""
WAITING = replace(shape("100m"), generated_claims=(OWN,))
MADE = ResourceClaim("shop", "web-1-gpu", template().spec, owner="uid-web-1")


@pytest.mark.parametrize("templates", [(template(),), ()], ids=["template there", "template deleted"])
def test_a_claim_made_for_a_pod_holds_it_to_the_devices_that_it_has(
    templates: tuple[ResourceClaimTemplate, ...],
) -> None:
    """They are the last ones of their node, and taken by nobody else."""
    made = replace(MADE, allocated=((DRIVER, "b", "gpu-0"),))
    devices = Devices((devices_of("a", 2), devices_of("b", 1)), (WHOLE,), (made,), templates)
    assert on(placed(devices, pending("web-1", WAITING))) == {"b": 1}


def test_a_pod_whose_devices_are_on_a_full_node_goes_nowhere_else() -> None:
    """Each wants three CPUs of the four that a node has, and their devices are on the same one."""
    claims = tuple(
        ResourceClaim("shop", f"web-{number}-gpu", template().spec, ((DRIVER, "b", f"gpu-{number}"),), f"uid-{number}")
        for number in range(2)
    )
    shapes = [
        replace(shape("3"), generated_claims=(GeneratedClaim("one-gpu", item.name, item.owner),)) for item in claims
    ]
    devices = Devices((devices_of("a", 2), devices_of("b", 2)), (WHOLE,), claims, (template(),))
    placement = placed(devices, *(pending(f"web-{number}", each) for number, each in enumerate(shapes)))
    assert on(placement) == {"b": 1}
    assert not placement.planned
    (left,) = placement.unplaced
    assert "b lacks 2 CPU, with 1 CPU free" in {reason.example for reason in left.reasons}


def test_a_claim_made_for_a_pod_counts_where_its_template_was_deleted() -> None:
    devices = Devices((devices_of("b", 1),), (WHOLE,), (MADE,))
    placement = placed(devices, pending("web-1", WAITING), pending("web-2", claiming("one-gpu")))
    assert on(placement) == {"b": 1}
    (left,) = placement.unplaced
    assert [reason.example for reason in left.reasons] == ["ResourceClaimTemplate/shop/one-gpu does not exist"]


@pytest.mark.parametrize(
    "claims",
    [(), (replace(MADE, owner="uid-of-another", allocated=((DRIVER, "b", "gpu-0"),)),)],
    ids=["not there", "of another pod"],
)
def test_where_a_pod_has_no_claim_of_its_own_yet_its_template_counts(claims: tuple[ResourceClaim, ...]) -> None:
    """The controller makes one."""
    devices = Devices((devices_of("a", 1), devices_of("b", 1)), (WHOLE,), claims, (template(),))
    assert on(placed(devices, pending("web-1", WAITING))) == {"a": 1}
    devices = replace(devices, templates=())
    (left,) = placed(devices, pending("web-1", WAITING)).unplaced
    assert [reason.example for reason in left.reasons] == ["ResourceClaimTemplate/shop/one-gpu does not exist"]


def test_a_claim_that_a_pod_names_beside_having_had_it_made_is_one_claim() -> None:
    devices = Devices((devices_of("a", 1),), (WHOLE,), (MADE,), (template(),))
    placement = placed(devices, pending("web-1", replace(WAITING, resource_claims=(MADE.name,))))
    assert on(placement) == {"a": 1}
    assert not placement.assumptions

"""Passes over atomic requests with `headroom.dev/reserve`: nodes of their own, which nobody else comes to while the request lasts."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from reconciler.model.nodes import HELD_TAINT, Node
from reconciler.model.rules import PlacementRules
from reconciler.settings.settings import Settings
from tests.fakes.embedded import Document, buffer, claim_ref, workload
from tests.fakes.requests import ATOMIC, MADE, RESERVE, BatchShop, pod_template, pods_of, request, request_ref

ROOT = Path(__file__).parents[3]
KEY = "headroom.dev/reserved"
TOLERATION = {"key": KEY, "value": "shop.train", "effect": "NoSchedule"}


def reserving(name: str = "train", count: int = 3, **options: Any) -> Document:
    return request(name, count, class_name=ATOMIC, **RESERVE, **options)


def shop_with(*, tolerations: list[dict[str, str]] | None = None, **options: Any) -> BatchShop:
    """The template of its pods tolerates the taint of nodes that are reserved for `train`."""
    shop = BatchShop(**options)
    shop.cluster.apply(pod_template(tolerations=[TOLERATION] if tolerations is None else tolerations))
    return shop


def consumers(replicas: int, **spec: Any) -> Document:
    return pods_of("train", replicas, own="job", class_name=ATOMIC, cpu="1", tolerations=[TOLERATION], **spec)


def reserved(shop: BatchShop) -> list[str]:
    """Nodes with the taint."""
    return [node.name for node in shop.cluster.view().nodes if taints_of(node)]


def taints_of(node: Node) -> list[str]:
    return [taint.value for taint in node.taints if taint.key == KEY]


def test_its_nodes_are_its_own_though_there_is_room_elsewhere() -> None:
    shop = shop_with()
    shop.sandbox.add_node("free", "m-4x", cpu="3")
    shop.settle(reserving())
    assert shop.conditions()["Provisioned"] == MADE
    (node,) = reserved(shop)
    assert node != "node-free"
    assert shop.held() == [claim for claim in shop.claims() if claim != "free"]


@pytest.mark.parametrize("value", ["true", "false", "TRUE"])
def test_a_parameter_asks_for_it_too(value: str) -> None:
    """Kueue makes requests with parameters and without annotations."""
    shop = shop_with().given(request(count=3, class_name=ATOMIC, parameters={"reserve": value}))
    assert shop.conditions()["Provisioned"] == MADE
    assert len(reserved(shop)) == (value == "true")


def test_while_it_is_reserved_it_has_no_taint_that_its_own_pods_would_avoid() -> None:
    shop = shop_with().given(reserving())
    (name,) = reserved(shop)
    assert HELD_TAINT not in shop.sandbox.node(name).taints
    assert not shop.plan().has_changes


@pytest.mark.parametrize("mode", ["fast", "optimal"])
def test_no_other_demand_shares_a_planned_node_with_it(mode: str) -> None:
    """Two workers fit beside the one on its node, and the buffer has nodes of its own all the same."""
    shop = shop_with(settings=Settings(placement=PlacementRules(check=True, mode=mode)))
    shop.cluster.apply(reserving(count=4))
    shop.cluster.apply(pod_template("any", tolerations=[{"operator": "Exists"}]))
    shop.cluster.apply(buffer(scalableRef=None, podTemplateRef={"name": "any"}, replicas=4))
    plan = shop.plan()
    held = [{holding.demand.kind for holding in item.planned.holdings} for item in plan.node_claims.create]
    assert sorted(map(sorted, held)) == [["CapacityBuffer"]] * 2 + [["ProvisioningRequest"]] * 2
    assert [bool(item.planned.taints) for item in plan.node_claims.create] == [
        "ProvisioningRequest" in kinds for kinds in held
    ]


def test_strangers_do_not_come_and_its_own_pods_do() -> None:
    shop = shop_with().given(reserving())
    (node,) = reserved(shop)
    shop.settle(workload("stranger", replicas=1, cpu="500m"), consumers(2))
    where = shop.sandbox.where()
    own = {name for name, at in where.items() if at == node}
    assert len(own) == 2
    assert all(name.startswith("job") for name in own)
    assert shop.outcome().demand.desired == 1
    assert reserved(shop) == [node]


def test_when_all_its_pods_have_come_the_taint_goes() -> None:
    shop = shop_with().given(reserving())
    shop.settle(consumers(3))
    assert shop.conditions()["BookingExpired"] == ("True", "CapacityBookingConsumed")
    assert reserved(shop) == []
    assert len(shop.claims()) == 1
    assert "Untainted" in shop.sandbox.reasons()


def test_a_request_that_is_deleted_frees_the_nodes_that_its_pods_use() -> None:
    shop = shop_with().given(reserving())
    shop.settle(consumers(1))
    shop.cluster.delete(request_ref())
    shop.settle()
    assert reserved(shop) == []


def test_a_node_of_its_own_stays_reserved_over_a_pass_that_could_not_read_everything() -> None:
    shop = shop_with().given(reserving())
    (node,) = reserved(shop)
    shop.wait(timedelta(minutes=10))
    shop.source.stall("the branch is gone")
    assert shop.plan().node_claims.untaint == ()
    assert reserved(shop) == [node]


def test_a_booking_whose_node_goes_gets_another_of_its_own() -> None:
    """Its pods may be pinned to nodes of its own, so that free room elsewhere is none for it."""
    shop = shop_with().given(reserving())
    (claim,) = shop.claims()
    shop.sandbox.add_node("free", "m-4x", cpu="3")
    shop.cluster.delete(claim_ref(claim))
    shop.settle()
    assert shop.conditions()["Provisioned"] == MADE
    assert len(shop.claims()) == 2
    assert len(shop.held()) == len(reserved(shop)) == 1
    assert shop.held() != ["free"]


def test_pods_that_would_not_tolerate_it_are_told_and_nothing_is_made() -> None:
    shop = shop_with(tolerations=[]).given(reserving())
    assert shop.conditions() == {"Accepted": ("False", "TolerationMissing")}
    assert shop.claims() == []
    message = shop.outcome().conditions[0].message
    assert "tolerations: [{key: headroom.dev/reserved, value: shop.train, effect: NoSchedule}]" in message
    shop.settle(pod_template(tolerations=[TOLERATION]))
    assert shop.conditions()["Provisioned"] == MADE


def test_a_check_reserves_nothing() -> None:
    shop = shop_with(tolerations=[])
    shop.sandbox.add_node("free", "m-4x", cpu="3")
    shop.settle(request(count=3, **RESERVE))
    assert shop.conditions()["Provisioned"] == ("True", "CapacityIsFound")
    assert reserved(shop) == []


def test_a_template_that_leaves_the_taint_out_makes_no_node() -> None:
    """Such nodes would not be its own, and others would be made for ever."""
    shop = shop_with()
    packaged = (ROOT / "templates" / "nodeclaim.yaml.j2").read_text()
    shop.source.commit({"templates/nodeclaim.yaml.j2": packaged.replace("{% if taints %}", "{% if false %}")})
    shop.settle(reserving(), passes=3)
    assert shop.claims() == []
    found = [item for item in shop.plan().findings if item.code == "template-failed"]
    assert "left out spec.taints" in found[0].message
    assert "write it as planned" in found[0].hint

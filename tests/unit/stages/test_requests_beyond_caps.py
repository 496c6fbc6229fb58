"""Passes over atomic requests that a cap is against: for how long it may be, they take nothing from the requests that can be made."""

from __future__ import annotations

from datetime import timedelta

import yaml

from reconciler.settings.settings import CapSettings, PlacementSettings, Settings
from tests.fakes.requests import ATOMIC, BatchShop, pod_template, request

BEYOND = ("False", "BeyondACap")
MADE = ("True", "CapacityIsProvisioned")
RESERVE = {"annotations": {"headroom.dev/reserve": "true"}}
OWN = pod_template("own", tolerations=[{"key": "headroom.dev/reserved", "operator": "Exists"}])


def shop_with(**caps: float) -> BatchShop:
    return BatchShop(settings=Settings(placement=PlacementSettings(check=True), caps=CapSettings(**caps)))  # type: ignore[arg-type]


def ask(shop: BatchShop, name: str, count: int, **options: object) -> None:
    """A second later than what was asked before."""
    shop.sandbox.wait(1)
    shop.cluster.apply(request(name, count, class_name=ATOMIC, **options))  # type: ignore[arg-type]


def test_a_request_for_more_nodes_than_one_may_have_takes_none_of_another_request() -> None:
    """It did: in each pass it took the node that had just been made for the other, for which another one was made then."""
    shop = shop_with(nodes_per_request=3)
    ask(shop, "big", 30)
    ask(shop, "small", 3)
    shop.settle()
    assert shop.conditions("big")["Provisioned"] == BEYOND
    assert shop.conditions("small")["Provisioned"] == MADE
    assert len(shop.claims()) == 1


def test_a_request_that_a_full_pool_has_no_nodes_for_takes_none_of_another_request() -> None:
    shop = shop_with(nodes_per_pool=4)
    ask(shop, "big", 15)
    ask(shop, "small", 3)
    shop.settle()
    assert shop.conditions("big")["Provisioned"] == BEYOND
    assert shop.conditions("small")["Provisioned"] == MADE
    assert len(shop.claims()) == 1


def test_what_shares_a_node_with_a_request_that_is_too_large_has_a_node_of_its_own() -> None:
    shop = shop_with(nodes_per_request=3)
    ask(shop, "big", 10)
    ask(shop, "small", 1)
    shop.settle()
    assert shop.conditions("small")["Provisioned"] == MADE


def test_of_two_that_share_a_node_and_have_no_room_in_the_pool_together_the_older_one_is_made() -> None:
    shop = shop_with(nodes_per_pool=2)
    ask(shop, "z-older", 4)
    ask(shop, "a-younger", 3)
    shop.settle()
    assert shop.conditions("z-older")["Provisioned"] == MADE
    assert shop.conditions("a-younger")["Provisioned"] == BEYOND


def test_what_has_room_on_nodes_that_are_there_is_found_beside_one_that_would_be_too_dear() -> None:
    shop = shop_with(price_per_hour=0.5)
    shop.sandbox.add_node("free", "m-4x", cpu="3")
    ask(shop, "big", 30)
    ask(shop, "small", 3)
    shop.settle()
    assert shop.conditions("big")["Provisioned"] == BEYOND
    assert shop.conditions("small")["Provisioned"] == ("True", "CapacityIsFound")


def test_a_request_for_nodes_of_its_own_beyond_a_cap_is_not_given_others() -> None:
    shop = shop_with(nodes_per_request=1)
    shop.sandbox.add_node("free", "m-4x", cpu="3")
    shop.sandbox.add_node("free-too", "m-4x", cpu="3")
    shop.cluster.apply(OWN)
    ask(shop, "own", 6, template="own", **RESERVE)
    shop.settle()
    assert shop.conditions("own")["Provisioned"] == BEYOND
    assert shop.held() == []


def test_it_says_so_once_in_the_plan_and_is_over_when_its_time_is() -> None:
    shop = shop_with(nodes_per_request=3)
    ask(shop, "big", 30)
    notes = shop.settle().notes
    assert "10 nodes are not made: at most 3 nodes for one request (caps.nodesPerRequest)" in notes
    outcome = shop.outcome("big")
    assert (outcome.on_existing, outcome.on_new, outcome.unplaced) == (0, 0, 30)
    assert [reason.cause for reason in outcome.unplaced_reasons] == ["beyond a cap"]
    shop.wait(timedelta(minutes=10))
    shop.settle()
    assert shop.conditions("big")["Failed"] == ("True", "Expired")
    assert shop.claims() == []


def test_a_plan_of_several_requests_from_the_repository_foresees_what_the_passes_make() -> None:
    requests = [request("big", 30, class_name=ATOMIC)] + [request(f"small-{n}", 3, class_name=ATOMIC) for n in (1, 2)]
    settings = Settings(placement=PlacementSettings(check=True), caps=CapSettings(nodes_per_request=3))
    shop = BatchShop(settings=settings, files={"requests.yaml": yaml.safe_dump_all(requests)})
    foreseen = len(shop.plan().node_claims.create)
    shop.settle()
    assert foreseen == len(shop.claims()) == 2

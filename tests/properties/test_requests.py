"""ProvisioningRequests under random histories: kills between any two writes, stock that comes and goes, pods of others."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reconciler.model.changes import Write, WriteResult
from reconciler.model.nodes import ATTEMPT_LABEL
from reconciler.model.provisioning_requests import RESERVED_TAINT, reserved_taints
from reconciler.model.rules import Caps, PlacementRules
from reconciler.ports import Cluster
from reconciler.settings.settings import Settings
from tests.fakes.embedded import Document, node_pool, workload
from tests.fakes.requests import ATOMIC, CHECK, MADE, RESERVE, BatchShop, pod_template, request, request_ref

WRITES = 9
"""Of the daemon from a request for three nodes to its booking: the inventory, three NodeClaims, statuses."""


class KilledError(Exception):
    """The process ended here."""


class Mortal:
    """A cluster whose client is killed at the write of that number: before it is sent, or before its answer comes."""

    def __init__(self, cluster: Cluster, number: int, *, sent: bool) -> None:
        self._cluster = cluster
        self._left = number
        self._sent = sent

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cluster, name)

    def write(self, write: Write, *, dry_run: bool = False) -> WriteResult:
        if dry_run:
            return self._cluster.write(write, dry_run=True)
        self._left -= 1
        if self._left:
            return self._cluster.write(write)
        if self._sent:
            self._cluster.write(write)
        raise KilledError


@contextmanager
def killed(shop: BatchShop, number: int, *, sent: bool) -> Iterator[None]:
    """A process that is killed at its write of that number, and then another in its place."""
    alive = shop.cluster
    shop.cluster = Mortal(alive, number, sent=sent)  # type: ignore[assignment]
    shop.restart()
    yield
    shop.cluster = alive
    shop.restart()


def settle_over_a_kill(shop: BatchShop, number: int, *, sent: bool, passes: int = 8) -> None:
    """The other goes on until nothing changes."""
    with killed(shop, number, sent=sent), pytest.raises(KilledError):
        shop.settle(passes=passes, seconds=2)
    shop.settle()


@pytest.mark.parametrize("sent", [False, True])
@pytest.mark.parametrize("number", range(1, WRITES + 1))
def test_a_kill_at_any_write_ends_in_the_same(number: int, *, sent: bool) -> None:
    shop = BatchShop()
    shop.cluster.apply(request(count=9, class_name=ATOMIC))
    settle_over_a_kill(shop, number, sent=sent)
    assert shop.conditions()["Provisioned"] == MADE
    assert len(shop.claims()) == len(shop.held()) == 3
    assert set(shop.attempts()) == {"1"}


@pytest.mark.parametrize("sent", [False, True])
@pytest.mark.parametrize("number", range(1, 6))
def test_a_kill_at_any_write_that_makes_good_what_a_stranger_took_ends_in_the_same(number: int, *, sent: bool) -> None:
    """The writes: the record, the NodeClaim, its launch, the status, the marks of the strangers' node."""
    shop = BatchShop(pool=node_pool(consolidate_after="0s")).given(request(count=9, class_name=ATOMIC))
    node = shop.cluster.view().nodes[0].name
    shop.cluster.apply(workload("stranger", cpu="3", nodeSelector={"kubernetes.io/hostname": node}))
    settle_over_a_kill(shop, number, sent=sent)
    assert shop.conditions()["Provisioned"] == MADE
    assert len(shop.claims()) == 4
    assert len(shop.held()) == 3
    assert set(shop.attempts()) == {"1"}
    shop.cluster.delete(request_ref())
    shop.settle(passes=20)
    assert len(shop.claims()) == 1, "the stranger's"


@pytest.mark.parametrize("number", range(1, 8))
def test_a_kill_while_an_attempt_is_rolled_back_leaves_nothing(number: int) -> None:
    shop = BatchShop(pool=node_pool(consolidate_after="1h"))
    shop.cluster.set_stock("m-4x", "zone-b", "on-demand", available=False)
    shop.cluster.apply(pod_template("far", nodeSelector={"topology.kubernetes.io/zone": "zone-b"}))
    document = request(count=6, class_name=ATOMIC, parameters={"ValidUntilSeconds": "120"})
    document["spec"]["podSets"].append({"podTemplateRef": {"name": "far"}, "count": 3})
    shop.settle(document, passes=2, seconds=10)
    with killed(shop, number, sent=number % 2 == 0), suppress(KilledError):
        shop.settle(passes=12)
    shop.wait(timedelta(minutes=2))
    shop.settle()
    assert shop.claims() == []
    assert shop.conditions()["Failed"] == ("True", "Expired")


OWN = pod_template("own", tolerations=[{"key": RESERVED_TAINT, "operator": "Exists"}])


def reserved(shop: BatchShop) -> set[str]:
    """Nodes that are for the pods of one request alone."""
    return {node.name for node in shop.cluster.view().nodes if reserved_taints(node.taints)}


@pytest.mark.parametrize("sent", [False, True])
@pytest.mark.parametrize("number", range(1, 6))
def test_a_kill_while_a_reserved_booking_ends_leaves_no_node_reserved(number: int, *, sent: bool) -> None:
    shop = BatchShop(pool=node_pool(consolidate_after="1h")).given(
        OWN, request(count=6, class_name=ATOMIC, template="own", **RESERVE)
    )
    assert len(reserved(shop)) == 2
    shop.wait(timedelta(minutes=10))
    settle_over_a_kill(shop, number, sent=sent, passes=1)
    assert reserved(shop) == set()
    assert shop.conditions()["BookingExpired"][0] == "True"


STEP = st.sampled_from(["pass", "pass", "wait", "stock", "stranger", "restart", "request", "check", "reserve"])


def take(shop: BatchShop, step: str, number: int, seed: int) -> None:
    if step == "pass":
        shop.run()
        shop.sandbox.wait(2)
    elif step == "wait":
        shop.sandbox.wait(40)
    elif step == "stock":
        zone = ("zone-a", "zone-b")[(number + seed) % 2]
        shop.cluster.set_stock("m-4x", zone, "on-demand", available=(number * 7 + seed) % 3 == 0)
    elif step == "stranger":
        shop.cluster.apply(workload(f"stranger-{number}", cpu="2"))
    elif step == "restart":
        shop.restart()
    elif step == "reserve":
        document = request(f"reserve-{number}", 1 + (number + seed) % 7, class_name=ATOMIC, template="own", **RESERVE)
        shop.cluster.apply(document)
    else:
        kind = ATOMIC if step == "request" else CHECK
        shop.cluster.apply(request(f"{step}-{number}", count=1 + (number + seed) % 7, class_name=kind))


@given(steps=st.lists(STEP, min_size=4, max_size=24), seed=st.integers(0, 7))
@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_all_or_nothing_whatever_happens(steps: list[str], seed: int) -> None:
    """Each placement is checked by independent code, so that no room counts twice. In the end nothing is left of what failed."""
    shop = BatchShop(pool=node_pool(limits={"cpu": "28"}, consolidate_after="1h"))
    shop.cluster.apply(OWN)
    for number, step in enumerate(steps):
        take(shop, step, number, seed)
    shop.settle(passes=3, seconds=10)
    shop.wait(timedelta(minutes=12))
    shop.settle(passes=5)
    # A node that a check has booked meanwhile is Karpenter's to remove once that booking is over.
    left_over = made_for_unused(shop)
    shop.wait(timedelta(minutes=12))
    shop.settle(passes=5)
    failed = set()
    for name in (f"{step}-{number}" for number, step in enumerate(steps) if step in {"request", "check", "reserve"}):
        conditions = shop.conditions(name)
        ends = [kind for kind in ENDS if conditions.get(kind, ("",))[0] == "True"]
        assert len(ends) <= 1, conditions
        assert (ends == ["Failed"]) == (
            name.startswith(("request", "reserve")) and conditions["Provisioned"][0] == "False"
        ), conditions
        failed |= {uid_of(shop, name)} if ends == ["Failed"] else set()
    assert not failed & left_over
    assert reserved(shop) == set()
    before = shop.claims()
    shop.run()
    assert shop.claims() == before


ENDS = ("Failed", "BookingExpired", "CapacityRevoked")


def made_for_unused(shop: BatchShop) -> set[str]:
    """The uids of requests for which nodes were made that neither pods nor anybody else has now."""
    view = shop.cluster.view()
    in_use = {pod.node_name for pod in view.pods}
    return {
        (machine.node_claim.label(ATTEMPT_LABEL) or "").partition(".")[0]
        for machine in view.machines
        if machine.node_claim is not None and machine.name not in in_use
        if machine.node_claim.annotation("headroom.dev/held") != "true"
    }


def uid_of(shop: BatchShop, name: str) -> str:
    live = shop.cluster.live(request_ref(name))
    return str(live["metadata"]["uid"])


POD = st.sampled_from(["500m", "1", "1500m", "3"])
ASKED = st.lists(st.tuples(st.integers(1, 20), POD, st.booleans()), min_size=1, max_size=4)
CAPS = st.sampled_from([{"nodes_per_pool": 4}, {"price_per_hour": 0.9}, {}])


@given(asked=ASKED, caps=CAPS, limit=st.sampled_from(["1000", "12"]))
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_a_plan_foresees_what_passes_make_of_new_requests(
    asked: list[tuple[int, str, bool]], caps: dict[str, Any], limit: str
) -> None:
    """From the repository: the first pass makes the objects, the second the nodes, and no other pass makes more."""
    documents: list[Document] = []
    for number, (count, cpu, reserves) in enumerate(asked):
        tolerations = [{"key": RESERVED_TAINT, "operator": "Exists"}] if reserves else []
        documents.append(pod_template(f"worker-{number}", cpu=cpu, tolerations=tolerations))
        metadata = RESERVE if reserves else {}
        documents.append(request(f"r-{number}", count, class_name=ATOMIC, template=f"worker-{number}", **metadata))
    shop = BatchShop(
        files={"requests.yaml": yaml.safe_dump_all(documents)},
        pool=node_pool(limits={"cpu": limit}),
        settings=Settings(placement=PlacementRules(check=True), caps=Caps(**caps)),
    )
    foreseen = len(shop.plan().node_claims.create)
    shop.settle(passes=2, seconds=0)
    assert len(shop.claims()) == foreseen
    shop.settle(passes=4)
    assert len(shop.claims()) == foreseen

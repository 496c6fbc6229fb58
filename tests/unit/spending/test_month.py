"""Costs over time, held to an oracle that steps through every minute, over nights on which the clocks change."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from reconciler.demand.combine import demands
from reconciler.demand.schedules import follow_schedules
from reconciler.manifests.repository.declared import read
from reconciler.model.buffers import Dialect
from reconciler.model.declared import Declared
from reconciler.model.demand import Demand
from reconciler.model.nodes import NodePool
from reconciler.model.placement import Placement
from reconciler.model.refs import ObjectRef
from reconciler.model.view import ClusterView
from reconciler.placement.cache import Cache
from reconciler.placement.place import place
from reconciler.placement.problem import PlacementOptions, Problem
from reconciler.plan.facts import Facts
from reconciler.plan.node_pools.static_pools import cheapest_admitted
from reconciler.spending import month
from reconciler.spending.month import Basis, spending
from tests.builders import buffer_ref, instance_type, node_pool
from tests.manifests import buffer, pod_template, schedule

AUTUMN = datetime(2026, 10, 24, 12, 0, tzinfo=UTC)
SPRING = datetime(2027, 3, 27, 12, 0, tzinfo=UTC)
TYPES = (
    instance_type("small", cpu="4", memory="16Gi", price=0.2),
    instance_type("large", cpu="16", memory="64Gi", price=0.7),
)
POOL = node_pool("general")


DAY = schedule("day", 30, "hours: 1, minutes: 30", "hours: 9", default=3, zone="Europe/Berlin")
BLINK = schedule("blink", 1, "hours: 2, minutes: 15", "hours: 2, minutes: 17")
WEB = buffer("web", "replicas: 3", replicas_from="day", lead_time="10m")
BRIEF = buffer("brief", "replicas: 50", active_during="blink")


def declared(day: str = DAY, brief: str = BRIEF, pools: tuple[NodePool, ...] = ()) -> Declared:
    found = read({"a.yaml": (day + BLINK + pod_template("web", "cpu: 1, memory: 1Gi") + WEB + brief).encode()})
    assert not [item for item in found.findings if item.severity == "error"]
    return replace(found, node_pools=(POOL, *pools))


def asked(capacity: Declared, now: datetime) -> tuple[Declared, tuple[Demand, ...]]:
    effective = follow_schedules(capacity, capacity, {}, now).effective
    return effective, demands(effective, ClusterView(), dialect=Dialect.KARPENTER, instance_types=TYPES)[0]


def placed(effective: Declared, found: tuple[Demand, ...]) -> Placement:
    return place(Problem(ClusterView(), effective.node_pools, TYPES, found), cache=Cache())


def basis(capacity: Declared, now: datetime) -> Basis:
    effective, found = asked(capacity, now)
    facts = Facts(now, effective=effective, instance_types=TYPES, demands=found)
    return Basis(facts, ClusterView(), Dialect.KARPENTER, PlacementOptions(), placed(effective, found))


def oracle(capacity: Declared, start: datetime, span: timedelta) -> float:
    """The same, minute by minute. A placement is looked up again only for the very same demands and pools."""
    known: dict[tuple[object, ...], float] = {}
    total = 0.0
    for minute in range(int(span / timedelta(minutes=1))):
        effective, found = asked(capacity, start + timedelta(minutes=minute))
        key = (*((demand.ref, demand.desired) for demand in found), *(pool.replicas for pool in effective.node_pools))
        if key not in known:
            static = [pool for pool in effective.node_pools if pool.replicas is not None]
            nodes = sum(planned.price for planned in placed(effective, found).planned)
            fixed = sum((cheapest_admitted(pool, TYPES)[1] or 0) * (pool.replicas or 0) for pool in static)
            known[key] = nodes + fixed
        total += known[key] / 60
    return total


@pytest.mark.parametrize("start", [AUTUMN, SPRING], ids=["autumn", "spring"])
def test_costs_are_those_of_every_minute(start: datetime) -> None:
    capacity, span = declared(), timedelta(hours=24)
    assert spending(basis(capacity, start), span).total == pytest.approx(oracle(capacity, start, span), rel=1e-9)


def test_a_static_pool_costs_what_its_schedule_says() -> None:
    pool = node_pool("fixed", replicas=2, annotations=(("headroom.dev/replicas-from", "shop/day"),))
    capacity, span = declared(pools=(pool,)), timedelta(hours=30)
    found = spending(basis(capacity, AUTUMN), span)
    ref = ObjectRef("autoscaling.karpenter.sh", "MetricsProducer", "shop", "day")
    # Of 30 hours from Saturday noon, 30 replicas last from 1:30 CEST until 9:00 CET, an hour longer than the clock tells.
    assert {(row.value, row.hours) for row in found.windows if row.schedule == ref} == {(30, 8.5), (3, 21.5)}
    assert found.of_pools()["fixed"] == pytest.approx((30 * 8.5 + 3 * 21.5) * 0.2)


def test_a_schedule_costs_the_same_whatever_the_day_it_is_looked_at() -> None:
    """At one instant it is +$0 on a Sunday and thousands on a Monday."""
    office = schedule("day", 30, "weekdays: Mon, hours: 8", "weekdays: Fri, hours: 18", default=3, zone="Europe/Berlin")
    sunday, monday = datetime(2026, 11, 22, 12, tzinfo=UTC), datetime(2026, 11, 23, 12, tzinfo=UTC)
    totals = [spending(basis(declared(office), now), timedelta(days=28)).total for now in (sunday, monday)]
    assert totals[0] == pytest.approx(totals[1])


def test_a_buffer_that_is_up_two_minutes_a_day_costs_two_minutes_a_day() -> None:
    rows = spending(basis(declared(), AUTUMN)).of_demands()
    cost, chunk_hours = rows[buffer_ref("brief")]
    assert chunk_hours == pytest.approx(50 * 30 * 2 / 60)
    assert 0 < cost < 10


def test_states_beyond_the_bound_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(month, "MOST_STATES", 2)
    found = spending(basis(declared(), AUTUMN))
    assert found.notes == ("1 of 3 states of the schedules, 1.0 of 720 hours, are priced as the mean of the others",)


def test_a_nodes_price_is_shared_by_what_its_chunks_request() -> None:
    day = schedule("day", 30, "hours: 1, minutes: 30", "hours: 9", default=2, zone="Europe/Berlin")
    found = spending(basis(declared(day, buffer("brief", "replicas: 1")), AUTUMN), timedelta(hours=1))
    shares = found.of_demands()
    web, brief = shares[buffer_ref("web")][0], shares[buffer_ref("brief")][0]
    assert web == pytest.approx(2 * brief)
    assert web + brief == pytest.approx(found.total)


def test_a_request_counts_for_as_long_as_it_is_booked() -> None:
    plain = basis(declared(), AUTUMN)
    job = ObjectRef("autoscaling.x-k8s.io", "ProvisioningRequest", "shop", "train")
    request = replace(next(item for item in plain.facts.demands if item.ref == buffer_ref("web")), ref=job)
    asked_too = (*plain.facts.demands, request)
    facts = replace(plain.facts, demands=asked_too)
    found = spending(replace(plain, facts=facts, placement=placed(facts.effective, asked_too)))
    cost, chunk_hours = found.of_demands()[job]
    assert cost > 0
    assert chunk_hours == pytest.approx((request.desired or 0) / 6)
    assert "booked" in found.notes[0]
    assert found.total - spending(plain).total == pytest.approx(cost, rel=0.5)

"""A price "a month" of nodes that nobody pays for a month says so."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler.model.changes import DemandOutcome, NodeClaimChanges, NodeClaimCreation, Plan
from reconciler.model.demand import REQUEST_KIND
from reconciler.model.placement import Holding
from reconciler.model.refs import ObjectRef
from reconciler.report.plan.document import plan_document
from reconciler.report.plan.page import plan_page
from reconciler.report.plan.rows import page_text
from tests.builders import buffer_ref, demand
from tests.plans import NOW, planned


def request(name: str) -> ObjectRef:
    return ObjectRef("autoscaling.x-k8s.io", REQUEST_KIND, "research", name)


def plan(*nodes: tuple[ObjectRef, ...]) -> Plan:
    """Each new node holds one chunk of each of these, at $0.20 an hour."""
    creations = [
        NodeClaimCreation(f"general-{number}", planned(*(Holding(ref, 0, 1) for ref in refs)))
        for number, refs in enumerate(nodes)
    ]
    return Plan(None, NOW, node_claims=NodeClaimChanges(create=tuple(creations)))


def told(of: Plan) -> list[str]:
    return [line.strip() for line in page_text(plan_page(of, cluster="staging")).splitlines() if "paid only" in line]


def test_nodes_for_a_request_are_paid_only_while_it_is_booked() -> None:
    """A booking of an hour was told as $298,771 a month."""
    booked = plan((request("training"),), (request("training"),), (buffer_ref("web"),))
    words = (
        "$0.40/h of the new nodes, $288.00 over 30 days, is for ProvisioningRequest/research/training: "
        "paid only while the capacity is booked"
    )
    assert told(booked) == [words]
    assert words in plan_document(booked)["cost"]["assumptions"]
    assert words in plan_page(booked, cluster="staging")["assumptions"]


def test_of_a_node_that_a_buffer_shares_only_a_part_is_the_requests() -> None:
    """The example's request had most of two nodes, of which nothing was said."""
    (line,) = told(plan((request("training"), buffer_ref("web"))))
    assert line.startswith(
        "$0.10/h of the new nodes, $72.00 over 30 days, is for ProvisioningRequest/research/training:"
    )


def test_of_many_requests_the_first_are_named() -> None:
    (line,) = told(plan(tuple(request(f"r{number}") for number in range(5))))
    names = (
        "ProvisioningRequest/research/r0, ProvisioningRequest/research/r1, ProvisioningRequest/research/r2 and 2 more"
    )
    assert f"is for {names}:" in line


@pytest.mark.parametrize("one_shot", [False, True])
def test_nodes_of_a_one_shot_buffer_are_paid_until_it_is_used(one_shot: bool) -> None:  # noqa: FBT001 - the case
    outcome = DemandOutcome(replace(demand("web", count=1), one_shot=one_shot), 0, 1, 0)
    lines = told(replace(plan((outcome.demand.ref,)), demands=(outcome,)))
    assert [line.partition(": ")[2] for line in lines] == (["paid only until the capacity is used"] if one_shot else [])

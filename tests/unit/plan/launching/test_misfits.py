"""Nodes that took none of the chunks they were made for: what is judged of them, and when more like them are made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from reconciler.model.nodes import INITIALIZED_LABEL, REGISTERED_LABEL, Node
from reconciler.model.quantity import Resources
from reconciler.model.requirements import Taint
from reconciler.model.rules import Caps
from reconciler.plan.bins import Bin, names_of
from reconciler.plan.facts import Facts, PlanRules
from reconciler.plan.launching.back_offs import LaunchRecord
from reconciler.plan.launching.caps import Capped
from reconciler.plan.launching.misfits import MISFITS_KEY, Misfit, without_misfits
from reconciler.plan.plan import make_plan
from tests.unit.plan.worlds import NOW, chunks, claim, pairs, planned

FIRST, *OTHERS = names_of(planned(), 10)
UP = {REGISTERED_LABEL: "true", INITIALIZED_LABEL: "true"}


def at(minutes: float) -> datetime:
    return NOW + timedelta(minutes=minutes)


def came_up(number: int, *, asked: float, up: float, fits: bool) -> Bin:
    """A node made as the others are. fits: whether it holds a chunk, and otherwise has a taint that no chunk tolerates."""
    of_it = claim(
        (FIRST, *OTHERS)[number],
        node_name=f"node-{number}",
        created=at(asked),
        conditions={"Initialized": "True"},
        changed={"Initialized": at(up)},
    )
    taints = () if fits else (Taint("agent", "", "NoSchedule"),)
    return Bin(
        Node(f"node-{number}", Resources(), pairs(UP), taints=taints), of_it, chunks=(chunks(1),) if fits else ()
    )


def judged(
    minutes: float, known: Mapping[str, Misfit], bins: Sequence[Bin], wanted: int = 3
) -> tuple[int, dict[str, Misfit]]:
    """How many of the wanted nodes are made, and what is remembered."""
    waiting = Capped(tuple(planned() for _ in range(wanted)))
    capped, known = without_misfits(waiting, known, bins, at(minutes), leaving=(), apart=())
    return len(capped.kept), known


def test_one_node_shows_whether_it_is_better_and_then_the_others_are_made_at_once() -> None:
    old = came_up(0, asked=-2, up=0, fits=False)
    made, known = judged(0.1, {}, [old])
    assert (made, known[FIRST].failures) == (0, 1)
    made, known = judged(1.2, known, [old])
    assert (made, set(known)) == (1, {FIRST})
    probe = came_up(1, asked=1.2, up=3, fits=True)
    assert judged(3.1, known, [old, probe], wanted=2) == (2, {})
    second = came_up(2, asked=3.1, up=5, fits=True)
    assert judged(5.1, {}, [old, probe, second], wanted=1) == (1, {})


def test_nodes_that_were_asked_for_together_are_one_failure() -> None:
    bins, known = [], dict[str, Misfit]()
    for number in range(7):
        bins.append(came_up(number, asked=-2, up=number / 12, fits=False))
        made, known = judged(number / 12 + 0.01, known, bins)
        assert (made, known[FIRST].failures) == (0, 1)


def test_nodes_that_are_not_made_again_use_up_no_cap() -> None:
    known = {FIRST: Misfit("node node-0 came up", 5, at(-5), at(30))}
    good = replace(planned(chunks(1, "db")), instance_types=("m-8x",))
    placement = replace(Facts(NOW).placement, planned=(planned(), planned(), good))
    facts = Facts(NOW, placement=placement, launches=LaunchRecord(misfits=known))
    plan = make_plan(facts, PlanRules(caps=Caps(new_nodes_per_pass=1)))
    assert [creation.planned.instance_types for creation in plan.node_claims.create] == [("m-8x",)]
    assert MISFITS_KEY in plan.records

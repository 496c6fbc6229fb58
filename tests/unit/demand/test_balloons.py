"""From placeholders to balloon pods and back: the capacity is held until the other has it."""

from __future__ import annotations

from dataclasses import replace

from reconciler.demand.buffers import buffer_demands
from reconciler.demand.dialect import Dialect
from reconciler.demand.pods import leaving_balloons, pending_demands, without_balloons, without_waiting_balloons
from reconciler.model.buffers import balloon_ref
from reconciler.model.declared import Declared
from reconciler.model.demand import Demand
from reconciler.model.pods import Pod
from reconciler.model.view import ClusterView, LiveObject
from tests.builders import buffer, buffer_ref, deployment, pod, shape

BALLOON = replace(
    shape(labels={"headroom.dev/balloon": balloon_ref(buffer_ref()).name}), priority_class_name="headroom-balloon"
)
FULL = {"type": "Provisioning", "status": "True"}
HELD = LiveObject(
    buffer_ref(),
    {"metadata": {"generation": 1}, "status": {"conditions": [FULL]}},
    {"headroom": frozenset({"status.conditions.Provisioning"})},
)


def ask(*pods: Pod, asked: str = "balloon", live: LiveObject | None = HELD) -> Demand:
    one = replace(buffer(), annotations=(("headroom.dev/fulfilment", asked),))
    declared = Declared(buffers=(one,), workloads=(deployment(),))
    view = ClusterView(pods=pods, objects={} if live is None else {live.ref: live})
    (demand,), findings = buffer_demands(declared, view, dialect=Dialect.KARPENTER)
    assert findings == ()
    return demand


def bound(count: int) -> tuple[Pod, ...]:
    return tuple(pod(f"b-{number}", node="n", pod_shape=BALLOON) for number in range(count))


def held(demand: Demand) -> tuple[int, bool, bool]:
    return (sum(group.count for group in demand.groups), demand.holds_nodes, demand.opens_nodes)


def test_headroom_holds_what_is_not_yet_balloons() -> None:
    assert held(ask()) == (3, True, False)
    assert held(ask(*bound(1), pod("waiting", pod_shape=BALLOON))) == (2, True, False)
    assert held(ask(*bound(3))) == (0, False, False)


def test_a_new_buffer_holds_no_node_for_its_balloons() -> None:
    """Its chunks only look for the room that the pods will take."""
    assert held(ask(live=None)) == (3, False, False)


def test_once_there_its_balloons_may_be_pushed_out_without_a_hold() -> None:
    told = {"type": "Fulfilment", "status": "True", "reason": "BalloonPods"}
    body = {"metadata": {"generation": 1}, "status": {"conditions": [FULL, told]}}
    assert held(ask(*bound(1), live=replace(HELD, body=body))) == (2, False, False)
    waiting = pod("waiting", pod_shape=BALLOON)
    assert held(ask(*bound(1), waiting, live=replace(HELD, body=body))) == (1, False, False)


def test_balloons_that_go_leave_their_room_to_the_chunks() -> None:
    view = ClusterView(pods=(*bound(1), pod("waiting", pod_shape=BALLOON), pod("other", node="n")))
    back = (ask(asked="placeholder"),)
    leaving = leaving_balloons(back)
    assert [item.name for item in without_balloons(view, leaving).pods] == ["other"]
    waiting = pending_demands(view, include_pending=False)
    assert [item.ref.name for item in waiting] == ["waiting"]
    assert without_waiting_balloons((*waiting, *back), view, leaving) == back


def test_balloons_that_stay_are_pods_like_any_other() -> None:
    view = ClusterView(pods=bound(1))
    assert leaving_balloons((ask(),)) == frozenset()
    assert without_balloons(view, frozenset()) is view

"""What is said of a launch that gave no node, by what comes of its chunks."""

from __future__ import annotations

import pytest

from reconciler.model.placement import Unplaced, UnplacedReason
from reconciler.plan.launching.back_offs import (
    NOT_AVAILABLE,
    BackOff,
    BackOffRules,
    Launch,
    LaunchRecord,
    Offered,
    stock_outs,
)
from tests.builders import buffer_ref, demand
from tests.unit.plan.worlds import NOW

OFFERED = Offered(("m-4x",), ("zone-a",), ("on-demand",))
VANISHED = LaunchRecord(
    back_offs=(BackOff(OFFERED, 1, NOW, NOW + BackOffRules().first),),
    vanished={"general-x": Launch(OFFERED, NOW, "1 of CapacityBuffer/shop/web")},
)


@pytest.mark.parametrize(
    ("cause", "said"),
    [
        (NOT_AVAILABLE, "tried again at 12:03:00 UTC"),
        ("NodePool not ready", "there is no other place for its chunks now"),
        (None, "nothing is needed in its place"),
    ],
)
def test_what_comes_of_chunks_that_no_other_node_is_asked_for(cause: str | None, said: str) -> None:
    reasons = () if cause is None else (UnplacedReason(cause, 1, ""),)
    unplaced = [Unplaced(buffer_ref("web"), 0, 1, reasons)] if reasons else []
    (missed,) = stock_outs(VANISHED, [demand("web")], (), unplaced, NOW)
    assert missed.message == f"NodeClaim general-x gave no node (m-4x in zone-a as on-demand): {said}"

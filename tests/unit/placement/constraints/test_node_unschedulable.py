"""Nodes that are still coming up, in words."""

from __future__ import annotations

import pytest

from reconciler.placement.batches import Batch
from reconciler.placement.constraints.node_unschedulable import NodeReadiness


@pytest.mark.parametrize(
    ("bins", "words"),
    [
        ([0], "a is not ready yet"),
        ([0, 1], "a and 1 other are not ready yet"),
        ([0, 1, 2], "a and 2 others are not ready yet"),
    ],
)
def test_the_first_is_named_and_the_others_are_counted(bins: list[int], words: str) -> None:
    """It was `a and 1 others are`."""
    rule = NodeReadiness(["a", "b", "c"], [True, True, True])
    batch: Batch = None  # type: ignore[assignment]  # the words do not depend on it
    assert rule.reason(batch, bins) == words

"""What `headroom snapshot` says that it has captured."""

from __future__ import annotations

from reconciler.cli.snapshot import found_words


def test_one_of_a_kind_is_not_told_as_many() -> None:
    """It was `1 deployments, 1 nodepools`."""
    counts = {"nodes": 1_200, "nodepools": 1, "priorityclasses": 1, "storageclasses": 2, "pods": 0}
    assert found_words(counts) == "1,200 nodes, 1 nodepool, 1 priorityclass, 2 storageclasses"

"""Adds taints to a node or removes them. A patch of a node must have the whole list."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from reconciler.model.requirements import Taint


def with_taints(node: Mapping[str, Any], wanted: Iterable[tuple[Taint, bool]]) -> list[dict[str, Any]]:
    """The node's taints, with those wanted (True) added and those unwanted (False) removed. Others stay, in order.

    There is one taint for each key and effect, as the API server requires.
    """
    taints: list[dict[str, Any]] = [dict(item) for item in (node.get("spec") or {}).get("taints") or ()]
    for taint, is_wanted in wanted:
        there = [item for item in taints if (item.get("key"), item.get("effect")) == (taint.key, taint.effect)]
        if is_wanted and not there:
            taints.append({"key": taint.key, **({"value": taint.value} if taint.value else {}), "effect": taint.effect})
        elif not is_wanted:
            taints = [item for item in taints if item not in there]
    return taints

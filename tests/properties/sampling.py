"""Drawing with Hypothesis: strategies that are made once, and values that are always the same ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

Value = TypeVar("Value")
_MADE: dict[tuple[Any, ...], st.SearchStrategy[Any]] = {}


def sampled_from(values: Sequence[Value]) -> st.SearchStrategy[Value]:
    """`st.sampled_from`, made once for equal values. Those that cannot be hashed are looked over each time.

    Hypothesis looks every strategy over before it draws from it: where many are made within a draw that took half of its time.
    """
    key = tuple((type(value), value) for value in values)
    try:
        made = _MADE.get(key)
    except TypeError:
        return st.sampled_from(values)
    if made is None:
        made = _MADE[key] = st.sampled_from(values)
    return made


def drawn(values: st.SearchStrategy[Value], count: int) -> tuple[Value, ...]:
    """So many of them, the same ones in every run."""
    found: list[Value] = []

    @settings(
        max_examples=count,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(value=values)
    def collect(value: Value) -> None:
        found.append(value)

    collect()
    return tuple(found)

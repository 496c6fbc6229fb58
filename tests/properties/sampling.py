"""`st.sampled_from`, made once for equal values.

Hypothesis looks every strategy over before it draws from it: where many are made within a draw that took half of its time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from hypothesis import strategies as st

Value = TypeVar("Value")
_MADE: dict[tuple[Any, ...], st.SearchStrategy[Any]] = {}


def sampled_from(values: Sequence[Value]) -> st.SearchStrategy[Value]:
    """One of the values. Those that cannot be hashed are looked over each time."""
    key = tuple((type(value), value) for value in values)
    try:
        made = _MADE.get(key)
    except TypeError:
        return st.sampled_from(values)
    if made is None:
        made = _MADE[key] = st.sampled_from(values)
    return made

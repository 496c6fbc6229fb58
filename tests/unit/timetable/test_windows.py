"""Arithmetic on spans, against the same done minute by minute."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from reconciler.timetable.windows import Edges, is_within, union

MOST = 40
POINTS = st.lists(st.integers(0, MOST), unique=True, max_size=12).map(sorted)
SPANS = POINTS.map(lambda points: np.array(points[: len(points) // 2 * 2], np.int64))


def minutes(edges: Edges) -> set[int]:
    pairs = zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True)
    return {minute for begin, end in pairs for minute in range(begin, end)}


@given(spans=st.lists(SPANS, min_size=1, max_size=4))
def test_a_union_is_open_whenever_one_of_them_is(spans: list[Edges]) -> None:
    found = union(spans)
    assert minutes(found) == set().union(*map(minutes, spans))
    assert (np.diff(found) > 0).all()


@given(inner=SPANS, outer=SPANS)
def test_spans_are_within_others(inner: Edges, outer: Edges) -> None:
    assert is_within(inner, outer) == (minutes(inner) <= minutes(outer))

"""Sizes of buffers hold to their rule for any numbers."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.demand.size import Base, limit_count, percentage_count, size_of
from reconciler.model.buffers import SHARES_KEY, Dialect, RememberedShare
from reconciler.model.quantity import Resources
from reconciler.model.remembered import records_of, remembered
from tests.builders import buffer

amounts = st.integers(1, 10_000)
counts = st.one_of(st.none(), st.integers(0, 500))
names = st.sampled_from(["cpu", "memory", "example.com/gpu"])
resource_lists = st.dictionaries(names, amounts, min_size=1)


@settings(deadline=None)
@given(counts, counts, st.integers(0, 500), st.one_of(st.none(), resource_lists), st.sampled_from(list(Dialect)))
def test_a_size_is_the_larger_wish_within_the_limits(
    replicas: int | None, percentage: int | None, base: int, limits: dict[str, int] | None, dialect: Dialect
) -> None:
    asked = Resources.of({"cpu": 100, "memory": 300})
    one = buffer(
        replicas=replicas, percentage=percentage, limits=None if limits is None else tuple(sorted(limits.items()))
    )
    count = size_of(one, asked, Base(base, "Deployment/shop/web"), dialect).count
    if count is None:
        assert dialect is Dialect.CLUSTER_AUTOSCALER
        return
    wishes = [wish for wish in (replicas, None if percentage is None else percentage_count(base, percentage)) if wish]
    most = None if limits is None else limit_count(asked, limits.items())
    if most is not None:
        assert count <= most
    if wishes:
        assert count == min([max(wishes)] + ([] if most is None else [most]))


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 400), st.integers(0, 30)), min_size=1), st.integers(0, 900))
def test_a_share_grows_at_once_and_never_shrinks_sooner_than_it_may(steps: list[tuple[int, int]], wait: int) -> None:
    """Each step: seconds since the last, and how many chunks the share is then."""
    shrink_after = timedelta(seconds=wait)
    now = datetime(2026, 1, 1, tzinfo=UTC)
    record = RememberedShare("rule", steps[0][1])
    last, ended = steps[0][1], [(now, 0)]
    for seconds, chunks in steps:
        now += timedelta(seconds=seconds)
        before = record.size
        ended.append((now, last))
        last = chunks
        record = record.after(chunks, now, shrink_after)
        assert chunks <= record.size <= max(before, chunks)
        assert record.size >= max((share for end, share in ended if now - end < shrink_after), default=0)
        assert record.after(chunks, now, shrink_after) == record
        assert remembered(records_of(SHARES_KEY, {"shop/web": record}), SHARES_KEY, RememberedShare) == {
            "shop/web": record
        }

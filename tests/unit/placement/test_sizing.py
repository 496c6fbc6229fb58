"""The cheapest mix of node sizes for equal chunks is the cheapest there is."""

from __future__ import annotations

from itertools import combinations_with_replacement

from hypothesis import given
from hypothesis import strategies as st

from reconciler.placement.requirements import ANYWHERE
from reconciler.placement.sizing import Mix, Options, Size, mix_of, mix_price

sizes = st.lists(st.tuples(st.integers(0, 6), st.integers(1, 50)), min_size=1, max_size=4).map(
    lambda pairs: [Size(chunks, price, number) for number, (chunks, price) in enumerate(pairs)]
)


def cheapest_mix(count: int, sizes: list[Size]) -> Mix:
    """As make has it: of the sizes in the order of their numbers those of use, and the mix of them."""
    kinds = list(range(len(sizes)))
    assert kinds == [size.choice for size in sizes]
    chunks, prices = [size.chunks for size in sizes], [size.price for size in sizes]
    return mix_of(count, Options([0] * len(sizes), kinds, chunks, prices, {}, ANYWHERE).sizes)


def brute_force(count: int, options: list[Size]) -> int | None:
    prices = [
        sum(size.price for size in chosen)
        for nodes in range(1, count + 1)
        for chosen in combinations_with_replacement(options, nodes)
        if sum(size.chunks for size in chosen) >= count
    ]
    return min(prices, default=None)


@given(st.integers(1, 7), sizes)
def test_no_mix_is_cheaper(count: int, options: list[Size]) -> None:
    mix = cheapest_mix(count, options)

    expected = brute_force(count, options)
    if expected is None:
        assert mix == []
    else:
        assert mix_price(mix, [size.price for size in options]) == expected
        assert sum(chunks for _, chunks in mix) == count
        assert all(0 < chunks <= options[choice].chunks for choice, chunks in mix)


def test_of_equal_prices_fewer_nodes_win() -> None:
    assert cheapest_mix(4, [Size(1, 10, 0), Size(2, 20, 1), Size(4, 40, 2)]) == [(2, 4)]


def test_a_large_number_is_mostly_of_the_size_with_the_lowest_price_a_chunk() -> None:
    mix = cheapest_mix(10_003, [Size(3, 31, 0), Size(10, 100, 1)])

    assert mix[:1000] == [(1, 10)] * 1000
    assert mix[1000:] == [(0, 3)]

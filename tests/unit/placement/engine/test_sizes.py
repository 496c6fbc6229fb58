"""The cheapest mix of node sizes for equal chunks is the cheapest there is."""

from __future__ import annotations

from itertools import combinations_with_replacement
from typing import NamedTuple

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from reconciler.placement.engine.open import Mix, SizeOptions, mix_price
from reconciler.placement.loops.kernel import plain
from reconciler.placement.offers.node_templates import Compatibility, NodeTemplates
from reconciler.placement.requirements import ANYWHERE


class NodeSize(NamedTuple):
    """A size of node: how many chunks it holds, at what price, and its number."""

    chunks: int
    price: int
    choice: int


sizes = st.lists(st.tuples(st.integers(0, 6), st.integers(1, 50)), min_size=1, max_size=4).map(
    lambda pairs: [NodeSize(chunks, price, number) for number, (chunks, price) in enumerate(pairs)]
)

NOBODY = Compatibility(NodeTemplates((), (), 0), 0, ANYWHERE, able=frozenset())


def options_of(sizes: list[NodeSize]) -> SizeOptions:
    """As make has it: the sizes in the order of their numbers."""
    assert [size.choice for size in sizes] == list(range(len(sizes)))
    chunks, prices = np.array([(size.chunks, size.price) for size in sizes], dtype=np.int64).T
    found = np.zeros(len(sizes), dtype=np.int64)
    useful = found[plain().useful(chunks, prices, found) :]
    return SizeOptions(np.arange(len(sizes)), chunks, prices, prices, useful, compatibility=NOBODY)


def cheapest_mix(count: int, sizes: list[NodeSize]) -> Mix:
    return options_of(sizes).mix(count, plain())


def brute_force(count: int, options: list[NodeSize]) -> int | None:
    prices = [
        sum(size.price for size in chosen)
        for nodes in range(1, count + 1)
        for chosen in combinations_with_replacement(options, nodes)
        if sum(size.chunks for size in chosen) >= count
    ]
    return min(prices, default=None)


@given(st.integers(1, 7), sizes)
def test_no_mix_is_cheaper(count: int, options: list[NodeSize]) -> None:
    mix = cheapest_mix(count, options)

    expected = brute_force(count, options)
    if expected is None:
        assert mix == []
    else:
        assert mix_price(mix, options_of(options).prices) == expected
        assert sum(chunks for _, chunks in mix) == count
        assert all(0 < chunks <= options[choice].chunks for choice, chunks in mix)


@given(st.integers(1, 60), sizes)
def test_prices_are_those_of_the_mixes(count: int, sizes: list[NodeSize]) -> None:
    options = options_of(sizes)
    useful = [size for size in sizes if size.choice in options.useful.tolist()]

    assert all(size.chunks for size in useful)
    for size in sizes:
        assert not size.chunks or any(other.chunks >= size.chunks and other.price <= size.price for other in useful)
    for one, other in zip(useful_by_chunks(useful), useful_by_chunks(useful)[1:], strict=False):
        assert (one.chunks, one.price) < (other.chunks, other.price)
        assert one.price < other.price
    if len(options.useful):
        prices = [mix_price(options.mix(chunks, plain()), options.prices) for chunks in range(count + 1)]
        assert options.mix_prices(count, plain())[: count + 1].tolist() == prices


def useful_by_chunks(sizes: list[NodeSize]) -> list[NodeSize]:
    return sorted(sizes, key=lambda size: size.chunks)


def test_of_equal_prices_fewer_nodes_win() -> None:
    assert cheapest_mix(4, [NodeSize(1, 10, 0), NodeSize(2, 20, 1), NodeSize(4, 40, 2)]) == [(2, 4)]


def test_a_large_number_is_mostly_of_the_size_with_the_lowest_price_a_chunk() -> None:
    mix = cheapest_mix(10_003, [NodeSize(3, 31, 0), NodeSize(10, 100, 1)])

    assert mix[:1000] == [(1, 10)] * 1000
    assert mix[1000:] == [(0, 3)]

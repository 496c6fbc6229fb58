"""Pools with minValues get no more nodes than leave enough values open for each of them. Used by place.

As Karpenter has it under its MinValuesPolicy Strict (the default): what would launch with fewer is not launched. Each node has
enough by itself when it is made; but a pool's limits are used up by all of its nodes together, those listed as alternatives
included, which is known only when all is placed. Then all is placed again with fewer nodes of that pool.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

Answer = TypeVar("Answer")
Attempt = Callable[[Mapping[str, int]], tuple[Answer, dict[str, int]]]
"""Places everything with at most so many new nodes by pool; the second: how many nodes there are of pools of which some have
too few values."""


def within_minimums(attempt: Attempt[Answer]) -> Answer:
    """The first answer if all is well in it; else the one with the most nodes of each pool, by halving, pool after pool."""
    most: dict[str, int] = {}
    answer, short = attempt(most)
    while short:
        pool = min(short)
        # What halving found may turn out wrong when another pool changes: then none of it is sure.
        most[pool] = 0 if pool in most else _most(attempt, most, pool, short[pool])
        answer, short = attempt(most)
    return answer


def _most(attempt: Attempt[Answer], most: Mapping[str, int], pool: str, too_many: int) -> int:
    enough = 0
    while too_many - enough > 1:
        half = (enough + too_many) // 2
        _, short = attempt({**most, pool: half})
        if pool in short:
            too_many = half
        else:
            enough = half
    return enough

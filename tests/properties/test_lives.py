"""What a buffer costs over an hour of its life, beside planning from scratch after each change, and that nobody waits meanwhile."""

from __future__ import annotations

import os

import pytest

from tests.properties.lives import Life, live

SEEDS = range(int(os.environ.get("HEADROOM_LIVES", "5")))
MOST = 1.2
"""Of the price from scratch, for one life. Karpenter's own choices are in it: it buys one large node for many pods and keeps it."""
MOST_TOGETHER = 1.10
"""1.07 was measured."""
MOST_MOVES = 2


@pytest.fixture(scope="module")
def lives() -> list[Life]:
    return [live(seed) for seed in SEEDS]


def test_no_pod_waits_while_its_buffer_is_full(lives: list[Life]) -> None:
    assert [life.waited for life in lives] == [[] for _ in lives]


def test_a_minute_after_a_change_the_buffer_is_full_and_stays_full(lives: list[Life]) -> None:
    assert [life.short for life in lives] == [0 for _ in lives]


def test_a_chunk_moves_twice_at_most_after_a_change(lives: list[Life]) -> None:
    assert max(life.moves for life in lives) <= MOST_MOVES


def test_a_life_costs_little_more_than_planning_from_scratch(lives: list[Life]) -> None:
    assert max(life.ratio for life in lives) <= MOST
    paid, ideal = sum(life.paid for life in lives), sum(life.from_scratch for life in lives)
    assert paid / ideal <= MOST_TOGETHER

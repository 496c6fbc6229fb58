"""The distinct states of the declared capacity by schedules, and when each holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise

from reconciler.demand.schedules import followed_buffer, pool_ref
from reconciler.demand.timeline import Piece, State, followed_pieces
from reconciler.model.declared import Declared
from reconciler.model.refs import ObjectRef
from reconciler.model.schedules import Following, following_of

Key = tuple[State, ...]
"""The value of every distinct following at an instant, in a fixed order."""


@dataclass(frozen=True, slots=True)
class Interval:
    """[start, end), in which no followed schedule changes."""

    start: datetime
    end: datetime
    key: Key


class States:
    """Followers of one declared capacity over [start, end). Objects whose schedule is unknown stay as they are."""

    def __init__(self, declared: Declared, start: datetime, end: datetime) -> None:
        self._declared = declared
        schedules = {schedule.ref: schedule for schedule in declared.schedules}
        buffers = {buffer.ref: following_of(buffer.ref, buffer.annotations) for buffer in declared.buffers}
        manifests = {item.ref: item for item in declared.manifests}
        pools = {
            pool.name: following_of(pool_ref(pool), pool.annotations)
            for pool in declared.node_pools
            if pool_ref(pool) in manifests or pool.replicas is not None
        }
        wanted = dict.fromkeys(item for item in (*buffers.values(), *pools.values()) if item is not None)
        pieces = {item: followed_pieces(item, schedules, start, end) for item in wanted}
        self.followings = tuple(item for item in wanted if pieces[item])
        self._place = {item: index for index, item in enumerate(self.followings)}
        self._buffers = buffers
        self._pools = pools
        self.intervals = tuple(_intervals({item: pieces[item] for item in self.followings}, start, end))

    def at(self, key: Key) -> Declared:
        """What is declared while the state holds: followers with their sizes, all else as it is."""
        declared = self._declared
        buffers = []
        for buffer in declared.buffers:
            state = self._state(self._buffers[buffer.ref], key)
            following = self._buffers[buffer.ref]
            if state is None or following is None:
                buffers.append(buffer)
                continue
            replicas, active = state
            asleep = "" if active else f"{following.active_during} is at 0"
            buffers.append(followed_buffer(buffer, following, replicas, asleep=asleep))
        pools = []
        for pool in declared.node_pools:
            state = self._state(self._pools.get(pool.name), key)
            sized = pool if state is None or state[0] is None else replace(pool, replicas=state[0])
            pools.append(sized)
        return replace(declared, buffers=tuple(buffers), node_pools=tuple(pools))

    def followers(self, following: Following) -> tuple[list[ObjectRef], list[str]]:
        """Buffers by reference, and static NodePools by name, with exactly this following."""
        return (
            [ref for ref, item in self._buffers.items() if item == following],
            [name for name, item in self._pools.items() if item == following],
        )

    def _state(self, following: Following | None, key: Key) -> State | None:
        place = None if following is None else self._place.get(following)
        return None if place is None else key[place]


_ABSENT: State = (0, False)


def first_differences(before: Declared, after: Declared, start: datetime, end: datetime) -> dict[ObjectRef, datetime]:
    """When each buffer or NodePool that follows a schedule first differs on the two sides in size or existence, within [start, end)."""
    sides = [(_annotations(side), {each.ref: each for each in side.schedules}) for side in (before, after)]
    instants = {}
    for ref in sorted(sides[0][0].keys() | sides[1][0].keys()):
        followings = []
        for followers, schedules in sides:
            following = following_of(ref, followers[ref]) if ref in followers else None
            own = () if following is None else tuple(schedules.get(each) for each in following.schedules)
            followings.append((ref in followers, following, own))
        if followings[0] == followings[1] or not any(following for _, following, _ in followings):
            continue
        pieces = [
            followed_pieces(following, schedules, start, end) if is_there else [(start, end, _ABSENT)]
            for (is_there, following, _), (_, schedules) in zip(followings, sides, strict=True)
        ]
        at = _first_difference(*pieces)
        if at is not None:
            instants[ref] = at
    return instants


def _annotations(declared: Declared) -> dict[ObjectRef, tuple[tuple[str, str], ...]]:
    pools = {pool_ref(pool): pool.annotations for pool in declared.node_pools}
    return {buffer.ref: buffer.annotations for buffer in declared.buffers} | pools


def _first_difference(before: Sequence[Piece], after: Sequence[Piece]) -> datetime | None:
    left, right = 0, 0
    while left < len(before) and right < len(after):
        if before[left][2] != after[right][2]:
            return max(before[left][0], after[right][0])
        ends = before[left][1], after[right][1]
        left, right = left + (ends[0] <= ends[1]), right + (ends[1] <= ends[0])
    return None


def _intervals(
    pieces: Mapping[Following, list[tuple[datetime, datetime, State]]], start: datetime, end: datetime
) -> list[Interval]:
    moments = sorted({start, end} | {opens for own in pieces.values() for opens, _, _ in own})
    rows = list(pieces.values())
    positions = [0] * len(rows)
    intervals: list[Interval] = []
    for opens, closes in pairwise(moments):
        for index, own in enumerate(rows):
            while own[positions[index]][1] <= opens:
                positions[index] += 1
        key = tuple(own[positions[index]][2] for index, own in enumerate(rows))
        if intervals and intervals[-1].key == key:
            intervals[-1] = Interval(intervals[-1].start, closes, key)
        else:
            intervals.append(Interval(opens, closes, key))
    return intervals

"""The loop that fills nodes greedily, compiled where numba is there, else in numpy with the same answers. Used by
patterns.

A row is a node to fill. order: rows × kinds, which kind comes when; able: rows × kinds; asked: kinds × resources; room: rows
× resources; most: of each kind on a node; apart: kinds × kinds that exclude each other. What comes back is rows × kinds: how
many chunks. room and able are used up.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from reconciler.placement.amounts import PLENTY
from reconciler.placement.engine.compiling import jit

Numbers = NDArray[np.int64]
Mask = NDArray[np.bool_]
Filling = Callable[[Numbers, Mask, Numbers, Numbers, Numbers, Mask], Numbers]


@lru_cache(maxsize=1)
def filling() -> Filling:
    """The fastest that there is."""
    jitted = jit()
    return filled_in_numpy if jitted is None else jitted(filled_one_by_one)


def filled_one_by_one(  # noqa: C901, PLR0917 - compiled code is one loop on plain arrays
    order: Numbers, able: Mask, asked: Numbers, room: Numbers, most: Numbers, apart: Mask
) -> Numbers:
    filled = np.zeros(order.shape, dtype=np.int64)
    for row in range(order.shape[0]):
        for step in range(order.shape[1]):
            kind = order[row, step]
            if not able[row, kind]:
                continue
            fits = most[kind]
            for column in range(asked.shape[1]):
                need = asked[kind, column]
                if need > 0:
                    if room[row, column] < need:
                        fits = 0
                        break
                    fits = min(fits, room[row, column] // need)
            if fits <= 0:
                continue
            filled[row, kind] = fits
            for column in range(asked.shape[1]):
                room[row, column] -= fits * asked[kind, column]
            for other in range(apart.shape[0]):
                if apart[kind, other]:
                    able[row, other] = False
    return filled


def filled_in_numpy(  # noqa: PLR0917 - as the loop above
    order: Numbers, able: Mask, asked: Numbers, room: Numbers, most: Numbers, apart: Mask
) -> Numbers:
    """All rows at once, step by step."""
    filled = np.zeros(order.shape, dtype=np.int64)
    rows = np.arange(len(order))
    exclusive: Mask = np.asarray(apart.any(axis=1), dtype=np.bool_)
    for step in range(order.shape[1]):
        kinds = order[:, step]
        fits = np.where(able[rows, kinds], most[kinds], 0)
        wanted = asked[kinds]
        for column in range(wanted.shape[1]):
            need = wanted[:, column]
            fits = np.minimum(fits, np.where(need > 0, room[:, column] // np.maximum(need, 1), PLENTY))
        fits = np.maximum(fits, 0)
        filled[rows, kinds] = fits
        room -= fits[:, None] * wanted
        shut = np.flatnonzero((fits > 0) & exclusive[kinds])
        able[shut] &= ~np.take(apart, kinds[shut], axis=0)
    return filled

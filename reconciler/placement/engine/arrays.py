"""What the rows of the arrays are that loops work on, by name.

numba keeps what it compiled by the file of a loop: touch `loops.py` when a number here changes.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

SPREAD_ITSELF, SPREAD_OTHERS, ANTI_AFFINITY_ITSELF, ANTI_AFFINITY_OTHERS, AFFINITY = range(5)
"""Codes of rules between pods."""
HOST_ROW, RULE_CODE, BOUND = range(3)
"""Rows of `rules`."""
EMPTY, MINIMUM, RUNNING, USED, LEAN = range(5)
"""Parts of `loads`: what KeepEmpty chunks, KeepMinimum chunks and pending pods take; all of it together; without what runs."""
TEMPLATE, PLACE, TYPE, ROW, PRICE, LEAST = range(6)
"""Rows of `marks`: number of the node template, and which of its types; that type and its cheapest row of the catalogue, both numbered
through all NodePools; the price of that row, in billionths of a USD an hour. LEAST: while chunks of one batch are placed, a price that
is no more than a chunk costs when the node is made larger for it."""
START, END, POOL = range(3)
"""Rows of `spans`."""
TYPES, TYPE_ROWS, TYPE_PRICES = range(3)
"""Rows of `line`."""
ABLE, FITS, NODES, COUNTS, NOW_TEMPLATE, WAS_TEMPLATE, WAS_PLACE = range(7)
"""Rows of `found`. ABLE, FITS: nodes that take some chunks, and how many each. The others, for as many nodes as were found: which one,
how many chunks, and of what template and type it is now and was before (-1: it did not exist)."""
NEXT_NEW, NEXT_NOTE, NEXT_LIMITED = range(3)
"""What to do for chunks that are left over, if any: make new nodes; or note what was done, and look again; or find the type that a limit
leaves for the node that would have grown."""
ROUNDING = 1e-9
"""Prices a chunk are fractions; those that differ by less count as equal."""

PLENTY = 2**62
Numbers: TypeAlias = NDArray[np.int64]
Flags: TypeAlias = NDArray[np.bool_]

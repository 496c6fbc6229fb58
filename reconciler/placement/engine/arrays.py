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
TEMPLATE, PLACE, KIND, ROW, PRICE = range(5)
"""Rows of `marks`. template: number of the node template; place: which of its types; kind, row: that type and its cheapest row of the
catalogue, numbered through all NodePools; price: of that row, in billionths of a USD an hour."""
START, END, POOL = range(3)
"""Rows of `spans`."""
TYPES, TYPE_ROWS, TYPE_PRICES = range(3)
"""Rows of `line`."""
FITS, NODES, COUNTS, NOW_TEMPLATE, WAS_TEMPLATE, WAS_PLACE = range(6)
"""Rows of `found`: a number for each node; then, for as many nodes as were found, which, how many chunks, and what they are now and
were before (-1: not there)."""
NEXT_NEW, NEXT_NOTE, NEXT_LIMITED = range(3)
"""What to do for chunks that are left over, if any: make new nodes; note what was done, and look again; or see which type a limit
leaves for the node that would have grown."""
ROUNDING = 1e-9
"""Prices a chunk are fractions; those that differ by less count as equal."""

PLENTY = 2**62
Numbers: TypeAlias = NDArray[np.int64]
Flags: TypeAlias = NDArray[np.bool_]

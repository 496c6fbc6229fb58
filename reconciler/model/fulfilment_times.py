"""How long an autoscaler's word about a buffer counts."""

from __future__ import annotations

from datetime import timedelta

SILENCE = timedelta(minutes=10)
"""After which an autoscaler's word counts for nothing if the capacity is not there."""
GRACE = timedelta(minutes=1)
"""How long the capacity may be missing before: a living autoscaler says so itself within that time."""
CORRECTED_AFTER = timedelta(minutes=1)
"""How old the wrong word of an autoscaler about a buffer that headroom keeps must be to be corrected.

Two that write a status by turns must not do so without end."""

ASKED_AFTER = timedelta(minutes=10)
"""How long an autoscaler may be silent about a buffer that headroom keeps before it is asked whether it still serves it.

To ask is to write headroom's own words over its words: one that is there writes them anew."""
ANSWERED_WITHIN = timedelta(seconds=15)
"""How long its answer is waited for. Karpenter sees the change at once, and looks every 30 seconds anyway."""

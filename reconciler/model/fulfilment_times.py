"""How long headroom relies on what an autoscaler says about a buffer."""

from __future__ import annotations

from datetime import timedelta

SILENCE = timedelta(minutes=10)
"""An autoscaler that has been silent this long is not relied on if capacity is missing."""
GRACE = timedelta(minutes=1)
"""How long capacity may be missing before headroom acts. A running autoscaler reports it within that time."""
CORRECTED_AFTER = timedelta(minutes=1)
"""How old an autoscaler's wrong status of a buffer that headroom keeps must be before headroom corrects it.

Without a pause the two could overwrite each other forever."""

ASKED_AFTER = timedelta(minutes=10)
"""How long an autoscaler may be silent about a buffer that headroom keeps, before headroom asks whether it still serves it.

To ask, headroom overwrites the autoscaler's status. A running autoscaler restores it."""
ANSWERED_WITHIN = timedelta(seconds=15)
"""How long to wait for that answer. Karpenter sees the change at once, and looks every 30 seconds anyway."""

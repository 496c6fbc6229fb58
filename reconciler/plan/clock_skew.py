"""A machine whose clock differs from the cluster's: ages of nodes go by the API server's clock, schedules by this machine's."""

from __future__ import annotations

from datetime import timedelta

from reconciler.model.findings import Finding
from reconciler.plan.codes import CLOCK_SKEW, CLOCK_UNKNOWN

TOLERATED = timedelta(minutes=1)
NOT_TOLD = Finding(
    CLOCK_UNKNOWN.name,
    CLOCK_UNKNOWN.severity,
    "the API server's answers have no Date: ages are judged by this machine's clock, and no node is replaced before it expires",
    hint="let proxies between the two pass the header on, and keep the time of both machines with NTP",
)
"""Said instead of a skew, if none can be known."""


def clock_findings(skew: timedelta) -> tuple[Finding, ...]:
    """skew: this machine's time less the API server's."""
    if abs(skew) <= TOLERATED:
        return ()
    direction = "ahead of" if skew > timedelta(0) else "behind"
    return (
        Finding(
            CLOCK_SKEW.name,
            CLOCK_SKEW.severity,
            f"this machine's clock is {abs(skew)} {direction} the API server's: schedules and their edges are off by as much",
            hint="keep the time of both machines with NTP",
        ),
    )

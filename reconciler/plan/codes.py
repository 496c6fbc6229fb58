"""Every finding code of plan, in one place."""

from __future__ import annotations

from reconciler.model.findings import Code, Severity

BUFFER_LEAVES_NO_ROOM = Code("buffer-leaves-no-room", Severity.WARNING)
CLOCK_SKEW = Code("clock-skew", Severity.WARNING)
CLOCK_UNKNOWN = Code("clock-unknown", Severity.INFO)
DRIFTED = Code("drifted", Severity.WARNING)
DRIFT_WAITS = Code("drift-waits", Severity.INFO)
INVENTORY_IS_NEW = Code("inventory-is-new", Severity.WARNING)
INVENTORY_OF_ANOTHER_PATH = Code("inventory-of-another-path", Severity.ERROR)
OWNED_ELSEWHERE = Code("owned-elsewhere", Severity.ERROR)
PODS_MAY_WAIT = Code("pods-may-wait", Severity.WARNING)
POOL_BECOMES_PARTIAL = Code("pool-becomes-partial", Severity.ERROR)
POOL_NOT_PRUNED = Code("pool-not-pruned", Severity.WARNING)
POOL_NOT_THERE = Code("pool-not-there", Severity.ERROR)
POOL_OVER_LIMIT = Code("pool-over-limit", Severity.WARNING)
PLACEMENT_REJECTED = Code("placement-rejected", Severity.ERROR)
SHARED_HOSTNAME = Code("shared-hostname", Severity.WARNING)
STATIC_POOL_CHANGE = Code("static-pool-change", Severity.ERROR)
STATIC_POOL_BLOCKED = Code("static-pool-blocked", Severity.WARNING)

ALL: tuple[Code, ...] = tuple(
    sorted((value for value in list(globals().values()) if isinstance(value, Code)), key=lambda code: code.name)
)

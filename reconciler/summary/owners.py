"""Whose a status is: one that another controller writes is left to it."""

from __future__ import annotations

from reconciler.model.marks import is_own
from reconciler.model.view import LiveObject


def is_anothers(live: LiveObject) -> bool:
    """Any field manager other than headroom owns a field of the status."""
    return any(
        path == "status" or path.startswith("status.")
        for manager, paths in live.managers.items()
        if not is_own(manager)
        for path in paths
    )

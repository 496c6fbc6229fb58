"""Who owns a status. One that another controller writes is left to it."""

from __future__ import annotations

from collections.abc import Iterable

from reconciler.model.marks import is_own
from reconciler.model.view import LiveObject


def is_anothers(live: LiveObject, fields: Iterable[str]) -> bool:
    """Whether a field manager other than headroom owns one of these fields of the status, or all of it. One that only adds a condition
    of its own does not count."""
    ours = {"status", *(f"status.{name}" for name in fields)}
    return any(ours & paths for manager, paths in live.managers.items() if not is_own(manager))

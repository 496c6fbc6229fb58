"""How a live object differs from the declared one, field by field and whatever the spelling of values.

Only declared fields are compared, so fields that the API server or another controller adds are no difference.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from reconciler.model.changes import FieldChange
from reconciler.model.errors import Invalid
from reconciler.model.quantity import parse_duration, parse_quantity
from reconciler.model.refs import Path, path_text

_QUANTITY_LISTS = frozenset({"limits", "requests", "overhead", "capacity", "perChunkResources"})
_QUANTITIES = frozenset({"totalCpu", "totalMem"})
_DURATIONS = frozenset({"expireAfter", "consolidateAfter", "terminationGracePeriod", "duration"})


def differences(
    declared: Mapping[str, Any], live: Mapping[str, Any], *, drops_empty: bool = False
) -> tuple[FieldChange, ...]:
    """In path order; before is the live value, after the declared one. drops_empty: the kind is one of Kubernetes' own, whose empty lists and
    maps the API server does not store."""
    return tuple(_between(declared, live, (), drops_empty=drops_empty))


def _between(declared: Any, live: Any, path: Path, *, drops_empty: bool) -> Iterator[FieldChange]:
    if declared is None or (drops_empty and live is None and declared in ({}, [])):
        return
    if isinstance(declared, Mapping) and isinstance(live, Mapping):
        for key in sorted(declared):
            yield from _between(declared[key], live.get(key), (*path, key), drops_empty=drops_empty)
    elif isinstance(declared, list) and isinstance(live, list) and len(declared) == len(live):
        for index, (item, other) in enumerate(zip(declared, live, strict=True)):
            yield from _between(item, other, (*path, index), drops_empty=drops_empty)
    elif not _same(declared, live, path):
        yield FieldChange(path_text(path), live, declared)


def _same(declared: Any, live: Any, path: Path) -> bool:
    if isinstance(declared, bool) or isinstance(live, bool):
        return declared is live
    if declared == live:
        return True
    names = [step for step in path if isinstance(step, str)]
    scalars = isinstance(declared, str | int | float) and isinstance(live, str | int | float)
    if not names or not scalars:
        return False
    try:
        if names[-1] in _QUANTITIES or (len(names) > 1 and names[-2] in _QUANTITY_LISTS):
            return parse_quantity(declared) == parse_quantity(live)
        return names[-1] in _DURATIONS and parse_duration(str(declared)) == parse_duration(str(live))
    except Invalid:
        return False

"""Masks field values in reports: whatever looks like a secret, and the values of environment variables.

Pod templates often have passwords in `env`, and many people read a comment on a pull request.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from reconciler.model.changes import FieldChange
from reconciler.model.redaction import MASK, redacted

_OF_ENV = re.compile(r"(?:^|\.)env\[\d+\]\.value$")
_VARIABLE = re.compile(r"(?:^|\.)env\[\d+\]$")
_STEP = re.compile(r"[^.\[\]']+")
"""The steps of a path; the last is the name of the value."""


def masked_changes(changes: Iterable[FieldChange]) -> tuple[FieldChange, ...]:
    """The changes as they may be shown. A changed secret is shown as changed, without its value."""
    return tuple(map(_masked, changes))


def _masked(change: FieldChange) -> FieldChange:
    before, after = (_shown(value, change.path) for value in (change.before, change.after))
    if before == after and change.before != change.after:
        return FieldChange(change.path, f"{MASK} (before)", f"{MASK} (after)")
    return FieldChange(change.path, before, after)


def _shown(value: Any, path: str) -> Any:
    if value is None:
        return None
    if _OF_ENV.search(path):
        return MASK
    if _VARIABLE.search(path):
        value = _variable(value)
    name = next(reversed(_STEP.findall(path)), "")
    return redacted(_without_env(value, name), name)


def _without_env(value: Any, name: str = "") -> Any:
    if isinstance(value, Mapping):
        return {key: _without_env(item, str(key)) for key, item in value.items()}
    if isinstance(value, list):
        items = [_without_env(item) for item in value]
        return [_variable(item) for item in items] if name == "env" else items
    return value


def _variable(item: Any) -> Any:
    return {**item, "value": MASK} if isinstance(item, Mapping) and "value" in item else item

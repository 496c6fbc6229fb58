"""Which objects a partial name means: `web`, `shop/web`, `CapacityBuffer/web` or `NodePool/gen`."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable

_MOST = 5
_WHOLE = 3
"""Parts of KIND/NAMESPACE/NAME."""


def matching(wanted: str, names: Iterable[str]) -> list[str]:
    """The names (`KIND/NAMESPACE/NAME` or `KIND/NAME`) that match best: equal ones, else by whole parts, else by pieces of parts.

    A name with all three parts means one object, and matches no other.
    """
    known = list(names)
    if wanted in known:
        return [wanted]
    asked = wanted.split("/")
    if not all(asked) or len(asked) >= _WHOLE:
        return []
    return [name for name in known if _has(name, asked, whole=True)] or [
        name for name in known if _has(name, asked, whole=False)
    ]


def near_words(wanted: str, names: Collection[str]) -> str:
    """`did you mean A or B?`, for similar names; "" if there are none."""
    last = wanted.rpartition("/")[2]
    near = matching(wanted, names) or [name for name in names if last and last in name]
    near = near or difflib.get_close_matches(wanted, names, n=3, cutoff=0.4)
    if not near:
        # A name alone is short compared with one that has kind and namespace, so it is compared with names alone.
        ends = {name.rpartition("/")[2]: name for name in names}
        near = [ends[end] for end in difflib.get_close_matches(last, ends, n=3)]
    if not near:
        return ""
    more = f" (or one of {len(near) - _MOST:,} more)" if len(near) > _MOST else ""
    return f"did you mean {' or '.join(near[:_MOST])}?{more}"


def _has(name: str, asked: list[str], *, whole: bool) -> bool:
    """Whether the wanted parts are among the name's, in the same order."""
    parts = iter(name.split("/"))
    return all(any(part == one if whole else one in part for part in parts) for one in asked)

"""Says which fields belong to other field managers, and what to write to take them over."""

from __future__ import annotations

from collections.abc import Iterable

from reconciler.model.marks import MODE_ANNOTATION


def conflict_words(conflicts: Iterable[tuple[str, str]]) -> str:
    """`spec.weight belongs to "kubectl"`, for each field in order, and the annotation; "" for none. conflicts: managers and fields."""
    fields: dict[str, set[str]] = {}
    for manager, field in conflicts:
        fields.setdefault(manager, set()).add(field)
    if not fields:
        return ""
    told = "; ".join(
        f'{", ".join(sorted(names))} {"belongs" if len(names) == 1 else "belong"} to "{manager}"'
        for manager, names in sorted(fields.items())
    )
    them = "it" if sum(map(len, fields.values())) == 1 else "them"
    return f"{told}. To take {them} over, annotate the manifest with {MODE_ANNOTATION}: Override"

"""The last good version of each document stays in force while its present one is broken."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from reconciler.manifests.slots import SLOTS, place_in_order, ref_of
from reconciler.model.declared import Declared
from reconciler.model.refs import ObjectRef, SourcePosition


def with_last_good(current: Declared, previous: Declared | None) -> Declared:
    """What is in force: the current documents, and the last good version of those that cannot be read any more.

    A document cannot be read if it is broken, or if it is missing from a file that is broken in part. The findings are the current
    ones.
    """
    if previous is None or not (current.broken or current.broken_files):
        return current

    def is_kept(ref: ObjectRef, position: SourcePosition | None) -> bool:
        return ref in current.broken or (position is not None and position.file in current.broken_files)

    slots: dict[str, Any] = {}
    for slot in SLOTS:
        values = getattr(current, slot)
        present = {ref_of(value) for value in values}
        kept = [
            value
            for value in getattr(previous, slot)
            if ref_of(value) not in present and is_kept(ref_of(value), value.position)
        ]
        slots[slot] = tuple(sorted((*values, *kept), key=place_in_order))
    present = {manifest.ref for manifest in current.manifests}
    kept_manifests = [
        manifest
        for manifest in previous.manifests
        if manifest.ref not in present and is_kept(manifest.ref, manifest.position)
    ]
    manifests = sorted((*current.manifests, *kept_manifests), key=lambda manifest: (manifest.ref, manifest.position))
    return replace(current, **slots, manifests=tuple(manifests))

"""The last good version of each document stays in force while its present one is broken, or fails a rule of headroom itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from reconciler.model.declared import Declared
from reconciler.model.findings import Finding
from reconciler.model.refs import ObjectRef, SourcePosition
from reconciler.model.view import identity_of

SLOTS = (
    "buffers",
    "node_pools",
    "workloads",
    "priority_classes",
    "provisioning_requests",
    "provisioning_classes",
    "schedules",
    "node_overlays",
)
"""The fields of `Declared` that hold typed values, one for each kind."""


def place_in_order(value: Any) -> tuple[str, str, str, str]:
    """The sort key of the values of a field."""
    ref = ref_of(value)
    return (ref.namespace, ref.name, ref.kind, ref.group)


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
    older: set[ObjectRef] = set()
    for slot in SLOTS:
        values = getattr(current, slot)
        present = {ref_of(value) for value in values}
        kept = [
            value
            for value in getattr(previous, slot)
            if ref_of(value) not in present and is_kept(ref_of(value), value.position)
        ]
        older.update(map(ref_of, kept))
        slots[slot] = tuple(sorted((*values, *kept), key=place_in_order))
    present = {manifest.ref for manifest in current.manifests}
    kept_manifests = [
        manifest
        for manifest in previous.manifests
        if manifest.ref not in present and is_kept(manifest.ref, manifest.position)
    ]
    manifests = sorted((*current.manifests, *kept_manifests), key=lambda manifest: (manifest.ref, manifest.position))
    older.update(manifest.ref for manifest in kept_manifests)
    return replace(current, **slots, manifests=tuple(manifests), kept=frozenset(older))


def every_object(declared: Declared) -> Iterator[tuple[ObjectRef, Any]]:
    """Every object that the documents declare, typed or as a manifest, with its position."""
    for slot in SLOTS:
        yield from ((ref_of(value), value) for value in getattr(declared, slot))
    yield from ((item.ref, item) for item in declared.manifests)


def leaving_out(declared: Declared, failed: Mapping[ObjectRef, Finding]) -> Declared:
    """The documents without those that a rule of headroom failed on. They count as broken: what the cluster has of them stays."""
    if not failed:
        return declared
    slots: dict[str, Any] = {
        slot: tuple(value for value in getattr(declared, slot) if ref_of(value) not in failed) for slot in SLOTS
    }
    return replace(
        declared,
        **slots,
        manifests=tuple(item for item in declared.manifests if item.ref not in failed),
        findings=(*declared.findings, *failed.values()),
        broken=declared.broken | failed.keys(),
    )


def ref_of(value: Any) -> ObjectRef:
    ref = identity_of(value)
    assert ref is not None
    return ref

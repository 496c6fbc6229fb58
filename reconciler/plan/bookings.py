"""Where booked capacity is: known before anything is placed, so that a booking stays where it was."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from reconciler.model.demand import REQUEST_KIND
from reconciler.model.nodes import ATTEMPT_LABEL
from reconciler.model.request_records import RequestRecord, read_records
from reconciler.model.view import ClusterView


@dataclass(frozen=True, slots=True)
class BookedPlaces:
    """held: by name of a node (of a NodeClaim, while it has none) and request, its chunks of each pod set. kept: nodes that are not replaced
    while the booking lasts."""

    held: tuple[tuple[str, str, tuple[int, ...]], ...] = ()
    kept: frozenset[str] = frozenset()


def booked_places(view: ClusterView) -> BookedPlaces:
    """By the records of requests that are provisioned and have not ended."""
    booked = {
        name: record
        for name, record in read_records(view.inventory.memory).items()
        if record.provisioned is not None and record.ended is None
    }
    if not booked:
        return BookedPlaces()
    held = tuple(
        (node, f"{REQUEST_KIND}/{name}", counts)
        for name, record in sorted(booked.items())
        for node, counts in sorted(record.located.items())
    )
    return BookedPlaces(held, frozenset(node for node, _, _ in held) | _made_for(view, booked))


def _made_for(view: ClusterView, booked: Mapping[str, RequestRecord]) -> frozenset[str]:
    attempts = {f"{record.uid}.{record.attempt}" for record in booked.values()}
    return frozenset(
        machine.name
        for machine in view.machines
        if machine.node_claim is not None and machine.node_claim.label(ATTEMPT_LABEL) in attempts
    )

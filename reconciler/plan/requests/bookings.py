"""Where booked capacity is. Placement is told beforehand, so that a booking stays where it was."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from reconciler.model.demand import REQUEST_KIND
from reconciler.model.machines import Machine
from reconciler.model.nodes import HOLDS_ANNOTATION
from reconciler.model.placement import read_holdings
from reconciler.model.request_records import read_records
from reconciler.model.view import ClusterView


@dataclass(frozen=True, slots=True)
class BookedPlaces:
    """held: name of a node, or of a NodeClaim without one; request; its chunks there by pod set. kept: nodes that are not replaced while
    the booking lasts."""

    held: tuple[tuple[str, str, tuple[int, ...]], ...] = ()
    kept: frozenset[str] = frozenset()


def booked_places(view: ClusterView) -> BookedPlaces:
    """From the records of requests that are provisioned and have not ended."""
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
    return BookedPlaces(held, frozenset(node for node, _, _ in held) | _saying(view, booked.keys()))


def _saying(view: ClusterView, booked: Collection[str]) -> frozenset[str]:
    """Machines whose annotation names one of these requests."""
    names = {f"{REQUEST_KIND}/{name}" for name in booked}
    return frozenset(machine.name for machine in view.machines if not names.isdisjoint(_held_by(machine)))


def _held_by(machine: Machine) -> Iterable[str]:
    for side in (machine.node, machine.node_claim):
        words = None if side is None else side.annotation(HOLDS_ANNOTATION)
        if words and REQUEST_KIND in words:
            yield from (demand for demand, _ in read_holdings(words))

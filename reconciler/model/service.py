"""Whether a demand is served: how many of its chunks have a place, by whom, and why the others have none.

Decided here alone: plans, comparisons, forecasts of costs, bounds and explanations all tell this one answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from reconciler.model.buffers import Fulfilment
from reconciler.model.conditions import Condition, ConditionStatus
from reconciler.model.demand import Demand
from reconciler.model.placement import UnplacedReason, leading_reason
from reconciler.model.provisioning_requests import Phase

_READINESS = ("ReadyForProvisioning", "Accepted")
"""The condition that says why a demand is not ready: of a buffer, of a request."""
_BELOW = ("Suspended", "Fulfilment", "Provisioned", "Provisioning")
"""Where no reason of the placement says why chunks have no place, the first of these conditions that has a message does."""


class Keeper(StrEnum):
    """Who keeps a demand's capacity."""

    HEADROOM = "headroom"
    AUTOSCALER = "autoscaler"
    BALLOON_PODS = "balloon pods"


@dataclass(frozen=True, slots=True)
class Service:
    """wanted: chunks; None where the demand is not ready, or another provides for it and headroom does not look. served: those with a
    place, on nodes that are there or to come. ready: False, and why says why not. why: one sentence, "" where nothing is missing.

    autoscaler: its name, "" where none is known. certain: False where nothing in the cluster shows that an autoscaler serves it.
    """

    wanted: int | None = None
    served: int = 0
    ready: bool = True
    by: Keeper = Keeper.HEADROOM
    autoscaler: str = ""
    certain: bool = True
    why: str = ""

    @property
    def missing(self) -> int:
        """Chunks that are asked for and have no place."""
        return max(0, (self.wanted or 0) - self.served)

    @property
    def is_left(self) -> bool:
        """Another provides for it, and headroom does not even look."""
        return self.wanted is None and self.ready


def service_of(
    demand: Demand,
    placed: int,
    reasons: Iterable[UnplacedReason] = (),
    conditions: Sequence[Condition] | None = None,
) -> Service:
    """placed: chunks on nodes that are there or to come. conditions: the demand's own, unless the plan has made others of them."""
    said = {item.type: item for item in (demand.conditions if conditions is None else conditions)}
    wanted = demand.desired
    is_left = demand.request is not None and demand.request.phase is Phase.LEFT
    service = Service(
        wanted,
        min(placed, wanted or 0),
        ready=wanted is not None or is_left,
        by=keeper_of(demand),
        autoscaler=autoscaler_of(demand),
        certain=is_left or demand.fulfilment != Fulfilment.NATIVE or demand.autoscaler is not None,
    )
    if wanted is None:
        return replace(service, why=_message(said, _READINESS))
    if not service.missing:
        return service
    leading = None if demand.suspended else leading_reason(reasons)
    why = "" if leading is None else leading.example or leading.cause
    return replace(service, why=why or _message(said, _BELOW))


def keeper_of(demand: Demand) -> Keeper:
    """Who is to keep its capacity, whoever has it at present."""
    if demand.request is not None and demand.request.phase is Phase.LEFT:
        return Keeper.AUTOSCALER
    if demand.fulfilment == Fulfilment.NATIVE:
        return Keeper.AUTOSCALER
    return Keeper.BALLOON_PODS if demand.fulfilment == Fulfilment.BALLOON else Keeper.HEADROOM


def autoscaler_of(demand: Demand) -> str:
    """The name of the one that serves it; "" where none is known."""
    return "" if demand.autoscaler is None else demand.autoscaler.name


def _message(said: Mapping[str, Condition], types: Sequence[str]) -> str:
    """Of the first of these conditions that does not say that all is well."""
    known = (said[name] for name in types if name in said)
    found = (item.message or item.reason for item in known if item.type == "Suspended" or _is_amiss(item))
    return next(found, "")


def _is_amiss(condition: Condition) -> bool:
    return condition.status is not ConditionStatus.TRUE

"""Whether a demand is served: how many of its chunks have a place, who keeps it, and why the others have none.

Decided only here, so that plans, comparisons, cost forecasts, bounds and explanations all give the same answer.
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
"""The conditions that say why a demand is not ready: a buffer's, then a request's."""
_BELOW = ("Suspended", "Fulfilment", "Provisioned", "Provisioning")
"""If placement gives no reason why chunks have no place, the first of these conditions with a message does."""


class Keeper(StrEnum):
    """Who keeps a demand's capacity."""

    HEADROOM = "headroom"
    AUTOSCALER = "autoscaler"
    BALLOON_PODS = "balloon pods"


@dataclass(frozen=True, slots=True)
class Service:
    """wanted: how many chunks; None if the demand is not ready, or another controller provides for it and headroom does not look.

    served: how many have a place, on existing or new nodes. ready: whether it is; if not, `why` says why. why: one sentence, ""
    where nothing is missing. autoscaler: its name, "" where none is known. certain: False where nothing in the cluster shows that
    an autoscaler serves it.
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
        """How many of the wanted chunks have no place."""
        return max(0, (self.wanted or 0) - self.served)

    @property
    def is_left(self) -> bool:
        """Whether it is left to another controller, so that headroom does not look at it."""
        return self.wanted is None and self.ready


def service_of(
    demand: Demand,
    placed: int,
    reasons: Iterable[UnplacedReason] = (),
    conditions: Sequence[Condition] | None = None,
) -> Service:
    """placed: how many chunks are on existing or new nodes. conditions: the plan's, or else the demand's own."""
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
    """Who is to keep its capacity, whoever keeps it at present."""
    if demand.request is not None and demand.request.phase is Phase.LEFT:
        return Keeper.AUTOSCALER
    if demand.fulfilment == Fulfilment.NATIVE:
        return Keeper.AUTOSCALER
    return Keeper.BALLOON_PODS if demand.fulfilment == Fulfilment.BALLOON else Keeper.HEADROOM


def autoscaler_of(demand: Demand) -> str:
    """The name of the autoscaler that serves it; "" where none is known."""
    return "" if demand.autoscaler is None else demand.autoscaler.name


def _message(said: Mapping[str, Condition], types: Sequence[str]) -> str:
    """The message of the first of these conditions that reports a problem."""
    known = (said[name] for name in types if name in said)
    found = (item.message or item.reason for item in known if item.type == "Suspended" or _is_amiss(item))
    return next(found, "")


def _is_amiss(condition: Condition) -> bool:
    return condition.status is not ConditionStatus.TRUE

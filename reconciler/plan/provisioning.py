"""Whether the capacity that a buffer asks for is there, as its conditions say it: for all who may keep it.

The reasons are Karpenter's (controllers/provisioning/buffers.go). Otherwise than there, chunks on a node that is still on
its way are not capacity that fits: the condition becomes true when the capacity is there.
"""

from __future__ import annotations

from reconciler.model.buffers import Fulfilment
from reconciler.model.conditions import Condition, ConditionStatus
from reconciler.model.demand import Demand
from reconciler.plan.request_decisions import Whereabouts

PROVISIONING = "Provisioning"
FULFILMENT = "Fulfilment"


def provisioning(demand: Demand, where: Whereabouts) -> tuple[Condition, ...]:
    """The demand's conditions, with Provisioning, and with what the placement means for who keeps it."""
    if demand.fulfilment == Fulfilment.NATIVE and not demand.holds_nodes:
        return tuple(_missing(item, demand, where) for item in demand.conditions)
    if any(item.type == PROVISIONING for item in demand.conditions):
        return demand.conditions
    return (*demand.conditions, _provisioning(demand, where))


def _missing(condition: Condition, demand: Demand, where: Whereabouts) -> Condition:
    """Headroom takes back what a silent autoscaler does not keep; until then the condition says that it is missing."""
    if condition.type != FULFILMENT or not demand.silent or not where.unplaced or demand.autoscaler is None:
        return condition
    message = f"{demand.autoscaler.name} has not written for long, and not all of the capacity is there"
    return Condition(FULFILMENT, ConditionStatus.FALSE, "CapacityMissing", message)


def _provisioning(demand: Demand, where: Whereabouts) -> Condition:
    if demand.desired is None:
        return _condition(ConditionStatus.FALSE, "NotReadyForProvisioning", "the buffer is not ready")
    if demand.desired == 0:
        return _condition(ConditionStatus.FALSE, "BufferEmpty", "the buffer asks for nothing")
    missing = [
        f"{count:,} {words}"
        for count, words in (
            (where.coming, "on nodes that are on their way"),
            (where.not_ready, "on nodes that are not ready"),
            (where.new, "on nodes to be made"),
            (where.unplaced, "without a place"),
        )
        if count
    ]
    if missing:
        message = f"of {demand.desired:,} chunks, {', '.join(missing)}"
        if where.cut:
            message = f"{message}; {where.cut}"
        return _condition(ConditionStatus.FALSE, "RequiresNewCapacity", message)
    return _condition(ConditionStatus.TRUE, "FitsExistingCapacity", f"all {demand.desired:,} chunks have room")


def _condition(status: ConditionStatus, reason: str, message: str) -> Condition:
    return Condition(PROVISIONING, status, reason, message)

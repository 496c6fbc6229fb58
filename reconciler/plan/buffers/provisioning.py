"""The conditions that say whether a buffer's capacity is there, whoever keeps the buffer.

The reasons are Karpenter's (controllers/provisioning/buffers.go). Unlike there, chunks on a node that is still on its way are not
capacity that fits. The condition becomes true when the capacity is there.
"""

from __future__ import annotations

from reconciler.model.buffers import FULFILLED, Fulfilment
from reconciler.model.conditions import Availability, Condition, ConditionStatus
from reconciler.model.demand import Demand

PROVISIONING = "Provisioning"
FULFILMENT = "Fulfilment"


def provisioning(demand: Demand, where: Availability, starting: int = 0) -> tuple[Condition, ...]:
    """The demand's conditions with Provisioning added, and with what the placement means for whoever keeps the buffer.

    starting: chunks that have room but whose balloon pods do not run yet.
    """
    if demand.fulfilment == Fulfilment.NATIVE and not demand.holds_nodes:
        return tuple(_missing(item, demand, where) for item in demand.conditions)
    if any(item.type == PROVISIONING for item in demand.conditions):
        return demand.conditions
    return (*demand.conditions, _provisioning(demand, where, starting))


def _missing(condition: Condition, demand: Demand, where: Availability) -> Condition:
    """Headroom takes a buffer back whose autoscaler is silent; until then the condition says that its capacity is missing."""
    if condition.type != FULFILMENT or not demand.silent or not where.unplaced or demand.autoscaler is None:
        return condition
    message = f"{demand.autoscaler.name} has not written for long, and not all of the capacity is there"
    return Condition(FULFILMENT, ConditionStatus.FALSE, "CapacityMissing", message)


def _provisioning(demand: Demand, where: Availability, starting: int) -> Condition:
    if demand.desired is None:
        return _condition(ConditionStatus.FALSE, "NotReadyForProvisioning", "the buffer is not ready")
    if demand.desired == 0 and demand.filled:
        whole = "the 1 chunk" if demand.filled == 1 else f"all {demand.filled:,} chunks"
        return _condition(ConditionStatus.TRUE, "FitsExistingCapacity", f"its own pods fill {whole}")
    if demand.ended is not None and demand.ended.type == FULFILLED:
        return _condition(ConditionStatus.TRUE, "FitsExistingCapacity", demand.ended.message)
    if demand.desired == 0:
        message = "the buffer asks for nothing" if demand.ended is None else demand.ended.message
        return _condition(ConditionStatus.FALSE, "BufferEmpty", message)
    chunks, words = f"{demand.desired:,} chunks", f"all {demand.desired:,} chunks have room"
    if demand.desired == 1:
        chunks, words = "1 chunk", "the 1 chunk has room"
    missing = [
        f"{count:,} {words}"
        for count, words in (
            # New nodes count as on their way: they are once the status is written, and another message would be another write.
            (where.coming + where.new, "on nodes that are on their way"),
            (where.not_ready, "on nodes that are not ready"),
            (starting, "with room for balloon pods that do not run yet"),
            (where.unplaced, "without a place"),
        )
        if count
    ]
    if missing:
        message = f"of {chunks}, {', '.join(missing)}"
        message = "; ".join(filter(None, (message, where.cut, where.stopped)))
        return _condition(ConditionStatus.FALSE, "RequiresNewCapacity", message)
    return _condition(ConditionStatus.TRUE, "FitsExistingCapacity", words)


def _condition(status: ConditionStatus, reason: str, message: str) -> Condition:
    return Condition(PROVISIONING, status, reason, message)

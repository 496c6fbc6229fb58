"""Whether a demand is served, in words and as JSON."""

from __future__ import annotations

from typing import Any

from reconciler.model.service import Keeper, Service

NOT_SHOWN = "nothing in the cluster shows that an autoscaler serves CapacityBuffers"


def keeper_words(service: Service) -> str:
    """`headroom`, `Karpenter`, `balloon pods`."""
    if service.by is Keeper.AUTOSCALER:
        return service.autoscaler or "an autoscaler"
    return str(service.by)


def size_words(service: Service | None) -> str:
    """How many chunks are asked for: `10`, `not ready`, `left to another`, `absent` for None."""
    if service is None:
        return "absent"
    if service.is_left:
        return "left to another"
    return "not ready" if service.wanted is None else f"{service.wanted:,}"


def service_row(service: Service) -> dict[str, Any]:
    return {
        "ready": service.ready,
        "served": service.served,
        "missing": service.missing,
        "by": str(service.by),
        "autoscaler": service.autoscaler or None,
        "certain": service.certain,
        "why": service.why or None,
    }

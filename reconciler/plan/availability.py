"""How much of what a demand asks for is there: what conditions of buffers and of ProvisioningRequests are decided by."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Availability:
    """Chunks of one demand, by how far they are.

    ready: on nodes that take pods now. coming: on nodes on their way. not_ready: on nodes that were ready, are not now, and are
    waited for. new: on nodes that the plan makes. cut: a cap keeps them waiting, in words. sold_out: what cannot be had now and
    until when. why: what stood in the way of the others. unread: what of the cluster cannot be read, so that the others may be
    there after all. tried: of a request, whether its attempt under way has asked for nodes or set some aside.
    """

    ready: int = 0
    coming: int = 0
    not_ready: int = 0
    new: int = 0
    unplaced: int = 0
    cut: str = ""
    sold_out: str = ""
    why: str = ""
    unread: str = ""
    tried: bool = True

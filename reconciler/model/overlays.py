"""NodeOverlays: price and capacity adjustments of instance types."""

from __future__ import annotations

from dataclasses import dataclass, field

from reconciler.model.quantity import Resources
from reconciler.model.refs import ObjectRef, SourcePosition
from reconciler.model.requirements import Requirement


@dataclass(frozen=True, slots=True)
class NodeOverlay:
    """A NodeOverlay. price: USD an hour as written. price_adjustment: "+5%" or "-0.10". At most one of the two is set."""

    ref: ObjectRef
    requirements: tuple[Requirement, ...] = ()
    weight: int = 0
    price: str | None = None
    price_adjustment: str | None = None
    capacity: Resources = field(default_factory=Resources)
    position: SourcePosition | None = None

    @property
    def sets_price(self) -> bool:
        """Whether it changes prices, to a value or by an adjustment."""
        return self.price is not None or self.price_adjustment is not None

"""What the plan says of offerings that no price is known of. Used by place.

It looks at what NodePools may buy: of what none of them may, or an overlay gives the price of, there is nothing to say.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from reconciler.placement.offers.pool_offers import PoolOffers


def unknown_prices(pools: Sequence[PoolOffers]) -> tuple[str, ...]:
    """A sentence on types without any price, and one on those that have one for some of their offerings only."""
    unknown: set[int] = set()
    known: set[int] = set()
    for offers in pools:
        for types, priced in ((known, offers.priced), (unknown, ~offers.priced)):
            types.update(np.flatnonzero(offers.offerings.types_in(offers.rows & priced)).tolist())
    never, partly = len(unknown - known), len(unknown & known)
    sentences = []
    if never:
        have, are = ("type has", "it is") if never == 1 else ("types have", "they are")
        sentences.append(
            f"{never} instance {have} no price in the catalog: {are} taken only where no type that has one will do, the smaller "
            "in CPU and memory first"
        )
    if partly:
        have, their = ("type has", "its") if partly == 1 else ("types have", "their")
        sentences.append(
            f"{partly} instance {have} a price for some of {their} offerings only: the others are taken only where no offering "
            "that has one will do"
        )
    return tuple(sentences)

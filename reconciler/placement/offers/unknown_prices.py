"""What the plan says about offerings without a known price.

Only offerings that a NodePool may buy count, and only if no overlay gives them a price.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from reconciler.placement.offers.pool_offers import PoolOffers


def unknown_prices(pools: Sequence[PoolOffers]) -> tuple[str, ...]:
    """A sentence on types without any known price, and one on types with a known price for some of their offerings only."""
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

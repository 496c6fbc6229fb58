"""Keeps chunks whose resource claims are not judged off nodes made for other chunks, which would then need another node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from reconciler.model.placement import read_holdings
from reconciler.placement.amounts import PLENTY, Amounts, Numbers
from reconciler.placement.batches import Batch
from reconciler.placement.constraints.constraint import Stateless


class Placeholders(Stateless):
    """names: of existing bins. held_for: by bin number of a placeholder, the value of its annotation: what it was made for."""

    def __init__(self, names: Sequence[str], held_for: Mapping[int, str]) -> None:
        self._names = names
        self._held_for = {number: read_holdings(words) for number, words in held_for.items()}

    def concerns(self, batch: Batch) -> bool:
        """Pending pods are exempt: in the cluster they take any node too."""
        return bool(batch.needs.shape.resource_claims) and not batch.pods

    def most(self, batch: Batch, bins: Numbers) -> Amounts:
        own = (str(batch.demand), batch.members[0].group)
        made_for = (self._held_for.get(number) for number in bins.tolist())
        return np.array([PLENTY if holds is None or own in holds else 0 for holds in made_for], dtype=np.int64)

    def cause(self, batch: Batch, number: int) -> str:
        del batch, number
        return "resource claims"

    def reason(self, batch: Batch, bins: Sequence[int]) -> str:
        del batch
        return f"{self._names[bins[0]]} was made for other chunks, and resource claims are not judged"

"""Node selectors, node affinity and node names on existing nodes: kube-scheduler's plugins NodeAffinity and NodeName.

`offers/node_templates.py` judges the same for new nodes. kube-scheduler scores nodes by the preferred terms that they match.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from reconciler.model.placement import Cause
from reconciler.model.pods import PreferredNodeTerm
from reconciler.placement.arrays import PLENTY, Amounts, Numbers
from reconciler.placement.batches import Batch
from reconciler.placement.constraints import Constraint
from reconciler.placement.needs import NodeTerm
from reconciler.placement.phrases import instead_words, listed, suggestion
from reconciler.placement.requirements import WELL_KNOWN, Cell, LabelTable, Mask, Requirements, Values

MATCHES_NOTHING = "its required node affinity has none but empty terms, and an empty term matches no node"
WEIGHT = 2
"""Of the score, in kube-scheduler's default profile."""
_MOST_LOOKED_AT = 200
"""The most nodes to search for the one with the fewest wrong labels."""


class NodeAffinity(Constraint):
    """names: of existing bins. table: their labels as columns."""

    named = Cause.NODE_LABELS

    def __init__(self, names: Sequence[str], table: LabelTable) -> None:
        self._names = names
        self._table = table
        self._masks: dict[tuple[NodeTerm, ...], Mask] = {}
        self.alone = False
        """Whether no new node can be made, so that a label that resembles another may be a typing error worth a hint."""

    def meeting(self, terms: tuple[NodeTerm, ...]) -> Mask:
        """The bins that one of these terms matches. Taints and room are not judged here."""
        mask = self._masks.get(terms)
        if mask is None:
            mask = np.zeros(len(self._names), dtype=np.bool_)
            for term in terms:
                fits = self._table.matching(term.literal)
                for _, values in term.names.entries:
                    fits = fits & np.array([values.allows(name) for name in self._names], dtype=np.bool_)
                mask |= fits
            self._masks[terms] = mask
        return mask

    def liked(self, preferred: Sequence[PreferredNodeTerm]) -> Amounts:
        """By bin, the weights of the preferred terms that it matches, added up. A term that asks for nothing matches nothing."""
        weights = np.zeros(len(self._names), dtype=np.int64)
        for item in preferred:
            if item.term.expressions or item.term.fields:
                literal = Requirements.of(item.term.expressions, stable=False)
                names = Requirements.of(item.term.fields, stable=False)
                weights += item.weight * self.meeting((NodeTerm(literal, literal, names),))
        return weights

    def most(self, batch: Batch, bins: Numbers) -> Amounts:
        return np.where(self.meeting(batch.needs.terms)[bins], PLENTY, 0)

    def reason(self, batch: Batch, bins: Sequence[int]) -> str:
        """What is wrong with the node that has the fewest wrong labels."""
        if not batch.needs.terms:
            return MATCHES_NOTHING
        judged = [(number, term) for number in bins[:_MOST_LOOKED_AT] for term in batch.needs.terms]
        misses = [self._wrong_labels(number, term) for number, term in judged]
        fewest = min(misses, key=len)
        number, term = judged[misses.index(fewest)]
        labels = self._table.row(number)
        missing = [key for key, _ in term.literal.entries if labels.get(key) is None]
        near = suggestion(missing[0], self._table.keys | WELL_KNOWN) if missing and self.alone else ""
        return f"{self._names[number]} {listed(fewest)}{near}"

    def _wrong_labels(self, number: int, term: NodeTerm) -> list[str]:
        labels = self._table.row(number)
        wrong = [words for key, values in term.literal.entries if (words := _wrong_label(key, labels.get(key), values))]
        found = [f"has {words}" if index == 0 else words for index, words in enumerate(wrong)]
        if not all(values.allows(self._names[number]) for _, values in term.names.entries):
            found.append("is not the node that is asked for by name")
        return found


def _wrong_label(key: str, cell: Cell, values: Values) -> str:
    """What is wrong with the label; "" where nothing is."""
    possible = cell if isinstance(cell, tuple) else (cell,)
    if all(values.allows(value) for value in possible):
        return ""
    if cell is None:
        return f"no label {key}"
    return f"{key}={' or '.join(map(str, possible))}, {instead_words(values)}"


# The loop below is compiled with the scheduler's walk (see placement/scheduler).


def score_node_affinity(totals: Numbers, able: Numbers, liked: Amounts) -> None:
    """Adds the plugin's score to the totals of able nodes: 100 where the preferred terms that match weigh most."""
    most = 0
    for index in range(len(able)):
        most = max(most, liked[able[index]])
    if most > 0:
        for index in range(len(able)):
            totals[able[index]] += WEIGHT * (100 * liked[able[index]] // most)

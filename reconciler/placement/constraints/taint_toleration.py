"""Taints and tolerations: kube-scheduler's plugin TaintToleration. NoSchedule and NoExecute keep off pods without a toleration.

Chunks with a taint of their own are placed only on nodes that have it, as long as nodes may be made for them. kube-scheduler scores
nodes by their PreferNoSchedule taints that a pod does not tolerate.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from reconciler.model.placement import Cause
from reconciler.model.requirements import Taint, Toleration
from reconciler.placement.arrays import PLENTY, Amounts, Numbers
from reconciler.placement.batches import Batch
from reconciler.placement.constraints import Constraint
from reconciler.placement.phrases import listed
from reconciler.placement.requirements import Mask

WEIGHT = 3
"""Of the score, in kube-scheduler's default profile."""
_BLOCKING = frozenset({"NoSchedule", "NoExecute"})


def tolerated(taints: Iterable[Taint], tolerations: Sequence[Toleration], *, soft_taints: bool = True) -> bool:
    """Whether every taint that keeps pods off is tolerated. With soft_taints False, PreferNoSchedule keeps them off too."""
    return all(
        any(toleration.tolerates(taint) for toleration in tolerations)
        for taint in taints
        if taint.effect in _BLOCKING or not soft_taints
    )


def taint_words(taints: Sequence[Taint], tolerations: Sequence[Toleration]) -> str:
    """`has taint dedicated=batch:NoSchedule, which is not tolerated`, and what a toleration of the same key is for."""
    names = listed(f"{taint.key}{f'={taint.value}' if taint.value else ''}:{taint.effect}" for taint in taints)
    words = f"taint {names}, which is" if len(taints) == 1 else f"taints {names}, which are"
    near = next((item for taint in taints for item in tolerations if item.key == taint.key), None)
    return f"has {words} not tolerated{'' if near is None else f': {_toleration_words(near)}'}"


def _toleration_words(toleration: Toleration) -> str:
    value = "" if toleration.operator == "Exists" else f" is for {toleration.key}={toleration.value}"
    effect = f" {'and' if value else 'is for'} {toleration.effect}" if toleration.effect else ""
    return f"its toleration{value}{effect}"


class TaintToleration(Constraint):
    """names, taints: those of existing bins."""

    named = Cause.NODE_TAINTS

    def __init__(self, names: Sequence[str], taints: Sequence[tuple[Taint, ...]]) -> None:
        self._names = names
        self._taints = taints
        self._with_taint: dict[Taint, Mask] = {}
        self._masks: dict[tuple[Toleration, ...], Mask] = {}

    def tolerating(self, tolerations: tuple[Toleration, ...]) -> Mask:
        """Bins all of whose taints are tolerated."""
        mask = self._masks.get(tolerations)
        if mask is None:
            judged = {taints: tolerated(taints, tolerations) for taints in set(self._taints)}
            mask = self._masks[tolerations] = np.array([judged[taints] for taints in self._taints], dtype=np.bool_)
        return mask

    def avoided(self, tolerations: tuple[Toleration, ...]) -> Amounts:
        """By bin, how many PreferNoSchedule taints are not tolerated."""
        soft = {
            taints: sum(
                taint.effect == "PreferNoSchedule" and not tolerated((taint,), tolerations, soft_taints=False)
                for taint in taints
            )
            for taints in set(self._taints)
        }
        return np.array([soft[taints] for taints in self._taints], dtype=np.int64)

    def most(self, batch: Batch, bins: Numbers) -> Amounts:
        shape = batch.needs.shape
        able = self.tolerating(shape.tolerations)[bins]
        if shape.own_taint is not None:
            able = able & self._having(shape.own_taint)[bins]
        return np.where(able, PLENTY, 0)

    def _having(self, taint: Taint) -> Mask:
        mask = self._with_taint.get(taint)
        if mask is None:
            found = [taint in taints for taints in self._taints]
            mask = self._with_taint[taint] = np.array(found, dtype=np.bool_)
        return mask

    def reason(self, batch: Batch, bins: Sequence[int]) -> str:
        """Names the node with the fewest taints that are in the way."""
        tolerations = batch.needs.shape.tolerations
        tolerating = [number for number in bins if tolerated(self._taints[number], tolerations)]
        if tolerating:
            return f"{self._names[tolerating[0]]} was not made for it alone"
        missed = {
            self._names[number]: [taint for taint in self._taints[number] if not tolerated((taint,), tolerations)]
            for number in bins
        }
        name = min(missed, key=lambda item: len(missed[item]))
        return f"{name} {taint_words(missed[name], tolerations)}"


# The loop below is compiled with the scheduler's walk (see placement/scheduler).


def score_taints(totals: Numbers, able: Numbers, avoided: Amounts) -> None:
    """Adds the plugin's score to the totals of able nodes: 100 where no taint is in the way, 0 where most are."""
    most = 0
    for index in range(len(able)):
        most = max(most, avoided[able[index]])
    for index in range(len(able)):
        totals[able[index]] += WEIGHT * (100 if most == 0 else 100 - 100 * avoided[able[index]] // most)

"""Preferred affinity and soft spread as rules: shapes to try before the pod as it is.

They count for new nodes only. On existing nodes kube-scheduler weighs preferences itself, and never leaves a pod without a place
because of them. They are given up in Karpenter's order: preferred pod affinity, the heaviest first, then spread with
`ScheduleAnyway`. Preferred node affinity and soft taints come after these (`RelaxationStep`). Spread over hosts and preferred
anti-affinity are ignored here: as rules they would buy a node for each pod.
"""

from __future__ import annotations

from dataclasses import replace

from reconciler.model.nodes import HOSTNAME_LABEL
from reconciler.model.pods import PodShape, TopologySpread

_SOFT, _HARD = "ScheduleAnyway", "DoNotSchedule"


def firmer_shapes(shape: PodShape) -> tuple[PodShape, ...]:
    """The shapes with preferences as rules, the strictest first, without the shape itself; empty if it has no such preference."""
    spread = [item for item in shape.topology_spread if _is_soft(item)]
    if not shape.preferred_pod_affinity and not spread:
        return ()
    preferred = sorted(shape.preferred_pod_affinity, key=lambda item: -item.weight)
    rungs = [(number, len(spread)) for number in range(len(preferred))]
    rungs += [(len(preferred), count) for count in range(len(spread), 0, -1)]
    return tuple(
        replace(
            shape,
            pod_affinity=(*shape.pod_affinity, *(item.term for item in preferred[dropped:])),
            topology_spread=tuple(
                replace(item, when_unsatisfiable=_HARD) if item in spread[:kept] else item
                for item in shape.topology_spread
            ),
        )
        for dropped, kept in rungs
    )


def _is_soft(constraint: TopologySpread) -> bool:
    return constraint.when_unsatisfiable == _SOFT and constraint.topology_key != HOSTNAME_LABEL

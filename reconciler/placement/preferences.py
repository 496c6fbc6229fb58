"""Preferred affinity and soft spread, made rules: shapes to be tried before the pod as it is.

Only new nodes are planned by them. On nodes that exist kube-scheduler weighs preferences itself, and never leaves a pod without a
place for their sake. They are given up in Karpenter's order: preferred pod affinity, heaviest first, then spread that is
`ScheduleAnyway`. Preferred node affinity and soft taints come after these (`RelaxationStep`). Spread over hosts and preferred
anti-affinity decide nothing here: as rules they would buy a node for each pod.
"""

from __future__ import annotations

from dataclasses import replace

from reconciler.model.nodes import HOSTNAME_LABEL
from reconciler.model.pods import PodShape, TopologySpread

_SOFT, _HARD = "ScheduleAnyway", "DoNotSchedule"


def firmer_shapes(shape: PodShape) -> tuple[PodShape, ...]:
    """Firmest first, the shape itself not among them; empty when it has no such preference."""
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

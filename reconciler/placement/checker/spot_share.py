"""How much of each demand may end up on spot nodes of one offering (the setting `placement.spotShare`).

Each node counts at every offering that it has or may get. A placement must report demands over the share, with the right numbers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import product

from reconciler.model.nodes import CAPACITY_TYPE_LABEL, INSTANCE_TYPE_LABEL, ZONE_LABEL
from reconciler.model.placement import Placement
from reconciler.model.refs import ObjectRef
from reconciler.model.spot import SPOT, most_on_one_offering
from reconciler.placement.checker.checked_node import CheckedNode
from reconciler.placement.checker.indexed_problem import IndexedProblem


def spot_violations(problem: IndexedProblem, nodes: Sequence[CheckedNode], placement: Placement) -> Iterable[str]:
    """Wrong or missing reports of demands over the share. Pending pods are left out, since one pod cannot be divided."""
    held = _held(nodes)
    said = {item.demand: item for item in placement.crowded}
    for demand in problem.demands.values():
        if demand.is_pending_pod:
            continue
        total = sum(group.count for group in demand.groups)
        allowed = most_on_one_offering(problem.options.spot_share, total)
        counts = held.get(demand.ref, {})
        most = max(counts.values(), default=0)
        words = said.pop(demand.ref, None)
        if most <= allowed:
            if words is not None:
                yield f"{demand.ref}: {words.chunks} chunks are said to crowd one spot offering, which they do not"
        elif words is None or words.chunks != most:
            yield f"{demand.ref}: {most} of {total} chunks may end up on one spot offering, {allowed} are allowed"
        else:
            zones = {zone for (name, zone), count in counts.items() if name == words.instance_type and count == most}
            if zones != set(words.zones):
                yield f"{demand.ref}: {most} chunks are said to crowd {words.instance_type} in {words.zones}, which is {zones}"
    for ref in sorted(said):
        yield f"{ref}: is said to crowd one spot offering, and does not exist"


def _held(nodes: Sequence[CheckedNode]) -> Mapping[ObjectRef, Mapping[tuple[str, str], int]]:
    """By demand, then by instance type and zone, the most chunks that may end up there."""
    held: dict[ObjectRef, Counter[tuple[str, str]]] = {}
    for node in nodes:
        if SPOT in node.values(CAPACITY_TYPE_LABEL):
            types, zones = (node.values(key) for key in (INSTANCE_TYPE_LABEL, ZONE_LABEL))
            offerings = [(name or "", zone or "") for name, zone in product(types, zones)]
            for item in node.occupants:
                if item.demand is not None:
                    held.setdefault(item.demand.ref, Counter()).update(dict.fromkeys(offerings, item.count))
    return held

"""NodePools whose limits a change sets below what their nodes use: no node goes, but none is added until enough have gone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from reconciler.model.findings import Finding
from reconciler.model.nodes import InstanceType, NodePool
from reconciler.model.quantity import format_amount
from reconciler.model.refs import ObjectRef
from reconciler.model.view import ClusterView
from reconciler.placement.constraints.limits import PoolLimits
from reconciler.plan.codes import POOL_OVER_LIMIT


def lowered_limits(
    before: Sequence[NodePool], after: Sequence[NodePool], view: ClusterView, instance_types: Sequence[InstanceType]
) -> Iterator[Finding]:
    """A warning for each limit in `after` that the pool's nodes exceed, and did not exceed in `before`."""
    code = POOL_OVER_LIMIT
    known, limits = (PoolLimits(pools, view, instance_types) for pools in (before, after))
    for pool in after:
        was = known.left(pool.name)
        allowed = dict(pool.limits or ())
        for resource, left in sorted(limits.left(pool.name).items()):
            if left >= 0 or was.get(resource, 0) < 0:
                continue
            limit, used = (format_amount(resource, amount) for amount in (allowed[resource], allowed[resource] - left))
            message = f"it is over its {resource} limit of {limit}: {used} used"
            hint = "raise the limit, or expect no new node in it until enough of them have gone"
            ref = ObjectRef("karpenter.sh", "NodePool", "", pool.name)
            yield Finding(code.name, code.severity, message, pool.position, ref, f"spec.limits.{resource}", hint)

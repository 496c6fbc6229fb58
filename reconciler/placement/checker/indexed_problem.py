"""The problem, indexed as the rules need it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from reconciler.model.demand import Demand
from reconciler.model.nodes import InstanceType, NodePool
from reconciler.model.overlays import NodeOverlay
from reconciler.model.pods import PodShape
from reconciler.model.refs import ObjectRef
from reconciler.model.view import ClusterView
from reconciler.placement.checker.overlays import valid_overlays
from reconciler.placement.problem import PlacementOptions, Problem


@dataclass(frozen=True, slots=True)
class IndexedProblem:
    """The problem with its indices. overlays: those in force, the heaviest first."""

    cluster: ClusterView
    pools: Mapping[str, NodePool]
    instance_types: Mapping[str, InstanceType]
    demands: Mapping[ObjectRef, Demand]
    overlays: Sequence[NodeOverlay]
    options: PlacementOptions

    @classmethod
    def of(cls, problem: Problem) -> IndexedProblem:
        pools = {pool.name: pool for pool in problem.node_pools}
        instance_types = {instance_type.name: instance_type for instance_type in problem.instance_types}
        return cls(
            problem.view,
            pools,
            instance_types,
            {demand.ref: demand for demand in problem.demands},
            valid_overlays(problem.overlays, pools.values(), instance_types.values()),
            problem.options,
        )

    def asked(self) -> list[tuple[PodShape, int]]:
        """The shapes of all demands, each with its number of chunks."""
        return [(group.shape, group.count) for demand in self.demands.values() for group in demand.groups]

"""Compiles the loops before anybody waits for them, into numba's cache: `python -m reconciler.placement.precompile`.

The image's build calls it. It makes a placement just large enough for the loops, so that they are compiled for the types of arrays
that real placements use.
"""

from __future__ import annotations

import numpy as np

from reconciler.model.demand import ChunkGroup, Demand
from reconciler.model.nodes import (
    INSTANCE_TYPE_LABEL,
    InstanceType,
    Node,
    NodeClaimTemplate,
    NodeClassRef,
    NodePool,
    Offering,
)
from reconciler.model.placement import Placement
from reconciler.model.pods import PodShape
from reconciler.model.quantity import Resources
from reconciler.model.refs import ObjectRef
from reconciler.model.requirements import Operator, Requirement
from reconciler.model.view import ClusterView
from reconciler.placement.loops.kernel import WORTH_COMPILING
from reconciler.placement.place import place
from reconciler.placement.problem import Problem
from reconciler.placement.scheduler.model import WORTH_SCHEDULING, PodKind, SchedulerModel


def compile_ahead() -> list[Placement]:
    """Places many different groups, some of which make nodes larger that were planned for others. It does so in a pool without
    minValues and in one with them, which needs other loops."""
    types = [
        InstanceType(
            name=f"size-{cpu}",
            architecture="amd64",
            operating_systems=("linux",),
            capacity=Resources.parse({"cpu": str(cpu), "memory": f"{4 * cpu}Gi", "pods": "110"}),
            overhead=Resources(),
            offerings=(Offering("zone", "on-demand", cpu / 20),),
        )
        for cpu in (2, 4, 8)
    ]
    node_class = NodeClassRef("example.com", "NodeClass", "default")
    two_types = Requirement(INSTANCE_TYPE_LABEL, Operator.EXISTS, min_values=2)
    templates = [NodeClaimTemplate(node_class=node_class, requirements=kept) for kept in ((), (two_types,))]
    demands = [
        Demand(
            ObjectRef("autoscaling.x-k8s.io", "CapacityBuffer", "default", f"group-{number:03}"),
            (ChunkGroup(_shape(f"{300 + 7 * number}m", f"{number + 1}Mi"), 3),),
        )
        for number in range(WORTH_COMPILING)
    ]
    # Its first half is placed and then taken back, since the second half fits nowhere.
    halves = (ChunkGroup(_shape("10m", "1Mi"), 1), ChunkGroup(_shape("100", "1Gi"), 1))
    impossible = ObjectRef("autoscaling.x-k8s.io", "CapacityBuffer", "default", "impossible")
    demands.append(Demand(impossible, halves, whole=True))
    return [place(Problem(ClusterView(), [NodePool("general", template)], types, demands)) for template in templates]


def schedule_ahead() -> list[int]:
    """Binds pods by kube-scheduler's model, enough of them for its loops to be compiled, takes them back, and looks for a worse order."""
    room = Resources.parse({"cpu": "200", "memory": "256Gi", "pods": "2000"})
    model = SchedulerModel(
        [Node(f"node-{number}", room) for number in range(10)], [], [PodKind(_shape("10m", "1Mi"))], {}
    )
    rows: list[int] = model.schedule([0] * (WORTH_SCHEDULING // 10)).tolist()
    model.take_back()
    one = np.zeros(1, dtype=np.int64)
    pods, lots, targets = np.zeros(2, dtype=np.int64), np.arange(10, dtype=np.int64), np.ones(1, dtype=np.bool_)
    model.worsen(pods, lots, targets, one, tries=1, seed=1)
    return rows


def _shape(cpu: str, memory: str) -> PodShape:
    return PodShape("default", Resources.parse({"cpu": cpu, "memory": memory, "pods": "1"}))


if __name__ == "__main__":
    compile_ahead()
    schedule_ahead()

"""Placements that are recorded of tests/cases: the pods and buffers there. Used by answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from reconciler.demand.buffers import buffer_demands
from reconciler.manifests.instance_types import synthetic_instance_types
from reconciler.model.buffers import Dialect
from reconciler.model.declared import Declared
from reconciler.model.demand import Demand
from reconciler.model.findings import Finding
from reconciler.model.view import ClusterView
from reconciler.placement.problem import PlacementOptions
from tests.perf.answer import Answer, Questions, of_demands, of_placement
from tests.perf.answered_worlds import fast, optimal
from tests.perf.pod_mix import pool
from tests.unit.demand import buffer_cases
from tests.unit.placement import placement_cases
from tests.unit.placement.worlds import World

BUFFERS = {"buffers_karpenter.yaml": Dialect.KARPENTER, "buffers_ca.yaml": Dialect.CLUSTER_AUTOSCALER}

Case = Mapping[str, Any]
Asked = tuple[Sequence[Demand], Sequence[Finding]]


def pods() -> Questions:
    """placement.yaml with placement_catalogs.yaml."""
    for case in placement_cases.cases():
        world = partial(_world, case)
        yield case.name, partial(fast, world)
        yield f"{case.name} optimal", partial(optimal, world)


def buffers() -> Questions:
    """What the buffers of both autoscalers ask for, and where their chunks go on an empty cluster."""
    for file, dialect in BUFFERS.items():
        for case in buffer_cases.cases(file, "resolve"):
            yield f"{dialect}/{case['name']}", partial(_of_buffers, partial(_resolved, case, dialect))
        for case in buffer_cases.cases(file, "quota"):
            yield f"{dialect}/{case['name']}", partial(_of_buffers, partial(_with_quotas, case))
        for case in buffer_cases.cases(file, "steps"):
            for number, step in enumerate(case["input"]["steps"]):
                if "apply" in step:
                    name = f"{dialect}/{case['name']} step {number}"
                    yield name, partial(_of_buffers, partial(_of_step, step, dialect))


def _world(case: placement_cases.Case) -> World:
    options = PlacementOptions(include_pending=True)
    return World(case.view, case.node_pools, case.instance_types, case.demands, options=options)


def _of_buffers(asked: Callable[[], Asked]) -> Answer:
    demands, findings = asked()
    world = World(ClusterView(), (pool(),), synthetic_instance_types(), tuple(demands))
    return of_placement(world.placed()).after(of_demands(demands, findings))


def _resolved(case: Case, dialect: Dialect) -> Asked:
    demand, findings = buffer_cases.resolved(case, dialect)
    return (demand,), findings


def _with_quotas(case: Case) -> Asked:
    return buffer_cases.with_quotas(case), ()


def _of_step(step: Case, dialect: Dialect) -> Asked:
    specs = step.get("buffers") or {"b": step["buffer"]}
    declared = Declared(
        buffers=tuple(buffer_cases.buffer(spec, name) for name, spec in sorted(specs.items())),
        workloads=tuple(buffer_cases.workload(document) for document in step["apply"]),
    )
    quotas = (buffer_cases.quota(step["quota"]),) if "quota" in step else ()
    return buffer_demands(declared, ClusterView(resource_quotas=quotas), dialect=dialect)

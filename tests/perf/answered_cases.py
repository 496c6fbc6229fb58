"""Placements that are recorded of tests/cases: the pods and buffers there. Used by answers."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from reconciler.demand.buffers import buffer_demands
from reconciler.manifests.instance_types import synthetic_instance_types
from reconciler.manifests.repository.declared import live_declared
from reconciler.model.buffers import Dialect
from reconciler.model.view import ClusterView
from reconciler.placement.problem import PlacementOptions
from tests.case_files import Case, cases_in
from tests.perf.answer import Answer, Questions, of_demands, of_placement
from tests.perf.answered_worlds import fast, optimal
from tests.perf.pod_mix import pool
from tests.unit.cli.buffer_documents import World as BufferWorld
from tests.unit.cli.buffer_documents import buffer, in_cluster, quota, with_quotas
from tests.unit.placement import placement_cases
from tests.unit.placement.worlds import World

BUFFERS = {"buffers_karpenter.yaml": Dialect.KARPENTER, "buffers_ca.yaml": Dialect.CLUSTER_AUTOSCALER}
NOWHERE = Path()
"""No snapshot is written."""


def pods() -> Questions:
    """placement.yaml with placement_catalogs.yaml."""
    for case in placement_cases.cases():
        world = partial(_world, case)
        yield case.name, partial(fast, world)
        yield f"{case.name} optimal", partial(optimal, world)


def buffers() -> Questions:
    """What the buffers of both autoscalers ask for, and where their chunks go on an empty cluster."""
    for file, dialect in BUFFERS.items():
        for case in cases_in(file, "resolve"):
            given = case["input"]
            world = in_cluster(NOWHERE, given["objects"], buffer(given["buffer"]))
            yield f"{dialect}/{case['name']}", partial(_of_buffers, world, dialect)
        for case in cases_in(file, "quota"):
            names = (f"b{index}" for index in range(len(case["input"]["buffers"])))
            world = with_quotas(NOWHERE, case["input"], names)
            yield f"{dialect}/{case['name']}", partial(_of_buffers, world, dialect, with_findings=False)
        for case in cases_in(file, "steps"):
            for number, step in enumerate(case["input"]["steps"]):
                if "apply" in step:
                    yield f"{dialect}/{case['name']} step {number}", partial(_of_buffers, _of_step(step), dialect)


def _world(case: placement_cases.Case) -> World:
    options = PlacementOptions(include_pending=True)
    return World(case.view, case.node_pools, case.instance_types, case.demands, options=options)


def _of_step(step: Case) -> BufferWorld:
    specs = step.get("buffers") or {"b": step["buffer"]}
    world = in_cluster(NOWHERE, step["apply"], *(buffer(spec, name) for name, spec in sorted(specs.items())))
    return world.add("resourcequotas", quota(step["quota"])) if "quota" in step else world


def _of_buffers(given: BufferWorld, dialect: Dialect, *, with_findings: bool = True) -> Answer:
    view = given.view()
    demands, findings = buffer_demands(live_declared(view), view, dialect=dialect)
    world = World(ClusterView(), (pool(),), synthetic_instance_types(), tuple(demands))
    return of_placement(world.placed()).after(of_demands(demands, findings if with_findings else ()))

"""How long a pass takes that decides many provisioning requests, or a large one.

python -m tests.perf.provisioning_requests burst
python -m tests.perf.provisioning_requests large

`python -m tests.perf` holds both against recorded limits.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from statistics import median

from reconciler.model.provisioning_requests import PROVISIONED
from tests.builders import instance_type
from tests.fakes.embedded import Document
from tests.fakes.requests import ATOMIC, BatchShop, pod_template, request
from tests.perf.measure import Figures

BURST = 1000
"""Checks of one pod each, of which there is room for all but a hundred."""
NODES, PODS_PER_NODE = 60, 15
POD_SETS, PODS = ("250m", "500m", "1", "2"), 16_384
"""CPUs of a pod of each set, and how many pods each has: the most that the kind allows."""
TYPES = tuple(
    instance_type(f"m-{cpus}x", cpu=str(cpus), memory=f"{4 * cpus}Gi", price=cpus * 0.05) for cpus in (8, 16, 32, 64)
)

EXPECTED = {"burst": [1000, 900, 0], "large": [1, 0, 500]}
"""Decided, provisioned, and nodes to be made: of a large one the first step."""


@dataclass(frozen=True, slots=True)
class Pass:
    """wall, cpu: seconds. decided: requests that have an answer; yes: those that were provisioned; nodes: that are to be made."""

    wall: float
    cpu: float
    decided: int
    yes: int
    nodes: int


def burst() -> Pass:
    """All created at once, decided in the pass that follows."""
    shop = BatchShop(instance_types=TYPES)
    for number in range(NODES):
        shop.sandbox.add_node(f"free-{number:03}", "m-16x", cpu=str(PODS_PER_NODE))
    shop.settle(passes=2)
    for number in range(BURST):
        shop.cluster.apply(request(f"check-{number:04}"))
    return _measured(shop)


def large() -> Pass:
    """Planned in one go, and made in steps: some 1,960 nodes of 64 CPUs."""
    shop = BatchShop(instance_types=TYPES)
    sets = []
    for number, cpu in enumerate(POD_SETS):
        shop.cluster.apply(pod_template(f"worker-{number}", cpu=cpu))
        sets.append({"podTemplateRef": {"name": f"worker-{number}"}, "count": PODS})
    document: Document = request(class_name=ATOMIC)
    document["spec"]["podSets"] = sets
    shop.cluster.apply(document)
    return _measured(shop)


def _measured(shop: BatchShop) -> Pass:
    began, began_cpu = time.perf_counter(), time.process_time()
    plan = shop.run().required_plan
    wall, cpu = time.perf_counter() - began, time.process_time() - began_cpu
    said = [
        condition.status.value
        for outcome in plan.demands
        for condition in outcome.conditions
        if condition.type == PROVISIONED
    ]
    return Pass(wall, cpu, len(said), said.count("True"), len(plan.node_claims.create))


def measured(which: str) -> Figures:
    """Each run in a process of its own. Raises `RuntimeError` when not all is decided as it should be."""
    samples = []
    for _ in range(3):
        command = [sys.executable, "-m", "tests.perf.provisioning_requests", which]
        sample = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
        if [sample["decided"], sample["yes"], sample["nodes"]] != EXPECTED[which]:
            raise RuntimeError(f"{which}: {sample}, and not {EXPECTED[which]}")
        samples.append(sample)
    walls, cpus = [sample["wall"] for sample in samples], [sample["cpu"] for sample in samples]
    peak = max(sample["peak"] for sample in samples)
    return Figures(median(walls), median(cpus), min(walls), min(cpus), peak)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("which", choices=sorted(EXPECTED))
    found = {"burst": burst, "large": large}[parser.parse_args().which]()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    sys.stdout.write(json.dumps({**asdict(found), "peak": peak}) + "\n")


if __name__ == "__main__":
    main()

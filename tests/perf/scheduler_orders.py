"""How long kube-scheduler's model takes for many orders of the same pods: `python -m tests.perf.scheduler_orders`.

1,000 pods of the benchmark's mix on 200 nodes, in 50 shuffled orders, each taken back before the next. CPU time of this process, with
compiled loops that are loaded already. `--pods`, `--nodes` and `--orders` change the numbers.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace

import numpy as np

from reconciler.model.quantity import Resources
from reconciler.placement.scheduler.arrays import PodKind
from reconciler.placement.scheduler.model import SchedulerModel
from tests.builders import node
from tests.perf.pod_mix import decoded, demands_of, pod_manifests
from tests.unit.placement.worlds import ZONES


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name, usual in (("pods", 1000), ("nodes", 200), ("orders", 50)):
        parser.add_argument(f"--{name}", type=int, default=usual, help="(%(default)s)")
    chosen = parser.parse_args()
    numbers: dict[PodKind, int] = {}
    shapes = [demand.groups[0].shape for demand in demands_of(decoded(pod_manifests(chosen.pods)))]
    order = np.array([numbers.setdefault(PodKind(shape, by_default=True), len(numbers)) for shape in shapes])
    room = Resources.parse({"cpu": "16", "memory": "64Gi", "pods": "110"})
    nodes = [
        replace(node(f"node-{number}", zone=ZONES[number % len(ZONES)]), allocatable=room)
        for number in range(chosen.nodes)
    ]
    SchedulerModel(nodes, [], list(numbers), {}).schedule(order)  # loads the compiled loops

    began = time.process_time()
    model = SchedulerModel(nodes, [], list(numbers), {})
    made = time.process_time()
    shuffled, waiting = np.random.default_rng(0), []
    for _ in range(chosen.orders):
        rows = model.schedule(shuffled.permutation(order), shuffled.permutation(chosen.nodes))
        waiting.append(int((rows < 0).sum()))
        model.take_back()
    done = time.process_time()
    print(f"{chosen.pods} pods of {len(numbers)} kinds on {chosen.nodes} nodes: arrays {1000 * (made - began):.0f} ms")
    print(f"{chosen.orders} orders {done - made:.2f} s; {min(waiting)} to {max(waiting)} pods wait")


if __name__ == "__main__":
    main()

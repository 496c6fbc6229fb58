"""What firm placements cost in generated repositories, beside the tight ones: `python -m tests.perf.surge_price [--worlds 40] [--large]`."""

from __future__ import annotations

import argparse
import time
from collections import defaultdict
from statistics import mean, median

from reconciler.model.placement import SurgeMode
from reconciler.placement.place import place
from reconciler.placement.surge.firm import Firmer
from tests.properties.surge_worlds import large_surge_world, surge_world
from tests.properties.test_surge import names_of


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worlds", type=int, default=40, help="(%(default)s)")
    parser.add_argument("--large", action="store_true", help="twenty buffers on 30 to 60 nodes")
    chosen = parser.parse_args()
    world = large_surge_world if chosen.large else surge_world
    for mode in SurgeMode:
        of_size, waiting, began = defaultdict[int, list[float]](list), 0, time.process_time()
        for seed in range(chosen.worlds):
            problem = world(seed)
            tight = place(problem)
            before = sum(node.price for node in tight.planned)
            found = Firmer(mode, place, names_of).firm(problem, tight)
            buffers = (len(problem.demands) + 1) // 2 * 2
            of_size[buffers].append((found.price - before) / before if before else 0.0)
            waiting += bool(found.waiting)
        extra = [share for shares in of_size.values() for share in shares]
        medians = (f"{median(shares):+.1%} with {most - 1} or {most}" for most, shares in sorted(of_size.items()))
        print(
            f"{mode}: {median(extra):+.1%} at the median, {mean(extra):+.1%} on average, {max(extra):+.1%} at most; "
            f"by number of buffers at the median {', '.join(medians)}; in {waiting} of {chosen.worlds} pods may still wait; {time.process_time() - began:.1f} s"
        )


if __name__ == "__main__":
    main()

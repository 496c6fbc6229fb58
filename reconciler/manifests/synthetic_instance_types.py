"""A synthetic catalog, computed by formula: the default of the embedded cluster.

Names, sizes and prices are those of the catalog in Karpenter's KWOK provider. So a plan made offline agrees with a Karpenter that
runs on KWOK.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from itertools import product
from typing import Any

from reconciler.manifests.instance_types import instance_types_from
from reconciler.model.nodes import CAPACITY_TYPE_LABEL, ZONE_LABEL, InstanceType

SYNTHETIC_ZONES = ("test-zone-a", "test-zone-b", "test-zone-c", "test-zone-d")
_GIBIBYTES_PER_CORE = {"c": 2, "s": 4, "m": 8}
_CORES = (1, 2, 4, 8, 16, 32, 48, 64, 96, 128, 192, 256)
_PODS_PER_CORE, _MOST_PODS = 16, 1024
_USD_PER_CORE, _USD_PER_GIGABYTE, _SPOT_SHARE = 0.025, 0.001, 0.7


_GPUS = ((8, 1), (16, 2), (32, 4), (64, 8))
"""Cores and GPUs of the embedded cluster's own family."""
_USD_PER_GPU = 0.6


def is_sample(instance_types: Iterable[InstanceType]) -> bool:
    """Whether a catalog is this one, or a part of it, by the names of its types."""
    names = {kind.name for kind in instance_types}
    return bool(names) and names <= {kind.name for kind in (*synthetic_instance_types(), *gpu_instance_types())}


@cache
def gpu_instance_types() -> tuple[InstanceType, ...]:
    """Four types with NVIDIA GPUs, which the embedded cluster sells beside the others. Karpenter's KWOK provider has none."""
    rows = []
    for cores, gpus in _GPUS:
        row = _row(f"g-{cores}x-amd64-linux", cores, cores * 4, "amd64", "linux", extra=gpus * _USD_PER_GPU)
        row["resources"]["nvidia.com/gpu"] = str(gpus)
        rows.append(row)
    return instance_types_from(rows)


@cache
def synthetic_instance_types() -> tuple[InstanceType, ...]:
    """144 types, sorted by name: three families × 12 sizes × amd64 and arm64 × Linux and Windows. Each is sold as spot and on
    demand in four zones."""
    shapes = product(_GIBIBYTES_PER_CORE.items(), _CORES, ("amd64", "arm64"), ("linux", "windows"))
    return instance_types_from(
        [
            _row(f"{family}-{cores}x-{architecture}-{system}", cores, cores * gibibytes, architecture, system)
            for (family, gibibytes), cores, architecture, system in shapes
        ]
    )


def _row(
    name: str, cores: int, gibibytes: int, architecture: str, system: str, *, extra: float = 0.0
) -> dict[str, Any]:
    price = _USD_PER_CORE * cores + _USD_PER_GIGABYTE * gibibytes * 2**30 / 10**9 + extra
    return {
        "name": name,
        "architecture": architecture,
        "operatingSystems": [system],
        "resources": {
            "cpu": str(cores),
            "memory": f"{gibibytes}Gi",
            "pods": str(min(cores * _PODS_PER_CORE, _MOST_PODS)),
            "ephemeral-storage": "20Gi",
        },
        "offerings": [
            {
                "Price": price * _SPOT_SHARE if capacity_type == "spot" else price,
                "Requirements": [
                    {"key": CAPACITY_TYPE_LABEL, "operator": "In", "values": [capacity_type]},
                    {"key": ZONE_LABEL, "operator": "In", "values": [zone]},
                ],
            }
            for zone, capacity_type in product(SYNTHETIC_ZONES, ("on-demand", "spot"))
        ],
    }

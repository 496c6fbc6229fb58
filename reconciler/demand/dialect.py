"""The two readings of a CapacityBuffer. Chosen by `--dialect`; read by size and buffers."""

from __future__ import annotations

from enum import StrEnum


class Dialect(StrEnum):
    """Where Karpenter and Cluster Autoscaler read the same buffer differently, this decides."""

    KARPENTER = "karpenter"
    CLUSTER_AUTOSCALER = "ca"

    @property
    def spoken(self) -> str:
        return "Karpenter" if self is Dialect.KARPENTER else "Cluster Autoscaler"

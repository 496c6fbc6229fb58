"""The two readings of a CapacityBuffer."""

from __future__ import annotations

from enum import StrEnum


class Dialect(StrEnum):
    """Whose reading counts where Karpenter and Cluster Autoscaler size the same buffer differently (`--dialect`)."""

    KARPENTER = "karpenter"
    CLUSTER_AUTOSCALER = "ca"

    @property
    def spoken(self) -> str:
        return "Karpenter" if self is Dialect.KARPENTER else "Cluster Autoscaler"

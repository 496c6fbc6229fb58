"""KWOK as a process: it plays the kubelets of the nodes that Karpenter's provider makes.

Made by `ControlPlane`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.controlplane.process import Process
from tests.controlplane.programs import find_data, find_program

if TYPE_CHECKING:
    from pathlib import Path

    from tests.controlplane.lifeline import Lifeline

# Leases are renewed every quarter of this; KWOK's usual 40 s would be a hundred writes a
# second for a thousand nodes.
_LEASE_SECONDS = 120


def kwok(folder: Path, lifeline: Lifeline, *, kubeconfig: Path) -> Process:
    """KWOK with the stages that make nodes Ready and pods Running at once."""
    stages = sorted(find_data("kwok-stages").glob("*.yaml"))
    command = [
        str(find_program("kwok")),
        f"--kubeconfig={kubeconfig}",
        "--manage-all-nodes=false",
        # Karpenter's KWOK provider puts this on its nodes; tests may on theirs.
        "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake",
        f"--node-lease-duration-seconds={_LEASE_SECONDS}",
        *(f"--config={stage}" for stage in stages),
    ]
    return Process("kwok", command, folder=folder, lifeline=lifeline)

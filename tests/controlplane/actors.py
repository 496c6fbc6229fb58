"""The programs that act on what the API server stores: kube-scheduler, kube-controller-manager, KWOK and Karpenter.

Made by `ControlPlane`. Only Karpenter serves something: that the others work shows in what they do.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.controlplane.ports import LOOPBACK, free_port
from tests.controlplane.process import Process
from tests.controlplane.programs import find_data

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

# Their own limits (50 and 20 requests a second) are for shared clusters and would be what a
# test with a thousand pods waits for.
_QPS = 1000
# KWOK renews leases every quarter of this; its usual 40 s would be a hundred writes a second for a thousand nodes.
_LEASE_SECONDS = 120
# Longer than the leases, so that a busy machine does not make nodes look lost.
_NODE_GRACE = "180s"


@dataclass(frozen=True)
class KarpenterOptions:
    """What may differ from one Karpenter to the next."""

    # Names of gates to turn on. CapacityBuffer is left off on purpose: with it, Karpenter
    # fills buffers itself and headroom stands down.
    feature_gates: tuple[str, ...] = ("NodeOverlay", "StaticCapacity")
    # A catalog in the format of the KWOK provider; None is the built-in one (144 types).
    instance_types: Path | None = None


GATE = KarpenterOptions(feature_gates=("CapacityBuffer", "NodeOverlay", "StaticCapacity"))
"""With its gate on, Karpenter serves every CapacityBuffer."""


class Karpenter(Process):
    """With its KWOK cloud provider."""

    def __init__(self, folder: Path, kubeconfig: Path, options: KarpenterOptions) -> None:
        """Nothing runs yet."""
        metrics_port, health_port = free_port(), free_port()
        self.metrics_url = f"http://{LOOPBACK}:{metrics_port}/metrics"
        environment = {
            "KUBECONFIG": str(kubeconfig),
            "DISABLE_LEADER_ELECTION": "true",
            "KARPENTER_SERVICE": "karpenter",
            "SYSTEM_NAMESPACE": "kube-system",
            "METRICS_PORT": str(metrics_port),
            "HEALTH_PROBE_PORT": str(health_port),
            "FEATURE_GATES": ",".join(f"{gate}=true" for gate in options.feature_gates),
            "KUBE_CLIENT_QPS": str(_QPS),
            "KUBE_CLIENT_BURST": str(2 * _QPS),
        }
        if options.instance_types is not None:
            # Karpenter itself only logs a file that it cannot read, and goes on with no types.
            json.loads(options.instance_types.read_text())
            environment["INSTANCE_TYPES_FILE_PATH"] = str(options.instance_types.resolve())
        ready = f"http://{LOOPBACK}:{health_port}/readyz"
        super().__init__("karpenter", [], folder=folder, environment=environment, ready=ready)


def _scheduler(folder: Path, kubeconfig: Path) -> list[str]:
    """With its default plugins."""
    config = folder / "scheduler.json"
    config.write_text(
        json.dumps(
            {
                "apiVersion": "kubescheduler.config.k8s.io/v1",
                "kind": "KubeSchedulerConfiguration",
                "leaderElection": {"leaderElect": False},
                "clientConnection": {"kubeconfig": str(kubeconfig), "qps": _QPS, "burst": 2 * _QPS},
            }
        )
    )
    return [
        f"--config={config}",
        "--secure-port=0",
        # Preemption beside the scheduling cycle now and then leaves a pod waiting for five minutes for room that is free
        # (kubernetes/kubernetes#141694).
        "--feature-gates=SchedulerAsyncPreemption=false",
    ]


def _controller_manager(folder: Path, kubeconfig: Path) -> list[str]:
    """With all the controllers that are on by default."""
    return [
        f"--kubeconfig={kubeconfig}",
        "--leader-elect=false",
        # Each controller as a service account of its own: that is where the cluster's RBAC
        # bootstrap puts their rights.
        "--use-service-account-credentials=true",
        "--secure-port=0",
        f"--root-ca-file={folder / 'certs' / 'apiserver.crt'}",
        f"--kube-api-qps={_QPS}",
        f"--kube-api-burst={2 * _QPS}",
        f"--node-monitor-grace-period={_NODE_GRACE}",
        f"--node-startup-grace-period={_NODE_GRACE}",
    ]


def _kwok(_folder: Path, kubeconfig: Path) -> list[str]:
    """With the stages that make nodes Ready and pods Running at once: it plays the kubelets of the nodes that Karpenter's provider makes."""
    return [
        f"--kubeconfig={kubeconfig}",
        "--manage-all-nodes=false",
        # Karpenter's KWOK provider puts this on its nodes; tests may on theirs.
        "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake",
        f"--node-lease-duration-seconds={_LEASE_SECONDS}",
        *(f"--config={stage}" for stage in sorted(find_data("kwok-stages").glob("*.yaml"))),
    ]


ACTORS: Mapping[str, Callable[[Path, Path], list[str]]] = {
    "kube-scheduler": _scheduler,
    "kube-controller-manager": _controller_manager,
    "kwok": _kwok,
}
"""Programs with what finds their arguments, from the folder of the control plane and their own kubeconfig. Karpenter comes after them."""
ALL_ACTORS = (*ACTORS, "karpenter")

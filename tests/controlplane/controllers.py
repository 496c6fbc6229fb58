"""kube-scheduler and kube-controller-manager as processes.

Made by `ControlPlane`. Neither serves anything: that they work shows in what they do.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.controlplane.process import Process
from tests.controlplane.programs import find_program

if TYPE_CHECKING:
    from pathlib import Path

    from tests.controlplane.lifeline import Lifeline

# Their own limits (50 and 20 requests a second) are for shared clusters and would be what a
# test with a thousand pods waits for.
_QPS = 1000
# Longer than KWOK's leases, so that a busy machine does not make nodes look lost.
_NODE_GRACE = "180s"


def scheduler(folder: Path, lifeline: Lifeline, *, kubeconfig: Path) -> Process:
    """kube-scheduler with its default plugins."""
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
    command = [
        str(find_program("kube-scheduler")),
        f"--config={config}",
        "--secure-port=0",
        # Preemption beside the scheduling cycle now and then leaves a pod waiting for five minutes for room that is free
        # (kubernetes/kubernetes#141694).
        "--feature-gates=SchedulerAsyncPreemption=false",
    ]
    return Process("kube-scheduler", command, folder=folder, lifeline=lifeline)


def controller_manager(folder: Path, lifeline: Lifeline, *, kubeconfig: Path) -> Process:
    """kube-controller-manager with all the controllers that are on by default."""
    command = [
        str(find_program("kube-controller-manager")),
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
    return Process("kube-controller-manager", command, folder=folder, lifeline=lifeline)

"""Karpenter with its KWOK cloud provider as a process.

Made by `ControlPlane`, which restarts it with other options when a test wants another catalog
or other feature gates.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import urllib3

from tests.controlplane.ports import LOOPBACK, free_port
from tests.controlplane.process import Process
from tests.controlplane.programs import find_program

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tests.controlplane.lifeline import Lifeline


@dataclass(frozen=True)
class KarpenterOptions:
    """What may differ from one Karpenter to the next."""

    # Names of gates to turn on. CapacityBuffer is left off on purpose: with it, Karpenter
    # fills buffers itself and headroom stands down.
    feature_gates: tuple[str, ...] = ("NodeOverlay", "StaticCapacity")
    # A catalog in the format of the KWOK provider; None is the built-in one (144 types).
    instance_types: Path | None = None
    # Further settings by environment variable (BATCH_IDLE_DURATION, LOG_LEVEL, …).
    environment: Mapping[str, str] = field(default_factory=dict)


class Karpenter:
    """One Karpenter at a time, on the same ports each time."""

    def __init__(self, folder: Path, lifeline: Lifeline, *, kubeconfig: Path) -> None:
        """Nothing runs yet."""
        self._folder = folder
        self._lifeline = lifeline
        self._kubeconfig = kubeconfig
        self._metrics_port = free_port()
        self._health_port = free_port()
        self._process: Process | None = None

    @property
    def metrics_url(self) -> str:
        """Where it serves its metrics."""
        return f"http://{LOOPBACK}:{self._metrics_port}/metrics"

    def start(self, options: KarpenterOptions) -> None:
        """Start it and return at once."""
        self._process = Process(
            "karpenter",
            [str(find_program("karpenter"))],
            folder=self._folder,
            lifeline=self._lifeline,
            environment=self._environment(options),
        )
        self._process.start()

    def wait_until_ready(self) -> None:
        """Wait until its controllers run."""
        if self._process is not None:
            url = f"http://{LOOPBACK}:{self._health_port}/readyz"
            self._process.wait_until(lambda: _answers(url))

    def stop(self) -> None:
        """Stop it, if it runs."""
        if self._process is not None:
            self._process.stop()

    def _environment(self, options: KarpenterOptions) -> dict[str, str]:
        environment = {
            "KUBECONFIG": str(self._kubeconfig),
            "DISABLE_LEADER_ELECTION": "true",
            "KARPENTER_SERVICE": "karpenter",
            "SYSTEM_NAMESPACE": "kube-system",
            "METRICS_PORT": str(self._metrics_port),
            "HEALTH_PROBE_PORT": str(self._health_port),
            "FEATURE_GATES": ",".join(f"{gate}=true" for gate in options.feature_gates),
            "KUBE_CLIENT_QPS": "1000",
            "KUBE_CLIENT_BURST": "2000",
        }
        if options.instance_types is not None:
            # Karpenter itself only logs a file that it cannot read, and goes on with no types.
            json.loads(options.instance_types.read_text())
            environment["INSTANCE_TYPES_FILE_PATH"] = str(options.instance_types.resolve())
        return {**environment, **options.environment}


def _answers(url: str) -> bool:
    try:
        response = urllib3.request("GET", url, retries=False, timeout=2.0)
    except urllib3.exceptions.HTTPError:
        return False
    return response.status == 200

"""What one process costs that serves many clusters, one of which hangs.

    python -m tests.perf.served_clusters                          # 20 clusters of 200 nodes and 4,000 pods; some minutes
    python -m tests.perf.served_clusters --clusters 1 --nodes 5000

Each cluster's lists come from memory over HTTP (large_lists.py), all of them the same; each has an inventory of its own. The one that hangs takes
connections and says nothing.
"""

from __future__ import annotations

import argparse
import os
import re
import socket
import tempfile
import time
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import yaml

from tests.controlplane import eventually
from tests.controlplane.programs import find_data
from tests.controlplane.waiting import moments
from tests.kubeconfigs import write_kubeconfig
from tests.manifests import buffer
from tests.perf.large_lists import NAMESPACES, served
from tests.running_daemon import RunningDaemon

PODS_OF_A_NODE = 20
BUFFERS, CHUNKS = 20, 50
IDLE = 60.0
HANGS = "hangs"
_TICKS = os.sysconf("SC_CLK_TCK")


def buffers(count: int = BUFFERS) -> str:
    """For some of the Deployments of large_lists."""
    numbers = range(0, 7 * count, 7)
    return "".join(
        buffer(
            f"app-{number:05}",
            f"replicas: {CHUNKS}",
            of=f"scalableRef: {{apiGroup: apps, kind: Deployment, name: app-{number:05}}}",
            namespace=f"team-{number % NAMESPACES}",
        )
        for number in numbers
    )


class MeasuredDaemon(RunningDaemon):
    """And what the operating system says of it."""

    def __init__(self, work: Path, *words: str, environment: Mapping[str, str] | None = None) -> None:
        super().__init__(work, *words, environment=environment, suspend="true")
        self.began = time.monotonic()

    def cpu(self) -> float:
        """Seconds so far."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS

    def number(self, name: str) -> int:
        """Threads, VmRSS or VmHWM (the most so far), both in KiB."""
        found = re.search(rf"^{name}:\s+(\d+)", Path(f"/proc/{self.pid}/status").read_text(), re.MULTILINE)
        assert found is not None
        return int(found[1])

    def rate(self, seconds: float) -> float:
        """Percent of a core over so many seconds from now."""
        before, began = self.cpu(), time.monotonic()
        for _ in moments(within=seconds, every=1.0):
            pass
        return 100 * (self.cpu() - before) / (time.monotonic() - began)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.perf.served_clusters", description=__doc__)
    parser.add_argument("--clusters", type=int, default=20)
    parser.add_argument("--nodes", type=int, default=200)
    asked = parser.parse_args()
    pods = asked.nodes * PODS_OF_A_NODE
    with (
        tempfile.TemporaryDirectory() as folder,
        served(asked.nodes, pods, Path(folder)) as kubeconfig,
        closing(socket.create_server(("127.0.0.1", 0))) as silent,
    ):
        print(f"{asked.clusters} clusters of {asked.nodes:,} nodes and {pods:,} pods; one more hangs")
        _measure(Path(folder), kubeconfig, silent.getsockname()[1], asked.clusters)


def _measure(work: Path, kubeconfig: Path, silent_port: int, clusters: int) -> None:
    config = _settings(work, kubeconfig, silent_port, clusters)
    daemon = MeasuredDaemon(work, f"--config={config}")

    def rows() -> dict[str, dict[str, object]]:
        return {row["name"]: row for row in daemon.status()["clusters"]}

    def planned() -> bool:
        found = [row for name, row in rows().items() if name != HANGS]
        assert all(not row["why"] and row["wanted"] for row in found), [row["why"] for row in found if row["why"]][:3]
        return True

    with daemon:
        eventually(planned, within=300, what="every other cluster has been planned", every=0.5)
        wall, cpu = time.monotonic() - daemon.began, daemon.cpu()
        print(f"first passes    {wall:6.1f} s, {cpu:.1f} s of CPU; peak {daemon.number('VmHWM') / 1024:,.0f} MiB")
        daemon.rate(20)
        idle, resting = daemon.rate(IDLE), daemon.number("VmRSS") / 1024
        print(f"idle            {idle:6.2f}% of a core, {resting:,.0f} MiB, {daemon.number('Threads')} threads")
        print(f"the one that hangs: {rows()[HANGS]['why']}")


def _settings(work: Path, kubeconfig: Path, silent_port: int, clusters: int) -> Path:
    repository = work / "repository"
    repository.mkdir()
    (repository / "buffers.yaml").write_text(buffers())
    hanging = write_kubeconfig(work / "hanging.kubeconfig", f"http://127.0.0.1:{silent_port}")
    names = [f"cluster-{number:02}" for number in range(clusters)]
    several = [{"name": name, "kubeconfig": str(kubeconfig), "inventory": {"name": name}} for name in names]
    config = work / "headroom.yaml"
    settings = {
        "repository": str(repository),
        "catalog": str(find_data("instance_types.json")),
        "clusters": [*several, {"name": HANGS, "kubeconfig": str(hanging)}],
    }
    config.write_text(yaml.safe_dump(settings))
    return config


if __name__ == "__main__":
    main()

"""What one process costs that serves many clusters, one of which hangs.

python -m tests.perf.served_clusters                          # 20 clusters of 200 nodes and 4,000 pods; some minutes
python -m tests.perf.served_clusters --clusters 5 --nodes 50

Each cluster's lists come from memory (`canned_lists.py`), all of them the same; each has an inventory of its own. The one that hangs takes
connections and says nothing.
"""

from __future__ import annotations

import argparse
import json
import socket
import sys
import tempfile
import time
import urllib.request
from contextlib import closing
from pathlib import Path

import yaml

from tests.controlplane import eventually
from tests.controlplane.ports import free_port
from tests.controlplane.programs import find_data
from tests.perf import canned_lists
from tests.perf.served_cluster import IDLE, buffers, running
from tests.perf.stored_cluster import large_cluster

PODS_OF_A_NODE = 20
HANGS = "hangs"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.perf.served_clusters", description=__doc__)
    parser.add_argument("--clusters", type=int, default=20)
    parser.add_argument("--nodes", type=int, default=200)
    asked = parser.parse_args()
    objects = large_cluster(nodes=asked.nodes, pods=asked.nodes * PODS_OF_A_NODE)
    with (
        tempfile.TemporaryDirectory() as folder,
        canned_lists.served(objects, Path(folder)) as kubeconfig,
        closing(socket.create_server(("127.0.0.1", 0))) as silent,
    ):
        print(
            f"{asked.clusters} clusters of {asked.nodes:,} nodes and {asked.nodes * PODS_OF_A_NODE:,} pods; one more hangs"
        )
        _measure(Path(folder), kubeconfig, silent.getsockname()[1], asked.clusters)


def _measure(work: Path, kubeconfig: Path, silent_port: int, clusters: int) -> None:
    address = f"127.0.0.1:{free_port()}"
    config = _settings(work, kubeconfig, silent_port, address, clusters)
    command = [str(Path(sys.executable).with_name("headroom")), "run", "--config", str(config)]

    def rows() -> dict[str, dict[str, object]]:
        with urllib.request.urlopen(f"http://{address}/status", timeout=30) as answer:
            return {row["name"]: row for row in json.load(answer)["clusters"]}

    def planned() -> bool:
        found = [row for name, row in rows().items() if name != HANGS]
        assert all(not row["why"] and row["wanted"] for row in found), [row["why"] for row in found if row["why"]][:3]
        return True

    with running(command, {}, work / "daemon.log") as daemon:
        eventually(planned, within=100, what="every other cluster has been planned", every=0.5)
        wall, cpu = time.monotonic() - daemon.began, daemon.cpu()
        print(
            f"first passes    {wall:6.1f} s, of them {cpu:.1f} s of its own CPU; peak {daemon.memory('VmHWM'):,.0f} MiB"
        )
        daemon.rate(20)
        print(
            f"idle            {daemon.rate(IDLE):6.2f}% of a core, {daemon.memory('VmRSS'):,.0f} MiB, {daemon.threads()} threads"
        )
        print(f"the one that hangs: {rows()[HANGS]['why']}")


def _settings(work: Path, kubeconfig: Path, silent_port: int, address: str, clusters: int) -> Path:
    repository = work / "repository"
    repository.mkdir()
    (repository / "buffers.yaml").write_text("---\n".join(buffers()))
    hanging = work / "hanging.kubeconfig"
    document = json.loads(kubeconfig.read_text())
    document["clusters"][0]["cluster"]["server"] = f"http://127.0.0.1:{silent_port}"
    hanging.write_text(json.dumps(document))
    served = [
        {"name": f"cluster-{number:02}", "kubeconfig": str(kubeconfig), "inventory": {"name": f"cluster-{number:02}"}}
        for number in range(clusters)
    ]
    config = work / "headroom.yaml"
    settings = {
        "repository": str(repository),
        "catalog": str(find_data("instance_types.json")),
        "listen": address,
        "suspend": True,
        "logs": {"form": "json"},
        "clusters": [*served, {"name": HANGS, "kubeconfig": str(hanging)}],
    }
    config.write_text(yaml.safe_dump(settings))
    return config


if __name__ == "__main__":
    main()

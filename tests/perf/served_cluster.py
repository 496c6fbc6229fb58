"""The first pass on a large cluster of a real API server: wall time, headroom's own CPU and the server's.

    python -m tests.perf.served_cluster                              # 5,000 nodes and 150,000 pods; some minutes
    python -m tests.perf.served_cluster --nodes 1000 --pods 30000
    python -m tests.perf.served_cluster --buffers 500                # what these take beside it

Objects are those of large_lists.py. They are written to etcd as JSON, since asking the server for each would take an hour. The daemon is
suspended: it plans as always but writes nothing.
"""

from __future__ import annotations

import argparse
import base64
import compileall
import json
import os
import re
import tempfile
import time
from pathlib import Path

import urllib3

import reconciler
from reconciler.cluster.resources import RESOURCES
from tests.controlplane import ControlPlane, eventually
from tests.controlplane.programs import find_data
from tests.perf.large_lists import objects
from tests.perf.served_clusters import BUFFERS, IDLE, MeasuredDaemon, buffers

_BATCH = 50
_AT_REST = 0.2
"""CPU seconds that the server uses in two seconds, once it does nothing but wait."""
_CHANGED = {"metadata": {"labels": {"seen": "yes"}}}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.perf.served_cluster", description=__doc__)
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=150_000)
    parser.add_argument("--buffers", type=int, default=BUFFERS, help="of 50 chunks each")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, ControlPlane(actors=()) as plane:
        fill(plane, asked.nodes, asked.pods)
        # Pods of a real cluster change all the time. Where none has changed since etcd was last compacted, the server has no snapshot in
        # memory to make further pages from.
        plane.api.patch("v1", "Pod", "app-00000-0-00000", _CHANGED, namespace="team-0")
        print(f"{asked.nodes:,} nodes, {asked.pods:,} pods; load {os.getloadavg()[0]:.1f}", flush=True)
        measure(plane, Path(folder), asked.buffers)


def fill(plane: ControlPlane, nodes: int, pods: int) -> None:
    """Writes the objects to etcd, and waits until the API server knows every pod."""
    pool, kinds = urllib3.PoolManager(), {each.plural: each for each in RESOURCES}
    batch: list[dict[str, dict[str, str]]] = []

    def put() -> None:
        answer = pool.request("POST", f"{plane.etcd_url}/v3/kv/txn", json={"success": batch})
        assert answer.status == 200, answer.data[:500]
        batch.clear()

    for plural, text in objects(nodes, pods):
        kind, document = kinds[plural], json.loads(text)
        metadata = document["metadata"]
        folder = "minions" if plural == "nodes" else plural if kind.builtin else f"{kind.group}/{plural}"
        key = "/".join(filter(None, ("/registry", folder, metadata.get("namespace"), metadata["name"])))
        document |= {"apiVersion": "/".join(filter(None, (kind.group, kind.versions[0]))), "kind": kind.kind}
        batch.append({"requestPut": {"key": _coded(key), "value": _coded(json.dumps(document))}})
        if len(batch) == _BATCH:
            put()
    put()

    # A list says how many there are before the server itself has them all: on a busy machine it asks etcd in place of its cache.
    events = r'apiserver_watch_cache_events_received_total\{group="",resource="pods"\}'
    eventually(lambda: _metric(plane, events) >= pods, within=600, what="the API server knows every pod", every=1.0)
    seen = [_server_cpu(plane)]

    def rests() -> bool:
        seen.append(_server_cpu(plane))
        return seen[-1] - seen[-2] < _AT_REST

    eventually(rests, within=120, what="the API server has cleared up after the filling", every=2.0)


def _coded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def measure(plane: ControlPlane, work: Path, count: int) -> None:
    repository = work / "repository"
    repository.mkdir()
    (repository / "buffers.yaml").write_text(buffers(count))
    compileall.compile_dir(reconciler.__path__[0], quiet=1)  # as in the image
    words = (f"--repo={repository}", "--cluster=kubeconfig", f"--catalog={find_data('instance_types.json')}")
    daemon = MeasuredDaemon(work, *words, environment={"KUBECONFIG": str(plane.kubeconfig())})
    before = _server_cpu(plane)
    with daemon:
        eventually(
            lambda: daemon.status()["result"] == "ok", within=900, what="the first pass has succeeded", every=0.2
        )
        wall, own = time.monotonic() - daemon.began, daemon.cpu()
        print(
            f"first pass  {wall:6.1f} s; CPU: {own:.1f} s of its own, {_server_cpu(plane) - before:.1f} s of the API server's"
        )
        print(f"peak        {daemon.number('VmHWM') / 1024:6,.0f} MiB", flush=True)
        daemon.rate(20)
        print(f"idle        {daemon.rate(IDLE):6.2f}% of a core, {daemon.number('VmRSS') / 1024:,.0f} MiB")


def _server_cpu(plane: ControlPlane) -> float:
    """Seconds so far."""
    return _metric(plane, "process_cpu_seconds_total")


def _metric(plane: ControlPlane, name: str) -> float:
    """name: with its labels, as a regular expression; 0 for a metric that is not there yet."""
    found = re.search(rf"^{name} (\S+)$", plane.api.request("GET", "/metrics").decode(), re.MULTILINE)
    return float(found[1]) if found else 0.0


if __name__ == "__main__":
    main()

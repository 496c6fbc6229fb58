"""What the daemon costs on a large cluster of a real API server: first pass, memory, and idling.

python -m tests.perf.served_cluster                              # 5,000 nodes and 150,000 pods; some minutes
python -m tests.perf.served_cluster --nodes 1000 --pods 30000
python -m tests.perf.served_cluster --canned                      # no API server: lists come from memory
python -m tests.perf.served_cluster --headroom ../other/.venv/bin/headroom   # one after the other, on the same cluster

The daemon is suspended: it plans as always but writes nothing, so that each run finds the same cluster.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path

import urllib3

from tests.controlplane import ControlPlane, eventually
from tests.controlplane.ports import free_port
from tests.controlplane.programs import find_data
from tests.controlplane.waiting import moments
from tests.perf import canned_lists
from tests.perf.stored_cluster import NAMESPACES, Stored, large_cluster

BUFFERS, CHUNKS = 20, 50
IDLE = 60.0
HEARTBEATS = 17
"""Node statuses a second: kubelets of 5,000 nodes write theirs every five minutes if nothing changes."""
BUFFER = """\
apiVersion: autoscaling.x-k8s.io/v1beta1
kind: CapacityBuffer
metadata: {{name: app-{number:05}, namespace: team-{team}}}
spec:
  scalableRef: {{apiGroup: apps, kind: Deployment, name: app-{number:05}}}
  replicas: {replicas}
"""
_TICKS = os.sysconf("SC_CLK_TCK")
_MOST_BYTES = 1_000_000
"""Of one transaction; etcd takes 1.5 MB, with base64 around them."""


def store(etcd_url: str, objects: Iterable[Stored]) -> int:
    """Writes all of them; returns how many bytes they have."""
    pool, total = urllib3.PoolManager(), 0

    def put(batch: list[Stored]) -> None:
        puts = [{"requestPut": {"key": _coded(key), "value": _coded(text)}} for key, text in batch]
        answer = pool.request("POST", f"{etcd_url}/v3/kv/txn", json={"success": puts})
        assert answer.status == 200, answer.data[:500]

    batch: list[Stored] = []
    size = 0
    for key, text in objects:
        if size + len(text) > _MOST_BYTES or len(batch) == 100:
            put(batch)
            batch, size = [], 0
        batch.append((key, text))
        size += len(text)
        total += len(text)
    put(batch)
    return total


def _coded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


class Running:
    """A daemon as a process, and what the operating system says of it."""

    def __init__(self, command: list[str], environment: dict[str, str], log: Path) -> None:
        self._log = log
        self.began = time.monotonic()
        with log.open("wb") as file:
            self.process = subprocess.Popen(command, env={**os.environ, **environment}, stdout=file, stderr=file)

    def cpu(self) -> float:
        """Seconds so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS

    def memory(self, name: str) -> float:
        """MiB: VmRSS, or VmHWM, the most so far."""
        return self._number(name) / 1024

    def threads(self) -> int:
        return self._number("Threads")

    def _number(self, name: str) -> int:
        found = re.search(rf"^{name}:\s+(\d+)", Path(f"/proc/{self.process.pid}/status").read_text(), re.MULTILINE)
        assert found is not None
        return int(found[1])

    def rate(self, seconds: float) -> float:
        """Percent of a core over so many seconds from now."""
        before, began = self.cpu(), time.monotonic()
        for _ in moments(within=seconds, every=1.0):
            pass
        return 100 * (self.cpu() - before) / (time.monotonic() - began)

    def wait_until_ready(self, address: str) -> None:
        def ready() -> bool:
            if self.process.poll() is not None:
                sys.exit(f"the daemon ended:\n{self._log.read_text()[-3000:]}")
            with urllib.request.urlopen(f"http://{address}/status", timeout=5) as answer:
                return bool(json.load(answer)["result"] == "ok")

        eventually(ready, within=900, what="the first pass has succeeded", every=0.05)


@contextmanager
def running(command: list[str], environment: dict[str, str], log: Path) -> Iterator[Running]:
    started = Running(command, environment, log)
    try:
        yield started
    finally:
        started.process.terminate()
        started.process.wait(timeout=60)


def sent(plane: ControlPlane | None) -> dict[str, float]:
    """Bytes of bodies that the API server has sent so far, as they were sent (compressed), by what was listed."""
    text = "" if plane is None else plane.api.request("GET", "/metrics").decode()
    rows = re.findall(r"^apiserver_response_sizes_sum\{(.*?)\} (\S+)$", text, re.MULTILINE)
    totals: dict[str, float] = {}
    for labels, value in rows:
        found = dict(re.findall(r'(\w+)="(.*?)"', labels))
        if found["verb"] == "LIST":
            totals[found["resource"]] = totals.get(found["resource"], 0.0) + float(value)
    return totals


def figures(headroom: str, kubeconfig: Path, work: Path, plane: ControlPlane | None, nodes: int) -> None:
    """plane: None for lists from memory, where nobody beats."""
    address = f"127.0.0.1:{free_port()}"
    environment = {
        "KUBECONFIG": str(kubeconfig),
        "HEADROOM_LISTEN": address,
        "HEADROOM_SUSPEND": "true",
        "HEADROOM_LOGS_FORM": "json",
    }
    command = [headroom, "run", f"--repo={work / 'repository'}", "--cluster=kubeconfig"]
    command.append(f"--catalog={find_data('instance_types.json')}")
    before = sent(plane)
    with running(command, environment, work / "daemon.log") as daemon:
        daemon.wait_until_ready(address)
        wall, cpu, peak = time.monotonic() - daemon.began, daemon.cpu(), daemon.memory("VmHWM")
        print(f"first pass      {wall:6.1f} s, of them {cpu:.1f} s of its own CPU; peak {peak:,.0f} MiB")
        after = sent(plane)
        total = sum(after.values()) - sum(before.values())
        most = sorted(((size - before.get(name, 0.0), name) for name, size in after.items()), reverse=True)[:4]
        listed = ", ".join(f"{name} {size / 2**20:,.0f}" for size, name in most)
        if plane is not None:
            print(f"listed          {total / 2**20:6,.0f} MiB on the wire: {listed}")
        daemon.rate(20)
        idle, resting = daemon.rate(IDLE), daemon.memory("VmRSS")
        print(f"idle            {idle:6.2f}% of a core, {resting:,.0f} MiB", flush=True)
        if plane is not None:
            load = beating(plane, daemon, nodes)
            print(f"{HEARTBEATS} heartbeats/s {load:6.2f}% of a core, {daemon.memory('VmRSS'):,.0f} MiB", flush=True)


def wait_until_served(plane: ControlPlane, pods: int) -> None:
    def served() -> bool:
        first = plane.api.document("GET", "/api/v1/pods", query={"limit": "1"})
        return bool(first["metadata"].get("remainingItemCount") == pods - 1)

    eventually(served, within=600, what="the API server knows every pod", every=1.0)


def beating(plane: ControlPlane, daemon: Running, nodes: int) -> float:
    """Percent of a core while kubelets report that nothing has changed."""
    before, began = daemon.cpu(), time.monotonic()
    numbers = count()
    for _ in moments(within=IDLE, every=1.0):
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        ready = {
            "type": "Ready",
            "status": "True",
            "lastHeartbeatTime": now,
            "lastTransitionTime": "2026-11-01T08:00:00Z",
        }
        for _ in range(HEARTBEATS):
            name = f"node-{next(numbers) % nodes:05}"
            plane.api.patch("v1", "Node", name, {"status": {"conditions": [ready]}}, subresource="status")
    return 100 * (daemon.cpu() - before) / (time.monotonic() - began)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.perf.served_cluster", description=__doc__)
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=150_000)
    parser.add_argument("--headroom", action="append", help="which command to measure; may be given again")
    parser.add_argument("--canned", action="store_true", help="lists from memory: what headroom alone costs")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        work, plane = Path(folder), None
        repository = work / "repository"
        repository.mkdir()
        (repository / "buffers.yaml").write_text("---\n".join(buffers()))
        objects = large_cluster(nodes=asked.nodes, pods=asked.pods)
        if asked.canned:
            kubeconfig = stack.enter_context(canned_lists.served(objects, work))
        else:
            plane = stack.enter_context(ControlPlane.api_only())
            size = store(plane.etcd_url, objects)
            wait_until_served(plane, asked.pods)
            print(f"{size / 2**20:,.0f} MiB in etcd")
            kubeconfig = plane.kubeconfig()
        print(f"{asked.nodes:,} nodes, {asked.pods:,} pods", flush=True)
        for headroom in asked.headroom or [str(Path(sys.executable).with_name("headroom"))]:
            print(headroom)
            figures(headroom, kubeconfig, work, plane, asked.nodes)


def buffers() -> list[str]:
    return [BUFFER.format(number=each * 7, team=each * 7 % NAMESPACES, replicas=CHUNKS) for each in range(BUFFERS)]


if __name__ == "__main__":
    main()

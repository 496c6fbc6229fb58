"""One process that serves several clusters: one of them hangs, and the others neither wait for it nor lose their pages."""

from __future__ import annotations

import socket
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from tests.controlplane.waiting import eventually
from tests.git_repository import GitRepository
from tests.integration.git_server import GitHttpServer
from tests.kubeconfigs import write_kubeconfig
from tests.manifests import buffer, node_pool, pod_template
from tests.running_daemon import RunningDaemon

CHUNKS = {"production": 3, "staging": 2, "hangs": 1}


class Daemon(RunningDaemon):
    """With three clusters, two of them embedded; the API server of the third takes connections and says nothing."""

    def __init__(self, git: GitHttpServer, work: Path, silent_port: int) -> None:
        hangs = write_kubeconfig(work / "hangs.kubeconfig", f"http://127.0.0.1:{silent_port}")
        embedded = {"cluster": "embedded"}
        own = {"production": embedded, "staging": embedded, "hangs": {"kubeconfig": str(hangs)}}
        settings = {
            "repository": git.url,
            "git": {"interval": "2s"},
            "clusters": [{"name": name, "path": f"clusters/{name}", **more} for name, more in own.items()],
        }
        (work / "headroom.yaml").write_text(yaml.safe_dump(settings))
        super().__init__(work, "--config", str(work / "headroom.yaml"))

    def clusters(self) -> dict[str, Any]:
        return {row["name"]: row for row in self.status()["clusters"]}


@pytest.fixture
def git(tmp_path: Path) -> Iterator[GitHttpServer]:
    repository = GitRepository(tmp_path)
    files = {f"clusters/{name}/pool.yaml": node_pool() for name in CHUNKS}
    files |= {
        f"clusters/{name}/web.yaml": pod_template() + buffer(size=f"replicas: {chunks}")
        for name, chunks in CHUNKS.items()
    }
    repository.push(files)
    with GitHttpServer(repository.served) as server:
        yield server


@pytest.fixture
def daemon(git: GitHttpServer, tmp_path: Path) -> Iterator[Daemon]:
    with (
        closing(socket.create_server(("127.0.0.1", 0))) as silent,
        Daemon(git, tmp_path, silent.getsockname()[1]) as running,
    ):
        yield running
        assert running.stop() == 0


def test_a_cluster_that_hangs_delays_no_other(daemon: Daemon) -> None:
    def full() -> bool:
        found = daemon.clusters()
        assert {name: row["ready"] for name, row in found.items()} == {"production": 3, "staging": 2, "hangs": 0}
        return True

    eventually(full, within=60, what="the buffers of both others are full")
    ready = daemon.fetch("/readyz")
    assert ready.startswith("2 of 3 clusters; hangs: "), ready
    assert daemon.fetch("/healthz") == "ok\n"
    assert daemon.clusters()["hangs"]["why"]

    page = daemon.fetch("/")
    assert "of 3 clusters needs attention" in page
    assert page.index("clusters/hangs/") < page.index("clusters/production/"), "the one that fails comes first"
    own = daemon.fetch("/clusters/staging/CapacityBuffer/shop/web")
    assert '<a href="../../../../">All clusters</a>' in own
    with pytest.raises(urllib.error.HTTPError, match="404"):
        daemon.fetch("/clusters/absent/status")

    families = text_string_to_metric_families(daemon.fetch("/metrics"))
    fills = {
        sample.labels["cluster"]: sample.value
        for family in families
        if family.name == "headroom_buffer_fill_ratio"
        for sample in family.samples
    }
    assert fills == {"production": 1, "staging": 1}

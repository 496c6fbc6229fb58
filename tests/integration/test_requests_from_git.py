"""Requests of a real Git repository, the daemon's passes over the embedded cluster: each runs once, and is collected when it has ended."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from pathlib import Path

import pytest
import yaml

from reconciler.clocks import SystemClock
from reconciler.cluster.embedded.cluster import EmbeddedCluster
from reconciler.cluster.embedded.karpenter import Delays
from reconciler.daemon.daemon import Daemon, Listeners, Timing
from reconciler.model.provisioning_requests import RequestRules
from reconciler.model.refs import ObjectRef
from reconciler.ports import PassResult
from reconciler.settings.settings import GitSettings, Settings
from reconciler.source.state import LatestTree
from reconciler.timetable.agenda import Pacing
from reconciler.wiring.cluster import open_catalog
from reconciler.wiring.repository import open_source
from reconciler.wiring.session import make_cycle
from tests.controlplane.waiting import eventually
from tests.fakes.embedded import Document, node_pool
from tests.fakes.requests import ATOMIC, FOUR, pod_template, request, request_ref
from tests.integration.git_repository import GitRepository

SHORT = timedelta(seconds=1)
SOON = timedelta(milliseconds=50)


class Running:
    """A daemon's passes in a thread."""

    def __init__(self, settings: Settings, cluster: EmbeddedCluster, stack: ExitStack) -> None:
        self.passes: list[PassResult] = []
        clock = SystemClock()
        source = LatestTree(open_source(settings, clock))
        stack.callback(source.close)
        cycle = make_cycle(
            settings, source=source, cluster=cluster, catalog=open_catalog(settings, cluster, clock), clock=clock
        )
        self._daemon = Daemon(
            run_pass=lambda trigger: cycle.run(trigger.value),
            poll_source=source.poll,
            clock=clock,
            timing=Timing(poll=SHORT, tick=SHORT, pacing=Pacing(quiet=SOON, quiet_at_most=SOON)),
            listeners=Listeners(on_result=lambda _, result: self.passes.append(result)),
            next_edge=cycle.next_edge,
        )
        cluster.start(self._daemon.changed)
        thread = threading.Thread(target=self._daemon.run)
        stack.callback(thread.join)
        stack.callback(self._daemon.stop)
        thread.start()

    def poll(self) -> None:
        self._daemon.poll_now()


class BatchRepository:
    """A repository with a NodePool and a PodTemplate, and a cluster that is empty at first."""

    def __init__(self, folder: Path) -> None:
        self.git = GitRepository(folder)
        self.settings = Settings(
            repository=self.git.url,
            revision="main",
            cluster="embedded",
            git=GitSettings(interval=SHORT),
            requests=RequestRules(booked_for=SHORT, kept_for=SHORT),
        )
        self.cluster = EmbeddedCluster(SystemClock(), delays=Delays(SOON, SOON, SOON), instance_types=(FOUR,))
        self.cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})
        self.push(pool=node_pool(consolidate_after="0s"), template=pod_template())

    def push(self, **documents: Document) -> str:
        return self.git.push({f"{name}.yaml": yaml.safe_dump(document) for name, document in documents.items()})

    @contextmanager
    def daemon(self) -> Iterator[Running]:
        with ExitStack() as stack:
            yield Running(self.settings, self.cluster, stack)

    def has(self, condition: str, name: str = "train") -> bool:
        live = self.cluster.get(request_ref(name)) or {}
        conditions = (live.get("status") or {}).get("conditions") or ()
        return any((item["type"], item["status"]) == (condition, "True") for item in conditions)

    def is_gone(self, ref: ObjectRef) -> bool:
        return self.cluster.get(ref) is None


@pytest.fixture
def repository(tmp_path: Path) -> Iterator[BatchRepository]:
    repository = BatchRepository(tmp_path)
    yield repository
    repository.cluster.close()


def seen(daemon: Running, commit: str) -> None:
    """Until a pass has planned and applied this commit."""
    daemon.poll()
    eventually(
        lambda: any(found.plan is not None and (found.plan.revision or "").endswith(commit) for found in daemon.passes),
        within=30,
        what=f"a pass over {commit}",
    )


def test_one_that_has_ended_is_collected_and_never_comes_back(repository: BatchRepository) -> None:
    repository.push(train=request(count=3, class_name=ATOMIC))
    with repository.daemon() as daemon:
        eventually(lambda: repository.has("Provisioned"), within=30, what="the request is provisioned")
        eventually(lambda: repository.has("BookingExpired"), within=30, what="its booking has ended")
        eventually(lambda: repository.is_gone(request_ref()), within=30, what="its object is collected")
        eventually(lambda: not repository.cluster.view().node_claims, within=30, what="its nodes are gone")
        seen(daemon, repository.push(other=pod_template("other")))
    with repository.daemon() as restarted:
        seen(restarted, repository.push(other=pod_template("other", cpu="2")))
        assert repository.is_gone(request_ref())
        assert not repository.cluster.view().node_claims
        created = [claim for found in restarted.passes if found.plan for claim in found.plan.node_claims.create]
        assert created == []
        repository.push(again=request("train-2", count=3, class_name=ATOMIC))
        restarted.poll()
        eventually(lambda: repository.has("Provisioned", "train-2"), within=30, what="one of a new name runs")
        assert repository.is_gone(request_ref())

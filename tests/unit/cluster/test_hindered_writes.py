"""Writes are judged one by one, right before each is sent: a replica that stops or lost its lead writes no more."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from reconciler.cluster.apply import carry_out
from reconciler.cluster.connection import Connection
from reconciler.cluster.discovery import Served
from reconciler.cluster.events import EventLog
from reconciler.cluster.lease import KubernetesLeases, LeaseRecord
from reconciler.cluster.writes import Writer
from reconciler.model.changes import Apply, Outcome, Write, WriteResult
from reconciler.model.errors import Transient, Waiting
from reconciler.model.refs import ObjectRef
from reconciler.model.view import ClusterView
from reconciler.ports import Event
from tests.fakes.cluster import PARENT, FakeCluster
from tests.unit.cluster.scripted_server import Reply, Script, serving, status
from tests.unit.cluster.test_watch import KnownDiscovery

POD_TEMPLATES = {("", "PodTemplate"): Served("podtemplates", ("v1",), namespaced=True)}
CONFIG_MAPS = {("", "ConfigMap"): Served("configmaps", ("v1",), namespaced=True)}
MANY = 97


def template(number: int) -> Apply:
    ref = ObjectRef("", "PodTemplate", "shop", f"t-{number}")
    return Apply(ref, {"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": ref.name, "namespace": "shop"}})


@dataclass
class Wired(FakeCluster):
    """Its writes go to the scripted server."""

    writer: Writer | None = None

    def write(self, write: Write, *, dry_run: bool = False) -> WriteResult:
        assert self.writer is not None
        return self.writer.write(write, dry_run=dry_run)


@contextmanager
def wired(script: Script) -> Iterator[tuple[Wired, Connection]]:
    with serving(script) as connection:
        discovery = KnownDiscovery(connection, POD_TEMPLATES | CONFIG_MAPS)
        yield Wired(writer=Writer(connection, discovery, lambda _ref, _version: None)), connection


def writes_in(script: Script) -> list[str]:
    return [path for path in script.asked if "fieldManager" in path and "dryRun" not in path]


@pytest.mark.parametrize("why", ["another replica leads", "headroom is stopping"])
def test_a_pass_writes_no_more_once_something_hinders_it(why: str) -> None:
    script = Script([Reply(201, {"kind": "PodTemplate", "metadata": {"resourceVersion": "1"}})])
    with wired(script) as (cluster, connection):
        connection.write_only_unless(lambda: why if len(writes_in(script)) >= 4 else "")

        done = carry_out(
            cluster, [template(number) for number in range(MANY)], parent=PARENT, view=ClusterView(), memory={}
        )

    assert len(writes_in(script)) == 4
    skipped = [result for result in done.results if result.outcome is Outcome.SKIPPED]
    assert {result.message for result in skipped} == {why}
    assert not connection.is_writing


def test_no_event_is_recorded_either() -> None:
    script = Script([Reply(201, {})])
    with serving(script) as connection:
        connection.write_only_unless(lambda: "another replica leads")
        log = EventLog(connection, KnownDiscovery(connection, POD_TEMPLATES), lambda _ref: "")
        log.record(Event(ObjectRef("", "PodTemplate", "shop", "web"), "Normal", "Applied", "by nobody"))
    assert script.asked == []


def test_the_lease_is_written_all_the_same_and_everything_is_read() -> None:
    lease: dict[str, Any] = {"metadata": {"resourceVersion": "2"}, "spec": {"holderIdentity": "a"}}
    script = Script([Reply(201, lease)])
    with serving(script) as connection:
        connection.write_only_unless(lambda: "another replica leads")
        leases = KubernetesLeases(connection, "headroom-system", "headroom")
        assert leases.write(LeaseRecord("a")) is not None
        assert leases.read().holder == "a"
        with pytest.raises(Waiting, match="another replica leads"):
            connection.request("POST", "/api/v1/namespaces")


def test_a_write_under_way_is_seen() -> None:
    seen: list[bool] = []
    script = Script([Reply(201, {})])
    with serving(script) as connection:
        script.heard = lambda: seen.append(connection.is_writing)
        connection.request("GET", "/api")
        connection.request("POST", "/api/v1/namespaces")
    assert seen == [False, True]


def test_a_write_whose_credentials_are_refused_asks_again_before_it_is_repeated() -> None:
    """Reading new credentials takes time, in which another replica may have taken over."""
    script = Script([status(401), Reply(201, {})])
    with serving(script) as connection:
        connection.write_only_unless(lambda: "another replica leads" if script.asked else "")
        with pytest.raises(Waiting, match="another replica leads"):
            connection.request("POST", "/api/v1/namespaces")
    assert script.asked == ["/api/v1/namespaces"]


def test_a_write_is_given_up_before_another_replica_can_lead() -> None:
    script = Script([Reply(201, lines=[{"kind": "Namespace"}], hang=True)])
    with serving(script) as connection:
        connection.write_only_unless(lambda: "", lambda: 0.2)
        with pytest.raises(Transient, match="does not answer"):
            connection.request("POST", "/api/v1/namespaces")
        connection.write_only_unless(lambda: "", lambda: 0.0)
        with pytest.raises(Waiting, match="another replica may lead by now"):
            connection.request("POST", "/api/v1/namespaces")

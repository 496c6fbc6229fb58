"""Writes that are hindered, and the taints of nodes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from reconciler.cluster.apply import InventoryParent, carry_out
from reconciler.cluster.connection import Connection
from reconciler.cluster.discovery import Served
from reconciler.cluster.kubernetes import EventLog
from reconciler.cluster.lease import KubernetesLeases, LeaseRecord
from reconciler.cluster.resources import CONFIG_MAPS
from reconciler.cluster.view import ViewStore
from reconciler.cluster.writes import Writer, with_taints
from reconciler.model.changes import Annotate, Apply, Outcome, Write, WriteResult
from reconciler.model.errors import Transient, Waiting
from reconciler.model.nodes import HELD_TAINT
from reconciler.model.refs import ObjectRef
from reconciler.model.view import ClusterView
from reconciler.ports import Event
from tests.fakes.cluster import PARENT, FakeCluster
from tests.unit.cluster.scripted_server import Reply, Script, serving, status
from tests.unit.cluster.test_watch import KnownDiscovery

POD_TEMPLATES = {("", "PodTemplate"): Served("podtemplates", ("v1",), namespaced=True)}
SERVED_CONFIG_MAPS = {("", "ConfigMap"): Served("configmaps", ("v1",), namespaced=True)}
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
        discovery = KnownDiscovery(connection, POD_TEMPLATES | SERVED_CONFIG_MAPS)
        yield Wired(writer=Writer(connection, discovery, lambda _ref, _version: None)), connection


def writes_in(script: Script) -> list[str]:
    return [path for path in script.asked if "fieldManager" in path and "dryRun" not in path]


@pytest.mark.parametrize("why", ["another replica leads", "headroom is stopping"])
def test_a_pass_writes_no_more_once_something_hinders_it(why: str) -> None:
    script = Script([Reply(201, {"kind": "PodTemplate", "metadata": {"resourceVersion": "1"}})])
    with wired(script) as (cluster, connection):
        connection.write_only_unless(lambda: why if len(writes_in(script)) >= 4 else "")

        done = carry_out(
            cluster, [template(number) for number in range(MANY)], parent=PARENT, view=ClusterView(), records={}
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


OURS = {"key": "headroom.dev/held", "effect": "PreferNoSchedule"}
THEIRS = {"key": "dedicated", "value": "shop", "effect": "NoSchedule", "timeAdded": "2026-11-22T09:00:00Z"}
OTHER_EFFECT = {"key": "headroom.dev/held", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("before", "is_wanted", "after"),
    [
        ([], True, [OURS]),
        ([THEIRS], True, [THEIRS, OURS]),
        ([OURS, THEIRS], True, [OURS, THEIRS]),
        ([THEIRS, OURS], False, [THEIRS]),
        ([OTHER_EFFECT], False, [OTHER_EFFECT]),
        ([OTHER_EFFECT], True, [OTHER_EFFECT, OURS]),
        ([], False, []),
    ],
)
def test_what_others_have_put_there_stays(
    before: list[dict[str, Any]],
    is_wanted: bool,  # noqa: FBT001 - the case
    after: list[dict[str, Any]],
) -> None:
    assert with_taints({"spec": {"taints": before}}, [(HELD_TAINT, is_wanted)]) == after


def test_a_node_without_any() -> None:
    assert with_taints({}, [(HELD_TAINT, True)]) == [OURS]


def test_a_node_that_somebody_else_changes_meanwhile_is_read_again() -> None:
    node = {"kind": "Node", "metadata": {"name": "n", "resourceVersion": "7"}, "spec": {"taints": [THEIRS]}}
    script = Script([Reply(body=node), status(409, "changed"), Reply(body=node), Reply(body=node)])
    with serving(script) as connection:
        discovery = KnownDiscovery(connection, {("", "Node"): Served("nodes", ("v1",), namespaced=False)})
        writer = Writer(connection, discovery, lambda _ref, _version: None)
        write = Annotate(ObjectRef("", "Node", "", "n"), (("a", "b"),), taints=((HELD_TAINT, True),))
        assert writer.write(write, dry_run=False).outcome is Outcome.APPLIED
    assert len(script.asked) == 4


def test_a_node_that_may_not_be_read_is_refused_and_not_tried_again_and_again() -> None:
    script = Script([status(403, "may not get nodes")])
    with serving(script) as connection:
        discovery = KnownDiscovery(connection, {("", "Node"): Served("nodes", ("v1",), namespaced=False)})
        writer = Writer(connection, discovery, lambda _ref, _version: None)
        write = Annotate(ObjectRef("", "Node", "", "n"), (("a", "b"),))
        assert writer.write(write, dry_run=True) == WriteResult(write, Outcome.REFUSED, "may not get nodes")


NAMELESS_PARENT = InventoryParent()


def test_a_request_and_a_suspension_are_seen_in_the_store_and_in_the_view(monkeypatch: pytest.MonkeyPatch) -> None:
    """The request is asked for at every change, so that no inventory is made for it."""
    store = ViewStore(NAMELESS_PARENT)
    assert store.requested_at == ""
    annotations = {"headroom.dev/requestedAt": "noon", "headroom.dev/suspend": "true"}
    metadata = {"name": NAMELESS_PARENT.name, "namespace": NAMELESS_PARENT.namespace, "annotations": annotations}
    changed = store.put(CONFIG_MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
    assert changed
    with monkeypatch.context() as patch:
        patch.delattr("reconciler.cluster.view.ViewStore._inventory")
        assert store.requested_at == "noon"
    inventory = store.view().inventory
    assert (inventory.requested_at, inventory.suspended) == ("noon", True)

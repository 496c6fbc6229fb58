"""The API server's clock as its answers tell it, whatever this machine's clock says."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from reconciler.cluster.apply import carry_out
from reconciler.cluster.resources import NODES, PODS
from reconciler.cluster.server_clock import ServerClock
from reconciler.cluster.view import ViewStore
from reconciler.manifests.repository.declared import read
from reconciler.model.changes import Apply, Outcome, Write, WriteResult
from reconciler.model.refs import ObjectRef
from reconciler.model.view import ClusterView
from tests.fakes.cluster import PARENT, FakeCluster
from tests.unit.cluster.scripted_server import Reply, Script, serving

NOON = datetime(2026, 11, 23, 12, tzinfo=UTC)
AHEAD = timedelta(minutes=61)


class Machine:
    """now: what its clock says; seconds: that really passed."""

    def __init__(self, now: datetime = NOON) -> None:
        self.now = now
        self.seconds = 0.0
        self.clock = ServerClock(elapsed=lambda: self.seconds, now=lambda: self.now)

    def hear(self, server: datetime) -> timedelta:
        self.clock.hear(format_datetime(server, usegmt=True))
        return self.clock.skew


def test_an_answer_without_a_date_tells_nothing() -> None:
    machine = Machine()
    for date in ("soon", None, format_datetime(NOON, usegmt=True), None):
        machine.clock.hear(date)
        assert machine.clock.skew == timedelta(0)


@pytest.mark.parametrize("skew", [AHEAD, -AHEAD])
def test_a_clock_that_is_off_is_off_by_so_much(skew: timedelta) -> None:
    assert Machine().hear(NOON - skew) == skew


def test_what_a_date_cannot_tell_counts_for_nothing_and_changes_nothing() -> None:
    assert Machine().hear(NOON - timedelta(seconds=2)) == timedelta(0)
    machine = Machine()
    machine.hear(NOON - AHEAD)
    assert machine.hear(NOON - AHEAD - timedelta(seconds=2)) == AHEAD


def test_a_clock_that_is_set_between_two_answers_is_noticed_at_once() -> None:
    machine = Machine()
    machine.hear(NOON)
    machine.seconds += 10
    machine.now += timedelta(seconds=10) + AHEAD
    assert machine.clock.skew == AHEAD


def test_every_answer_is_heard() -> None:
    date = format_datetime(datetime.now(UTC) + AHEAD, usegmt=True)
    with serving(Script([Reply(body={}, headers={"Date": date})])) as connection:
        connection.request("GET", "/api")
        assert abs(connection.server_clock.skew + AHEAD) < timedelta(minutes=1)


def test_a_view_is_dated_once() -> None:
    machine, view = Machine(), ClusterView()
    assert machine.clock.dated(view) is view
    machine.hear(NOON - AHEAD)
    dated = machine.clock.dated(view)
    assert dated.clock_skew == AHEAD
    assert machine.clock.dated(view) is dated
    machine.hear(NOON)
    assert machine.clock.dated(view) is view


# What headroom fails on in one object of the cluster, when it is decoded or written, concerns that object alone.


def template(name: str) -> Apply:
    ref = ObjectRef("", "PodTemplate", "shop", name)
    return Apply(ref, {"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": name, "namespace": "shop"}})


@dataclass
class FaultyCluster(FakeCluster):
    """Headroom fails to write the object `bad`: in the dry run, or only for real."""

    in_dry_run: bool = True

    def write(self, write: Write, *, dry_run: bool = False) -> WriteResult:
        if write.ref.name == "bad" and dry_run is self.in_dry_run:
            raise TypeError("a planted fault")
        return super().write(write, dry_run=dry_run)


@pytest.mark.parametrize("in_dry_run", [True, False], ids=["in the dry run", "for real"])
def test_a_write_that_headroom_fails_on_stops_no_other(in_dry_run: bool) -> None:  # noqa: FBT001 - a case
    cluster = FaultyCluster(in_dry_run=in_dry_run)
    writes = [template(name) for name in ("a", "bad", "c")]

    done = carry_out(cluster, writes, parent=PARENT, view=ClusterView(), records={})

    outcomes = {result.write.ref.name: result for result in done.results if isinstance(result.write, Apply)}
    assert (outcomes["a"].outcome, outcomes["c"].outcome) == (Outcome.APPLIED, Outcome.APPLIED)
    assert outcomes["bad"].outcome is Outcome.REFUSED
    assert "a planted fault" in outcomes["bad"].message


def test_an_object_that_headroom_fails_to_decode_is_a_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    store = ViewStore(PARENT)
    store.put(NODES, {"metadata": {"name": "healthy"}})

    def broken(*_arguments: Any) -> Any:
        raise ValueError("a planted fault")

    monkeypatch.setattr("reconciler.cluster.decoding.decode._value_of", broken)

    assert store.put(PODS, {"metadata": {"name": "bad", "namespace": "shop"}, "spec": {}})

    view = store.view()
    assert not view.complete
    assert any("bad cannot be read: headroom failed on it (ValueError: a planted fault)" in gap for gap in view.gaps)
    assert [node.name for node in view.nodes] == ["healthy"]


def test_a_reference_that_headroom_fails_on_concerns_its_document(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_document: Any, buffer: Any, *_known: Any) -> Any:
        if buffer.ref.name == "bad":
            raise ValueError("a planted fault")
        return []

    monkeypatch.setattr("reconciler.manifests.repository.validate._of_buffer", broken)
    text = "apiVersion: autoscaling.x-k8s.io/v1beta1\nkind: CapacityBuffer\nmetadata: {name: NAME}\nspec: {podTemplateRef: {name: x}, replicas: 1}\n"
    found = read({f"{name}.yaml": text.replace("NAME", name).encode() for name in ("bad", "good")})

    assert [(str(item.position), item.code) for item in found.findings] == [("bad.yaml:1:1", "not-read")]
    assert [item.ref.name for item in found.buffers] == ["bad", "good"]

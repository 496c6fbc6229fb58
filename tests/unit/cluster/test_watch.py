"""A watch on a bad day: versions that expired, refusals, broken streams, and what the view says meanwhile."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Condition, Event, Thread
from typing import Any

import pytest

from reconciler.cluster.connection import Connection
from reconciler.cluster.discovery import Discovery, Served
from reconciler.cluster.resources import NODE_POOLS, PODS, Resource
from reconciler.cluster.view import ViewStore
from reconciler.cluster.watch import Pauses, ResourceWatch, WatchedCluster
from reconciler.model.view import ClusterView
from tests.unit.cluster.documents import pod
from tests.unit.cluster.scripted_server import Reply, Script, event, listing, query_of, serving, status

BOOKMARK = event("BOOKMARK", {"metadata": {"resourceVersion": "50"}})
GONE = event("ERROR", {"kind": "Status", "code": 410, "message": "too old resource version"})


@dataclass
class Running:
    """A watch in a thread of its own, and a way to wait for what it does."""

    watch: ResourceWatch
    store: ViewStore
    script: Script
    moved: Condition = field(default_factory=Condition)
    changes: int = 0

    def notice(self, changed: bool = False) -> None:  # noqa: FBT001, FBT002 - as the watch calls it
        with self.moved:
            self.changes += changed
            self.moved.notify_all()

    def until(self, holds: Any) -> ClusterView:
        with self.moved:
            assert self.moved.wait_for(lambda: holds(self), timeout=15), (self.script.asked, self.store.view().gaps)
        return self.store.view()


class KnownDiscovery(Discovery):
    """Serves what a test says, without a server."""

    def __init__(self, connection: Connection, served: dict[tuple[str, str], Served]) -> None:
        super().__init__(connection)
        self._served = served

    def refresh(self) -> bool:
        return False


@contextmanager
def watching(
    *replies: Reply, resource: Resource = PODS, served: bool = True, script: Script | None = None
) -> Iterator[Running]:
    script = script or Script(list(replies))
    with serving(script) as connection:
        known = {resource.key: Served(resource.plural, ("v1",), namespaced=True)} if served else {}
        store, stopping = ViewStore(), Event()
        running = Running(None, store, script)  # type: ignore[arg-type]  # the two know each other
        script.heard = running.notice
        watched = WatchedCluster(connection, KnownDiscovery(connection, known), store, stopping, running.notice)
        running.watch = ResourceWatch(resource, watched)
        thread = Thread(target=running.watch.run, daemon=True)
        thread.start()
        try:
            yield running
        finally:
            stopping.set()
            script.ended.set()
            connection.close()
            thread.join(10)
            assert not thread.is_alive()


def names(running: Running) -> list[str]:
    return [item.name for item in running.store.view().pods]


def stream(*lines: Any, hang: bool = True, cut: bool = False) -> Reply:
    return Reply(lines=lines, hang=hang, cut=cut)


def test_pages_are_put_together_and_watched_from_the_lists_version() -> None:
    with watching(listing(pod("a"), token="more"), listing(pod("b"), version="42"), stream()) as running:
        running.until(lambda it: len(it.script.asked) == 3)
        assert names(running) == ["a", "b"]
    asked = [query_of(path) for path in running.script.asked]
    assert asked[0] == {"limit": "5000"}
    assert asked[1] == {"limit": "5000", "continue": "more"}
    assert (asked[2]["watch"], asked[2]["resourceVersion"], asked[2]["allowWatchBookmarks"]) == ("true", "42", "true")


def test_events_are_applied_also_when_lines_come_in_parts() -> None:
    deleted = event("DELETED", pod("a"))
    with watching(listing(pod("a")), stream(event("ADDED", pod("b")), deleted)) as running:
        running.until(lambda it: names(it) == ["b"])


def test_a_stream_that_ends_goes_on_from_the_newest_version_without_a_gap() -> None:
    gaps: list[tuple[str, ...]] = []

    def thrice(it: Running) -> bool:
        gaps.append(it.store.view().gaps)
        return len(it.script.asked) == 3

    with watching(listing(pod("a")), stream(BOOKMARK, hang=False), stream()) as running:
        running.until(thrice)
    assert query_of(running.script.asked[2])["resourceVersion"] == "50"
    assert set(gaps) == {()}


@pytest.mark.parametrize("gone", [stream(GONE), status(410, "too old")])
def test_a_version_that_expired_means_listing_anew(gone: Reply) -> None:
    gaps: list[tuple[str, ...]] = []

    def four_times(it: Running) -> bool:
        gaps.append(it.store.view().gaps)
        return len(it.script.asked) == 4

    with watching(listing(pod("a")), gone, listing(pod("b"), version="60"), stream()) as running:
        running.until(four_times)
        assert names(running) == ["b"]
    assert set(gaps) == {()}, "that is the server's way, and nothing to worry about"


def test_a_page_that_expired_means_listing_from_the_start() -> None:
    with watching(listing(pod("a"), token="more"), status(410), listing(pod("b")), stream()) as running:
        running.until(lambda it: it.watch.settled)
        assert names(running) == ["b"]


def test_a_connection_that_breaks_is_a_gap_until_everything_was_listed_anew() -> None:
    seen: list[ClusterView] = []

    def anew(it: Running) -> bool:
        seen.append(it.store.view())
        return names(it) == ["c"]

    broken = stream(event("ADDED", pod("b")), hang=False, cut=True)
    with watching(listing(pod("a")), broken, listing(pod("c")), stream()) as running:
        running.until(anew)
        last = running.until(lambda it: it.store.view().complete)
    assert any(not view.complete for view in seen)
    assert {item.name for view in seen for item in view.pods if not view.complete} >= {"a", "b"}, "what was read stays"
    assert [item.name for item in last.pods] == ["c"]


@pytest.mark.parametrize("code", [429, 500, 503])
def test_a_server_that_cannot_answer_now_is_asked_again(code: int) -> None:
    with watching(status(code, "busy"), listing(pod("a")), stream()) as running:
        waiting = running.until(lambda it: it.watch.failure)
        assert waiting.gaps == ("pods cannot be read: busy",)
        assert running.watch.settled is False or names(running) == ["a"]
        running.until(lambda it: it.watch.settled and it.store.view().complete)


@pytest.mark.parametrize(
    ("refusal", "why"),
    [
        (
            status(403, 'pods is forbidden: User "x" cannot list resource "pods" in API group "" at the cluster scope'),
            'User "x" may not list them (config/rbac has the roles that headroom needs)',
        ),
        (status(403, "quota"), "quota"),
        (status(401), "the server does not accept our credentials"),
    ],
)
def test_what_may_not_be_read_is_a_gap_and_no_reason_to_wait(refusal: Reply, why: str) -> None:
    with watching(refusal) as running:
        view = running.until(lambda it: it.watch.settled)
    assert view.gaps == (f"pods cannot be read: {why}",)


@pytest.mark.parametrize("broken", [1, 2], ids=["the first page", "a page read ahead"])
def test_a_defect_in_headroom_is_a_gap_and_the_kind_is_listed_again(
    broken: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when a module is missing: the thread ended, and everybody waited for this kind for ever."""
    asks = itertools.count(1)
    request = Connection.request

    def breaks_once(self: Connection, *args: Any, **named: Any) -> Any:
        if next(asks) == broken:
            raise ModuleNotFoundError("No module named 'google'")
        return request(self, *args, **named)

    monkeypatch.setattr(Connection, "request", breaks_once)
    replies = [listing(pod("a"), token="more")] * (broken - 1)
    with watching(*replies, listing(pod("b")), stream()) as running:
        view = running.until(lambda it: it.watch.failure)
        (gap,) = view.gaps
        assert gap.startswith(
            "pods cannot be read: internal error: ModuleNotFoundError: No module named 'google' (test_"
        )
        running.until(lambda it: it.watch.settled and it.store.view().complete)
        assert names(running) == ["b"]


@pytest.mark.parametrize("line", ["no json", event("ERROR", {"code": 500, "message": "etcd is away"})])
def test_what_is_no_event_is_a_lost_connection(line: Any) -> None:
    with watching(listing(pod("a")), stream(line), listing(pod("b")), stream()) as running:
        running.until(lambda it: names(it) == ["b"] and it.store.view().complete)


def test_an_answer_that_is_no_list_does_not_end_the_watch() -> None:
    with watching(Reply(body={"kind": "Pod"}), listing(pod("a")), stream()) as running:
        running.until(lambda it: names(it) == ["a"])


def test_a_kind_without_a_crd_has_no_objects_and_is_no_gap() -> None:
    with watching(status(404), resource=NODE_POOLS, served=False) as running:
        view = running.until(lambda it: it.watch.settled and it.changes)
    assert view.complete
    assert running.changes == 1, "a pass that gave up waiting for this kind has to be made again"
    assert running.script.asked == ["/apis/apiextensions.k8s.io/v1/customresourcedefinitions/nodepools.karpenter.sh"]


def test_a_kind_with_a_crd_that_is_not_served_yet_is_waited_for() -> None:
    """The API server answers so for some seconds after its start: taking it for gone would release every node."""
    with watching(Reply(body={"kind": "CustomResourceDefinition"}), resource=NODE_POOLS, served=False) as running:
        view = running.until(lambda it: it.watch.failure)
        assert running.watch.settled is False
    assert view.gaps == ("nodepools.karpenter.sh cannot be read: it is not served at the moment",)


def test_who_may_not_read_crds_takes_discoverys_word() -> None:
    with watching(status(403), resource=NODE_POOLS, served=False) as running:
        assert running.until(lambda it: it.watch.settled).complete


NOTHING: dict[str, Reply] = {
    "ends at once": stream(hang=False),
    "version has expired": status(410, "too old"),
    "version expires": stream(GONE, hang=False),
    "is refused": status(503, "busy"),
    "breaks": stream(hang=False, cut=True),
}


@dataclass
class Listing(Script):
    """Lists one pod whenever it is asked. Its watches go as `row` says, and the next one tells of another pod and stays open."""

    row: list[str] = field(default_factory=list)
    at_last: Callable[[], object] = lambda: None

    def next(self, path: str, token: str) -> Reply:
        super().next(path, token)
        if "watch=true" not in path:
            return listing(pod("a"))
        if self.row:
            return NOTHING[self.row.pop(0)]
        self.at_last()
        return stream(event("ADDED", pod("b")))


@pytest.fixture
def paused(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Seconds of pauses, which take no time."""
    seconds: list[float] = []
    grown = Pauses.grown

    def told(pauses: Pauses) -> float:
        seconds.append(grown(pauses))
        return 0.0

    monkeypatch.setattr(Pauses, "grown", told)
    return seconds


@pytest.mark.parametrize("row", [*itertools.product(NOTHING, repeat=3)], ids=", ".join)
def test_watches_in_a_row_that_show_nothing_are_a_gap_and_are_made_at_growing_intervals(
    row: tuple[str, ...], paused: list[float]
) -> None:
    """They were made as fast as the API server answered, and the view said that it was complete."""
    gaps: list[tuple[str, ...]] = []
    script = Listing([Reply()], row=list(row))
    with watching(script=script) as running:
        script.at_last = lambda: gaps.append(running.store.view().gaps)
        running.until(lambda it: names(it) == ["a", "b"] and it.store.view().complete)
    failures = [each for number, each in enumerate(row) if number or each in {"is refused", "breaks"}]
    assert paused == [0.25 * 2**number for number in range(len(failures))]
    assert len(gaps[0]) == 1, "though all pods were listed meanwhile"
    asked = [int(query_of(path)["timeoutSeconds"]) for path in script.asked if "watch=true" in path]
    assert min(asked[:3]) >= 180
    assert asked[3] == 5, "so that the gap is closed soon, also where nothing happens"


def test_lists_in_a_row_that_expire_are_a_gap_and_are_asked_for_at_growing_intervals(paused: list[float]) -> None:
    with watching(*[status(410)] * 4, listing(pod("a")), stream()) as running:
        running.until(lambda it: it.store.view().complete and it.watch.settled)
        assert running.changes >= 2, "the gap, and its end"
    assert paused == [0.25, 0.5, 1.0, 2.0]

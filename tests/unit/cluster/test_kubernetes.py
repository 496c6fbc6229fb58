"""The threads of a cluster on a bad day: none ends for good, whatever is raised in it, and each says meanwhile what is wrong."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event, Thread
from typing import Any

import pytest
import requests
import urllib3
from kubernetes.config import ConfigException

from reconciler.cluster.access import Access
from reconciler.cluster.apply import InventoryParent
from reconciler.cluster.connection import Connection
from reconciler.cluster.kubernetes import KubernetesCluster
from reconciler.cluster.resources import CONFIG_MAPS, RESOURCES
from reconciler.cluster.watch import Pauses
from reconciler.model.errors import Transient
from tests.unit.cluster.scripted_server import Reply, Script, listing, serving, status


class UnknownProviderError(Exception):
    """Of a package that nobody has thought of."""


RAISED = [
    FileNotFoundError(2, "No such file or directory", "/var/run/secrets/token"),
    OSError(24, "Too many open files"),
    PermissionError(13, "Permission denied"),
    ConfigException("Token file exists but empty."),
    UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"),
    json.JSONDecodeError("Expecting value", "", 0),
    KeyError("token"),
    AttributeError("'NoneType' object has no attribute 'strip'"),
    urllib3.exceptions.ConnectTimeoutError(None, "the issuer is silent"),
    requests.ConnectionError("the issuer is down"),
    UnknownProviderError(),
]
LEASE = {"metadata": {"resourceVersion": "1"}, "spec": {"holderIdentity": "me"}}


def failing(errors: Sequence[Exception], *, after: int = 0) -> Callable[[], None]:
    """Raises these errors in turn, at the calls after the first few."""
    calls = itertools.chain([None] * after, errors)

    def call() -> None:
        error = next(calls, None)
        if error is not None:
            raise error

    return call


@dataclass
class Cluster(Script):
    """Serves every kind that headroom reads, and has no object of any."""

    replies: list[Reply] = field(default_factory=lambda: [Reply()])

    def next(self, path: str, token: str) -> Reply:
        super().next(path, token)
        if "/leases/" in path:
            return status(404)
        if path.endswith("/leases"):
            return Reply(201, LEASE)
        if "watch=true" in path:
            return Reply(lines=(), hang=True)
        return Reply(body=_served(path)) if path in {"/api", "/apis"} else listing()


def _served(path: str) -> dict[str, Any]:
    kinds = [each for each in (*RESOURCES, CONFIG_MAPS) if (each.group == "") is (path == "/api")]
    items = [
        {
            "metadata": {"name": each.group},
            "versions": [
                {
                    "version": each.versions[0],
                    "resources": [{"resource": each.plural, "responseKind": {"kind": each.kind}}],
                }
            ],
        }
        for each in kinds
    ]
    return {"kind": "APIGroupDiscoveryList", "items": items}


@contextmanager
def cluster(before_credentials: Callable[[], None] = lambda: None) -> Iterator[KubernetesCluster]:
    """before_credentials: called whenever the credentials are asked for."""

    def authorization() -> Mapping[str, str]:
        before_credentials()
        return {}

    with serving(Cluster()) as server:
        access = Access(server._accessed().host, urllib3.PoolManager(maxsize=64), authorization)
        found = KubernetesCluster("a", lambda: access, inventory=InventoryParent(), sync_timeout=8)
        try:
            yield found
        finally:
            found.close()


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Pauses, "grown", lambda _pauses: 0.0)


def told_until_all_is_read(cluster: KubernetesCluster) -> set[str]:
    """The gaps on the way."""
    gaps: set[str] = set()
    cluster.start(lambda: gaps.update(cluster._store.view().gaps))
    assert cluster.view().complete
    return gaps


def told_until_it_leads(cluster: KubernetesCluster) -> set[str]:
    told: set[str] = set()
    election = cluster.election("me")
    while not election.is_leader():
        election.step()
        told.add(election.trouble)
    return told - {""}


THREADS: Mapping[str, tuple[int, Callable[[KubernetesCluster], set[str]]]] = {
    "discovery": (0, told_until_all_is_read),
    "watches": (2, told_until_all_is_read),
    "lease": (0, told_until_it_leads),
}
"""How many calls come before those of the thread, and what it tells until all is well."""


@pytest.mark.parametrize("thread", THREADS)
def test_credentials_that_cannot_be_read_are_asked_for_again(thread: str) -> None:
    after, told_by = THREADS[thread]
    with cluster(failing(RAISED, after=after)) as failed:
        told = told_by(failed)
    assert len(told) == len(RAISED), told
    assert all("the credentials for http://127.0.0.1:" in words and "internal error" not in words for words in told)


@pytest.mark.parametrize("thread", THREADS)
def test_a_defect_of_headroom_ends_no_thread(thread: str, monkeypatch: pytest.MonkeyPatch) -> None:
    after, told_by = THREADS[thread]
    accessed = Connection._accessed
    fails = failing(
        [ModuleNotFoundError("No module named 'google'"), RuntimeError("can't start new thread")], after=after
    )

    def breaks(self: Connection) -> Access:
        fails()
        return accessed(self)

    with cluster() as failed:
        monkeypatch.setattr(Connection, "_accessed", breaks)
        told = told_by(failed)
    assert len(told) == 2
    assert all("internal error: " in words for words in told)


def test_a_thread_that_the_system_refuses_is_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    start, fails = Thread.start, failing([RuntimeError("can't start new thread")], after=3)

    def refused(self: Thread) -> None:
        if self.name.startswith("headroom-watch"):
            fails()
        start(self)

    monkeypatch.setattr(Thread, "start", refused)
    with cluster() as failed:
        assert any("can't start new thread" in words for words in told_until_all_is_read(failed))


def test_why_nothing_was_read_is_told_however_short_the_wait() -> None:
    failed = Event()
    access = Access("http://127.0.0.1:1", urllib3.PoolManager(), dict)
    dead = KubernetesCluster("a", lambda: access, inventory=InventoryParent(), sync_timeout=0.0)
    dead.start(failed.set)
    try:
        assert failed.wait(30)
        with pytest.raises(Transient, match="does not answer: Connection refused"):
            dead.view()
    finally:
        dead.close()

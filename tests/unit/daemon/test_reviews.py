"""Each open pull request is reported on when its head or its base has moved, and one that cannot be stops no other."""

from __future__ import annotations

from datetime import timedelta

from reconciler.daemon.beside_passes import Reviews
from reconciler.model.errors import Transient
from reconciler.model.source import PullRequest
from tests.fakes.forge import MemoryForge


class Desk:
    """A forge, what was reported, and the switches of a `Reviews`."""

    def __init__(self) -> None:
        self.forge = MemoryForge()
        self.base: str | None = "main@sha1:b1"
        self.leads = True
        self.broken: set[int] = set()
        self.reported: list[tuple[int, str]] = []
        self.results: list[str] = []
        self.reviews = Reviews(
            pull_requests=self.forge.open_pull_requests,
            report=self.report,
            base=lambda: self.base,
            is_leader=lambda: self.leads,
            interval=timedelta(hours=1),
            on_result=self.results.append,
        )

    def report(self, pull: PullRequest) -> str:
        if pull.number in self.broken:
            raise Transient("the forge is away")
        self.reported.append((pull.number, pull.head_commit))
        return "created"

    def look(self) -> list[tuple[int, str]]:
        self.reported = []
        self.reviews.look()
        return self.reported


def test_what_was_said_is_said_again_only_when_something_moved() -> None:
    desk = Desk()
    desk.forge.add_pull(1, commit="c1")
    desk.forge.add_pull(2, commit="d1")
    assert desk.look() == [(1, "c1"), (2, "d1")]
    assert desk.look() == []
    desk.forge.add_pull(2, commit="d2")
    assert desk.look() == [(2, "d2")]
    desk.base = "main@sha1:b2"
    assert desk.look() == [(1, "c1"), (2, "d2")]
    desk.forge.close_pull_request(1)
    assert desk.look() == []
    desk.forge.add_pull(1, commit="c1")  # opened again
    assert desk.look() == [(1, "c1")]


def test_one_that_cannot_be_reported_on_is_tried_again_and_stops_no_other() -> None:
    desk = Desk()
    desk.broken = {1}
    desk.forge.add_pull(1)
    desk.forge.add_pull(2)
    assert desk.look() == [(2, "c1")]
    assert desk.results == ["transient", "created"]
    desk.broken = set()
    assert desk.look() == [(1, "c1")]


def test_nothing_is_said_by_a_replica_that_does_not_lead_or_before_the_base_is_known() -> None:
    desk = Desk()
    desk.forge.add_pull(1)
    desk.leads = False
    assert desk.look() == []
    desk.leads, desk.base = True, None
    assert desk.look() == []
    desk.base = "main@sha1:b1"
    assert desk.look() == [(1, "c1")]

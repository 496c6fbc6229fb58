"""The daemon's reports on pull requests. They are planned with its own view of the cluster, so that CI needs no access to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime

from reconciler.clocks import FixedClock
from reconciler.comparison import UNCAPPED, Comparison, ComparisonRequest, compare
from reconciler.daemon.reviews import Reviews
from reconciler.model.errors import Failure, Invalid, Transient, Waiting
from reconciler.model.source import PullRequest
from reconciler.ports import Clock, Cluster, Forge, Source
from reconciler.settings.settings import Settings
from reconciler.telemetry.logs import Log
from reconciler.web.pages import HTML, Page, Response
from reconciler.wiring.catalog import open_catalog
from reconciler.wiring.cycle import caps_of, make_cycle
from reconciler.wiring.posting import check_forge_of, complete_page, failed, forge_of, is_too_little, publication
from reconciler.wiring.reported_cluster import reported_cluster
from reconciler.wiring.repository import git_options


def reporter_of(settings: Settings, source: Source, cluster: Cluster, clock: Clock) -> Reporter | None:
    """The reporter; None if the settings ask for no reports. source: gives the repository's newest tree without waiting."""
    return Reporter(settings, source, cluster, clock) if settings.forge.reports else None


def reviews_by(
    reporter: Reporter | None,
    settings: Settings,
    is_leader: Callable[[], bool],
    on_result: Callable[[str], None],
    log: Log,
) -> Reviews | None:
    """The reviews by this reporter; None without one."""
    if reporter is None:
        return None
    return Reviews(
        pull_requests=reporter.pull_requests,
        report=reporter.report,
        base=reporter.base,
        is_leader=is_leader,
        interval=settings.forge.interval,
        on_result=on_result,
        log=log,
    )


class Reporter:
    """The functions that `Reviews` calls. pages: by path, all of the report on each open pull request. Raises `Invalid` if a setting is
    missing."""

    def __init__(self, settings: Settings, source: Source, cluster: Cluster, clock: Clock) -> None:
        from reconciler.source.credentials import is_remote
        from reconciler.source.pull_requests import PullRequestTrees

        if not settings.forge.kind:
            raise Invalid("forge.reports needs a forge", hint="set forge.kind to github, gitlab or gitea")
        if not is_remote(settings.repository):
            raise Invalid("forge.reports needs a repository on a forge", hint="set repository to its URL")
        check_forge_of(settings)
        self._settings = settings
        self._source = source
        self._cluster = cluster
        self._clock = clock
        self.pages: dict[str, Page] = {}
        self._trees = PullRequestTrees(settings.repository, settings.path, git_options(settings))

    def base(self) -> str | None:
        try:
            return self._source.read().revision
        except Failure:
            return None  # the poll reports it

    def pull_requests(self) -> list[PullRequest]:
        branch = (self.base() or "").partition("@")[0]
        with _opened(self._settings) as forge:
            found = [pull for pull in forge.open_pull_requests() if pull.base_branch == branch]
        for path in self.pages.keys() - {_page_of(pull) for pull in found}:
            del self.pages[path]
        return found

    def report(self, pull: PullRequest) -> str:
        from reconciler.forge.publishing import publish

        now = self._clock.now()
        with _opened(self._settings) as forge:
            try:
                comparison = self._comparison(pull, now)
            except Failure as failure:
                if not isinstance(failure, Transient | Waiting):
                    forge.set_status(pull.head_commit, failed(failure, self._settings))
                raise
            cluster = reported_cluster(self._cluster, self._settings)
            path, place = _page_of(pull), self._settings.forge.pages.rstrip("/")
            page = Response(complete_page(comparison, cluster).encode(), HTML)
            self.pages[path] = lambda: page
            whole = f"{place}{path}" if place else ""
            said = publication(comparison, self._settings, cluster=cluster, at=now, url=whole, whole=whole)
            silent = is_too_little(comparison.change, self._settings.forge.reports_above)
            return publish(forge, pull.number, said, only_if_there=silent).value

    def _comparison(self, pull: PullRequest, now: datetime) -> Comparison:
        sides = self._trees.sides(pull)
        # A cycle for each pull request, since the last good versions of one must not count for another.
        cycle = make_cycle(
            self._settings,
            source=self._source,
            cluster=self._cluster,
            catalog=open_catalog(self._settings, self._cluster, self._clock),
            clock=FixedClock(now),
            caps=UNCAPPED,
        )
        caps = caps_of(self._settings)
        request = ComparisonRequest(
            sides.base, sides.head, sides.conflicts, caps=caps, foreign=pull.from_fork, names=sides.names
        )
        return compare(cycle, request)


def _page_of(pull: PullRequest) -> str:
    return f"/pulls/{pull.number}"


@contextmanager
def _opened(settings: Settings) -> Iterator[Forge]:
    """A forge for one look: the token's file may have changed since the last one."""
    forge = forge_of(settings.forge.kind, settings)
    try:
        yield forge
    finally:
        forge.close()

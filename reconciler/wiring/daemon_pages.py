"""What the daemon serves over HTTP: its pages, and the same as JSON. All of it is drawn from one report of the last pass, on request."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from datetime import timedelta
from functools import cache
from typing import Any

from reconciler import __version__
from reconciler.cluster.lease import LeaderElection
from reconciler.cycle import Cycle
from reconciler.daemon.daemon import Daemon
from reconciler.files import packaged_texts
from reconciler.forge.forges import links_to
from reconciler.model.redaction import redacted, redacted_text
from reconciler.model.timelines import FillPoint, StandingNodes
from reconciler.outlook import WEEK
from reconciler.ports import Clock
from reconciler.report.escaping import to_json
from reconciler.report.status.clusters import clusters_document, clusters_page
from reconciler.report.status.document import Live, PassReport, daemon_status_document, live_document
from reconciler.report.status.page import NO_POOL, demand_page, overview_page, pool_page
from reconciler.report.status.words import name_of
from reconciler.report.timeline.rows import timeline_page
from reconciler.report.words import cluster_title
from reconciler.settings.settings import Settings
from reconciler.spending.steady import standing_nodes
from reconciler.telemetry.last_pass import LastPass
from reconciler.web.pages import JSON, Page, Response, kept_page, tagged
from reconciler.wiring.posting import rendered_page

_CLUSTERS = "/clusters/"
_LATE_AFTER = 2
"""Intervals between passes after which the next one is overdue, and a minute for the pass itself."""


class DaemonPages:
    """Called from web threads. What a report says is computed once, when it is first asked for. reports: by path, those on pull
    requests, which come and go."""

    def __init__(
        self,
        settings: Settings,
        last: LastPass,
        cycle: Cycle,
        clock: Clock,
        *,
        cluster: str,
        daemon: Daemon,
        election: LeaderElection | None,
        one_of_several: bool = False,
    ) -> None:
        self._last = last
        self._cycle = cycle
        self._clock = clock
        self._cluster = cluster
        self._daemon = daemon
        self._election = election
        self.reports: Mapping[str, Page] = {}
        self._links = links_to(settings.repository, settings.forge.kind)
        self._around = {"dashboard": settings.dashboard, "above": one_of_several}
        self._late_after = _LATE_AFTER * settings.passes.interval + timedelta(minutes=1)
        self._lock = threading.Lock()
        self._known: tuple[PassReport, StandingNodes, Mapping[str, Any]] | None = None

    def by_path(self) -> dict[str, Page]:
        return {
            "/": kept_page(self._version, self._overview, script=_script()),
            "/status": kept_page(self._version_of_status, lambda: to_json(self.document()), JSON),
            "/capacity": kept_page(self._version_of_capacity, self._capacity, script=_script()),
        }

    def find(self, path: str) -> Page | None:
        """The page of a buffer, a request or a NodePool: its path is the name that commands take (`/CapacityBuffer/shop/web`). Or the report
        on a pull request (`/pulls/7`)."""
        if path in self.reports:
            return self.reports[path]
        stands, document = self._document()
        name, now = path.removeprefix("/"), self._clock.now()
        for row in document["demands"]:
            if f"{row['kind']}/{name_of(row)}" == name:
                page = demand_page(document, row, stands.nodes, self._last.past(name), now)
                return self._page("status_demand.html.j2", page)
        for row in document["nodePools"]:
            if f"NodePool/{row['name'] or NO_POOL}" == name:
                return self._page("status_pool.html.j2", pool_page(document, row, stands.nodes, now))
        return None

    def _page(self, template: str, page: Mapping[str, Any]) -> Page:
        return lambda: tagged(rendered_page(template, {**page, **self._around}), script=_script())

    def _overview(self) -> str:
        stands, document = self._document()
        page = overview_page(document, stands.nodes, self._last.points(), self._clock.now(), self._links)
        return rendered_page("status.html.j2", {**page, **self._around})

    def _version(self) -> object:
        report = self._last.report()
        return report.passes, self._live(), self._clock.now() - report.finished > self._late_after

    def _version_of_status(self) -> object | None:
        """None before there is anything to tell: no pass has ended, and no other replica leads."""
        return self._version() if self._last.report().passes or self._live().leads is False else None

    def document(self) -> Mapping[str, Any]:
        """What `/status` says at this moment."""
        return self._document()[1]

    def _document(self) -> tuple[StandingNodes, dict[str, Any]]:
        report = self._last.report()
        with self._lock:
            if self._known is None or self._known[0] is not report:
                seen = report.seen
                stands = (
                    StandingNodes()
                    if report.plan is None
                    else standing_nodes(report.plan, seen.view, seen.instance_types)
                )
                # Anybody may read it, and messages of Git or a server may quote a credential.
                document = redacted(daemon_status_document(report, stands, self._links))
                self._known = (report, stands, document)
            _, stands, document = self._known
        return stands, live_document(document, self._live(), self._clock.now())

    def _live(self) -> Live:
        daemon, election = self._daemon, self._election
        return Live(
            next_edge=daemon.next_edge,
            handled_request=daemon.handled_request,
            held_up=redacted_text(daemon.held_up),
            leads=None if election is None else election.is_leader(),
            leader="" if election is None else election.holder or "",
            late_after=self._late_after,
        )

    def _version_of_capacity(self) -> object | None:
        """Drawn once a minute at most."""
        outlook = self._cycle.outlook
        return None if outlook is None else (outlook, self._clock.now().replace(second=0, microsecond=0))

    def _capacity(self) -> str:
        """From the beginning of today, so that what was there stands beside what was asked for."""
        outlook = self._cycle.outlook
        assert outlook is not None
        now = self._clock.now()
        begins = now.astimezone().replace(hour=0, minute=0, second=0, microsecond=0)
        timeline = outlook.ahead(begins, now + WEEK - begins)
        _, document = self._document()
        there: dict[str, Sequence[FillPoint]] = {
            f"NodePool/{row['name']}": (FillPoint(now, row["nodes"], row["ready"]),) for row in document["nodePools"]
        }
        there |= self._last.pasts()
        page = timeline_page(timeline, now, there=there)
        frame = {"root": "", "cluster": cluster_title(self._cluster), "version": __version__, **self._around}
        return rendered_page("timeline.html.j2", {**page, **frame})


@cache
def _script() -> str:
    """The pages' own script, as it stands between its tags."""
    return "\n" + packaged_texts("templates", suffix=".j2")["status.js.j2"]


class ClusterPages:
    """The pages of several clusters, each below `/clusters/NAME/`, and one over all of them."""

    def __init__(self, clusters: Mapping[str, DaemonPages]) -> None:
        self._clusters = clusters

    def by_path(self) -> dict[str, Page]:
        below = {
            f"{_CLUSTERS}{name}{path}": page
            for name, pages in self._clusters.items()
            for path, page in pages.by_path().items()
        }
        return {"/": self._overview, "/status": lambda: tagged(to_json(self._document()), JSON), **below}

    def find(self, path: str) -> Page | None:
        """As `DaemonPages.find`, below the cluster's path."""
        name, _, rest = path.removeprefix(_CLUSTERS).partition("/")
        pages = self._clusters.get(name) if path.startswith(_CLUSTERS) else None
        return None if pages is None or not rest else pages.find(f"/{rest}")

    def _overview(self) -> Response:
        return tagged(rendered_page("status_clusters.html.j2", clusters_page(self._document())), script=_script())

    def _document(self) -> dict[str, Any]:
        return clusters_document({name: pages.document() for name, pages in self._clusters.items()})

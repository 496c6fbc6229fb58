"""What the daemon serves over HTTP."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from reconciler.cluster.lease import LeaderElection
from reconciler.cycle import Cycle
from reconciler.daemon.daemon import Daemon
from reconciler.ports import Clock
from reconciler.report.status.document import with_next_edge
from reconciler.report.timeline.page import timeline_page
from reconciler.telemetry.last_pass import LastPass
from reconciler.web.pages import Page, html_page
from reconciler.wiring.pages import rendered_page


def status(last: LastPass, daemon: Daemon, election: LeaderElection | None) -> Mapping[str, Any] | None:
    """The last pass, what was asked of it, when the next edge is, and who leads; a replica that waits for its turn says so."""
    state = daemon.state
    document = last.document()
    if document is None and election is not None and not election.is_leader():
        document = last.standby(election.holder)
    document = with_next_edge(document, state.next_edge)
    if document is None:
        return None
    document = {**document, "handledRequest": state.handled_request, "heldUp": state.held_up}
    if election is None:
        return document
    return {**document, "leads": election.is_leader(), "leader": election.holder or None}


def capacity_page(cycle: Cycle, cluster: str, clock: Clock) -> Page:
    """All capacity over the coming week, as the last pass knew it; drawn once a minute at most."""

    def version() -> tuple[object, datetime] | None:
        outlook = cycle.outlook
        return None if outlook is None else (outlook, clock.now().replace(second=0, microsecond=0))

    def drawn() -> str:
        outlook = cycle.outlook
        assert outlook is not None
        return rendered_page("timeline.html.j2", timeline_page(outlook.ahead(clock.now()), cluster=cluster))

    return html_page(version, drawn)

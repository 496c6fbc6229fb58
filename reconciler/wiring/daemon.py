"""The daemon with everything around it."""

from __future__ import annotations

import socket
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from reconciler.clocks import ShiftedClock, SystemClock
from reconciler.cycle import Cycle
from reconciler.ports import Clock, Cluster, PassResult
from reconciler.settings import Settings
from reconciler.wiring.catalog import open_catalog
from reconciler.wiring.cluster import open_cluster
from reconciler.wiring.cycle import make_cycle
from reconciler.wiring.pages import rendered_page
from reconciler.wiring.repository import open_source

if TYPE_CHECKING:
    from reconciler.cluster.lease import LeaderElection
    from reconciler.daemon.daemon import Daemon
    from reconciler.telemetry.last_pass import LastPass
    from reconciler.web.pages import Page


def run_daemon(settings: Settings, *, now: datetime | None, until_settled: bool, at_most: float | None) -> int:
    """The daemon with everything around it, until it is stopped or settled. Returns the exit code."""
    from reconciler.daemon.daemon import Daemon  # noqa: PLC0415 - only where it is used
    from reconciler.daemon.watchdog import Watchdog  # noqa: PLC0415 - only where it is used
    from reconciler.source.latest import LatestTree  # noqa: PLC0415 - only where it is used
    from reconciler.telemetry.last_pass import LastPass  # noqa: PLC0415 - only where it is used
    from reconciler.telemetry.logs import configure_logs, logger  # noqa: PLC0415 - only where it is used
    from reconciler.telemetry.metrics import Metrics  # noqa: PLC0415 - only where it is used
    from reconciler.telemetry.scheduled_capacity import ScheduledCapacity  # noqa: PLC0415 - only where it is used
    from reconciler.timetable.agenda import Pacing, Trigger  # noqa: PLC0415 - only where it is used
    from reconciler.web.pages import check_page, json_page, text_page  # noqa: PLC0415 - only where it is used
    from reconciler.web.server import PageServer  # noqa: PLC0415 - only where it is used

    configure_logs(form=settings.logs.form, level=settings.logs.level)
    log = logger()
    clock: Clock = SystemClock() if now is None else ShiftedClock(now)
    metrics = Metrics()
    with ExitStack() as stack:
        source = LatestTree(open_source(settings, clock))
        stack.callback(source.close)
        cluster = open_cluster(settings, clock, metrics.count_request)
        stack.callback(cluster.close)
        optimal_within = settings.placement.optimal_within if settings.placement.mode == "optimal" else timedelta(0)
        watchdog = Watchdog(
            more={"git": settings.git.timeout.total_seconds() * 3, "placement": optimal_within.total_seconds()},
            ends_process=True,
        )
        cycle = make_cycle(
            settings,
            source=source,
            cluster=cluster,
            catalog=open_catalog(settings, cluster, clock),
            clock=clock,
            progress=watchdog.progress,
        )
        metrics.registry.register(ScheduledCapacity(lambda: cycle.schedules, clock))
        last = LastPass(cluster=cluster.name, clock=clock, metrics=metrics, log=log)
        show = _plan_printer(cluster.name) if settings.logs.form == "console" else None

        def on_result(trigger: Trigger, result: PassResult) -> None:
            last.observe(trigger.value, result)
            if show is not None:
                show(result)

        election = _election(settings, cluster)
        daemon = Daemon(
            run_pass=lambda trigger: cycle.run(trigger.value),
            poll_source=source.poll,
            clock=clock,
            poll_interval=settings.git.interval,
            pass_interval=settings.passes.interval,
            pacing=Pacing(quiet=settings.passes.quiet, quiet_at_most=settings.passes.quiet_at_most),
            on_result=on_result,
            on_poll=metrics.observe_poll,
            is_leader=_leadership(election, metrics.set_leader),
            next_edge=cycle.next_edge,
            watchdog=watchdog,
            log=log,
        )
        _guard(cluster, daemon, election, stack)
        server = PageServer(
            settings.listen,
            {
                "/metrics": text_page(metrics.exposition),
                "/status": json_page(lambda: _status(last, daemon, election)),
                "/capacity": _capacity_page(cycle, cluster.name, clock),
            },
            probes={"/healthz": check_page(daemon.health), "/readyz": check_page(daemon.readiness)},
        )
        stack.callback(server.close)
        server.start()
        cluster.start(_on_change(cluster, daemon))
        log.info(
            "started",
            cluster=cluster.name,
            repository=settings.repository or ".",
            look=f"http://{server.address}/status, /metrics, /readyz",
        )
        code = daemon.run(
            until_settled=until_settled,
            at_most=None if at_most is None else timedelta(seconds=at_most),
        )
        log.info("ended", exit_code=code)
        return code


def _status(last: LastPass, daemon: Daemon, election: LeaderElection | None) -> Mapping[str, Any] | None:
    """The last pass, when the next edge is, and who leads; a replica that waits for its turn says so."""
    from reconciler.report.status.document import with_next_edge  # noqa: PLC0415 - only where it is used

    state = daemon.state
    document = last.document()
    if document is None and election is not None and not election.is_leader():
        document = last.standby(election.holder)
    document = with_next_edge(document, state.next_edge)
    if document is None or election is None:
        return document
    return {**document, "leads": election.is_leader(), "leader": election.holder or None}


def _capacity_page(cycle: Cycle, cluster: str, clock: Clock) -> Page:
    """All capacity over the coming week, as the last pass knew it; drawn once a minute at most."""
    from reconciler.report.timeline.page import timeline_page  # noqa: PLC0415 - only where it is used
    from reconciler.web.pages import html_page  # noqa: PLC0415 - only where it is used

    def version() -> tuple[object, datetime] | None:
        outlook = cycle.outlook
        return None if outlook is None else (outlook, clock.now().replace(second=0, microsecond=0))

    def drawn() -> str:
        outlook = cycle.outlook
        assert outlook is not None
        return rendered_page("timeline.html.j2", timeline_page(outlook.ahead(clock.now()), cluster=cluster))

    return html_page(version, drawn)


def _election(settings: Settings, cluster: Cluster) -> LeaderElection | None:
    """Only real clusters have several replicas; without an election every one of them leads."""
    from reconciler.cluster.kubernetes import KubernetesCluster  # noqa: PLC0415 - only where it is used

    if not settings.leader_election or not isinstance(cluster, KubernetesCluster):
        return None
    # The host alone is not enough: a restarted process is another candidate, and must not take its old lease for its own.
    return cluster.election(f"{socket.gethostname()}_{uuid4().hex[:8]}")


def _leadership(election: LeaderElection | None, tell: Callable[[bool], None]) -> Callable[[], bool]:
    """Whether this replica leads, told to the metrics each time it is asked."""

    def is_leader() -> bool:
        leads = election is None or election.is_leader()
        tell(leads)
        return leads

    return is_leader


def _on_change(cluster: Cluster, daemon: Daemon) -> Callable[[], None]:
    """A change of the cluster; where somebody asks for a pass, it is made without waiting for quiet."""
    from reconciler.cluster.kubernetes import KubernetesCluster  # noqa: PLC0415 - only where it is used

    if not isinstance(cluster, KubernetesCluster):
        return daemon.changed

    def changed() -> None:
        daemon.request(cluster.requested_at)
        daemon.changed()

    return changed


def _guard(cluster: Cluster, daemon: Daemon, election: LeaderElection | None, stack: ExitStack) -> None:
    """No write by a replica that stops or no longer leads; its lease is given up only after its last write."""
    from reconciler.cluster.kubernetes import KubernetesCluster  # noqa: PLC0415 - only where it is used

    if not isinstance(cluster, KubernetesCluster):
        return

    def hindrance() -> str:
        if daemon.stopping:
            return "headroom is stopping"
        return "" if election is None or election.is_leader() else "another replica leads"

    cluster.write_only_unless(hindrance)
    if election is not None:
        stack.callback(lambda: election.close(release=not cluster.is_writing))
        election.start()


def _plan_printer(cluster: str) -> Callable[[PassResult], None]:
    """Shows a person what each pass planned and applied; passes that changed nothing are not shown."""
    from reconciler.report.plan.text import pass_text  # noqa: PLC0415 - only where it is used

    def show(result: PassResult) -> None:
        if result.plan is not None and (result.plan.has_changes or result.change_set is None):
            sys.stdout.write(pass_text(result.plan, result.change_set, cluster=cluster) + "\n")
            sys.stdout.flush()

    return show

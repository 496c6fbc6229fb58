"""The daemon with everything around it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import ExitStack
from datetime import datetime, timedelta

from reconciler.clocks import ShiftedClock, SystemClock
from reconciler.cycle import Cycle
from reconciler.daemon.daemon import Daemon, Listeners
from reconciler.daemon.reviews import Reviews
from reconciler.daemon.snapshots import Snapshots
from reconciler.daemon.state import Timing
from reconciler.daemon.watchdog import GIT, Watchdog
from reconciler.ports import Clock, PassResult
from reconciler.report.plan.text import pass_text
from reconciler.report.status.document import Seen
from reconciler.settings.settings import Settings
from reconciler.source.latest import LatestTree
from reconciler.telemetry.last_pass import LastPass
from reconciler.telemetry.logs import configure_logs, logger
from reconciler.telemetry.metrics import Metrics
from reconciler.telemetry.scheduled_capacity import ScheduledCapacity
from reconciler.telemetry.shown_passes import ShownPasses
from reconciler.timetable.agenda import Pacing, Trigger
from reconciler.web.pages import check_page, named_hosts, text_page
from reconciler.web.server import PageServer
from reconciler.wiring.catalog import open_catalog
from reconciler.wiring.cluster import open_cluster
from reconciler.wiring.cycle import make_cycle
from reconciler.wiring.daemon_pages import DaemonPages
from reconciler.wiring.leadership import election_of, guard, leadership, on_change
from reconciler.wiring.proposals import proposals_of
from reconciler.wiring.repository import latest_tree
from reconciler.wiring.reviews import reporter_of, reviews_by
from reconciler.wiring.snapshot_publisher import snapshots_by
from reconciler.wiring.webhooks import Announced, receive_webhooks

_AFTER_SILENCE = 20.0
"""Seconds that a Git process has to report that it was ended for its silence. The watchdog only ends what hangs elsewhere."""


def run_daemon(settings: Settings, *, now: datetime | None, until_settled: bool, at_most: float | None) -> int:
    """The daemon with everything around it, until it is stopped or settled. Returns the exit code."""
    configure_logs(form=settings.logs.form, level=settings.logs.level)
    log = logger()
    clock: Clock = SystemClock() if now is None else ShiftedClock(now)
    metrics = Metrics()
    with ExitStack() as stack:
        watchdog = _watchdog(settings)
        source = latest_tree(settings, clock, watchdog)
        stack.callback(source.close)
        cluster = open_cluster(settings, clock, metrics.count_request)
        stack.callback(cluster.close)
        cycle = make_cycle(
            settings,
            source=source,
            cluster=cluster,
            catalog=open_catalog(settings, cluster, clock),
            clock=clock,
            progress=watchdog.progress,
            proposals=proposals_of(settings, cluster.name),
        )
        metrics.registry.register(ScheduledCapacity(lambda: cycle.schedules, clock))
        last = LastPass(cluster=cluster.name, clock=clock, metrics=metrics, log=log)
        election = election_of(settings, cluster)
        leads = leadership(election, metrics.set_leader)
        reviews = reviews_by(reporter_of(settings, source, cluster, clock), settings, leads, metrics.count_report)
        snapshots = snapshots_by(settings, cluster, clock, leads, metrics.count_snapshot)
        daemon = Daemon(
            run_pass=lambda trigger: source.during(lambda: cycle.run(trigger.value)),
            poll_source=_polling(source, reviews),
            clock=clock,
            timing=_timing(settings),
            listeners=Listeners(_listener(settings, last, cycle, cluster.name), metrics.observe_poll),
            is_leader=leads,
            next_edge=cycle.next_edge,
            watchdog=watchdog,
        )
        guard(cluster, daemon, election, stack)
        pages = DaemonPages(settings, last, cycle, clock, cluster=cluster.name, daemon=daemon, election=election)
        server = PageServer(
            settings.listen,
            {**pages.by_path(), "/metrics": text_page(metrics.exposition)},
            probes={"/healthz": check_page(daemon.health), "/readyz": check_page(daemon.readiness)},
            find=pages.find,
            hosts=named_hosts(settings.allowed_hosts),
        )
        announced = Announced(source, daemon, reviews)
        receive_webhooks(settings, announced, metrics.count_webhook, stack)
        stack.callback(server.close)
        server.start()
        cluster.start(on_change(cluster, daemon, announced.request))
        _start(stack, reviews, snapshots)
        look = f"http://{server.address}/, /capacity, /status, /metrics, /readyz"
        log.info("started", cluster=cluster.name, repository=settings.repository or ".", look=look)
        code = daemon.run(until_settled=until_settled, at_most=None if at_most is None else timedelta(seconds=at_most))
    log.info("ended", exit_code=code)
    return code


def _start(stack: ExitStack, *threads: Reviews | Snapshots | None) -> None:
    """Those that the settings ask for, until the stack is left."""
    for thread in threads:
        if thread is not None:
            thread.start(stack)


def _timing(settings: Settings) -> Timing:
    passes = settings.passes
    pacing = Pacing(quiet=passes.quiet, quiet_at_most=passes.quiet_at_most)
    return Timing(poll=settings.git.interval, tick=passes.interval, pacing=pacing)


def _polling(source: LatestTree, reviews: Reviews | None) -> Callable[[], bool]:
    """Reports on pull requests are looked at again when their base has moved."""

    def poll() -> bool:
        news = source.poll()
        if news and reviews is not None:
            reviews.wake()
        return news

    return poll


def _watchdog(settings: Settings) -> Watchdog:
    """The optimal placement has a time limit of its own, which counts on top."""
    placement = settings.placement
    optimal_within = placement.optimal_within if placement.mode == "optimal" else timedelta(0)
    more = {GIT: _AFTER_SILENCE, "placement": optimal_within.total_seconds()}
    return Watchdog(more=more, ends_process=True)


def _listener(settings: Settings, last: LastPass, cycle: Cycle, cluster: str) -> Callable[[Trigger, PassResult], None]:
    """Passes are remembered and logged; a person at a console is also shown what each planned and applied."""
    shown = ShownPasses()

    def on_result(trigger: Trigger, result: PassResult) -> None:
        outlook = cycle.outlook
        last.observe(
            trigger.value,
            result,
            None if outlook is None else Seen(outlook.view, outlook.instance_types, outlook.declared.schedules),
        )
        if settings.logs.form == "console" and result.plan is not None and shown.is_news(result):
            sys.stdout.write(pass_text(result.plan, result.change_set, cluster=cluster) + "\n")
            sys.stdout.flush()

    return on_result

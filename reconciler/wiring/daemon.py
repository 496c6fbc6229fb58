"""The daemon: one process that serves a cluster or several, each by threads of its own, with one address for all of their pages. Each cluster
has everything around it, and the election of the replica that leads it."""

from __future__ import annotations

import ctypes
import socket
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import inf
from uuid import uuid4

from reconciler.clocks import ShiftedClock, SystemClock
from reconciler.cluster.embedded.cluster import EmbeddedCluster
from reconciler.cluster.kubernetes import KubernetesCluster
from reconciler.cluster.lease import LeaderElection
from reconciler.cycle import Cycle
from reconciler.daemon.background import LoopRules, Reviews, Snapshots
from reconciler.daemon.daemon import Daemon, Listeners, Timing
from reconciler.daemon.ending import GIT, Watchdog, stopped_by_signals
from reconciler.model.refs import abridged
from reconciler.ports import Clock, Cluster, PassResult
from reconciler.report.plan.page import pass_text
from reconciler.report.status.document import Seen
from reconciler.settings.settings import ClusterSettings, Settings
from reconciler.source.state import LatestTree
from reconciler.telemetry.gauges import ScheduledCapacity
from reconciler.telemetry.last_pass import LastPass
from reconciler.telemetry.logs import configure_logs, logger
from reconciler.telemetry.metrics import MergedMetrics, Metrics, ShownPasses
from reconciler.timetable.agenda import Pacing, Trigger
from reconciler.web.pages import check_page, named_hosts, text_page
from reconciler.web.server import PageServer
from reconciler.wiring.daemon_pages import ClusterPages, DaemonPages
from reconciler.wiring.forge import Announced, Reporter, proposals_of, receive_webhooks
from reconciler.wiring.inputs import latest_tree, open_catalog, open_cluster
from reconciler.wiring.session import make_cycle
from reconciler.wiring.snapshot_publisher import SnapshotPublisher


def election_of(settings: Settings, cluster: Cluster) -> LeaderElection | None:
    """Only real clusters have several replicas; without an election every one of them leads."""
    if not settings.leader_election or not isinstance(cluster, KubernetesCluster):
        return None
    # The host alone is not enough: a restarted process is another candidate, and must not take its old lease for its own.
    return cluster.election(f"{socket.gethostname()}_{uuid4().hex[:8]}")


def leadership(election: LeaderElection | None, tell: Callable[[bool], None]) -> Callable[[], bool]:
    """Whether this replica leads, told to the metrics each time it is asked."""

    def is_leader() -> bool:
        leads = election is None or election.is_leader()
        tell(leads)
        return leads

    return is_leader


def on_change(cluster: Cluster, daemon: Daemon, request: Callable[[str], None]) -> Callable[[], None]:
    """A change of the cluster. Where held room is taken or has come, quiet is not waited for. request: called with what asks for a pass, once
    for each value."""
    if not isinstance(cluster, KubernetesCluster | EmbeddedCluster):
        return daemon.changed
    known, asked = cluster.room_changes, ""

    def changed() -> None:
        nonlocal known, asked
        before, known = known, cluster.room_changes
        if isinstance(cluster, KubernetesCluster) and cluster.requested_at != asked:
            asked = cluster.requested_at
            request(asked)
        taken, came = (now != then for now, then in zip(known, before, strict=True))
        daemon.changed(Trigger.TAKEN if taken else Trigger.CAME if came else Trigger.CHANGE)

    return changed


def guard(cluster: Cluster, daemon: Daemon, election: LeaderElection | None, stack: ExitStack) -> None:
    """No write by a replica that stops or no longer leads; its lease is given up only after its last write."""
    if not isinstance(cluster, KubernetesCluster):
        return

    def hindrance() -> str:
        if daemon.stopping:
            return "headroom is stopping"
        return "" if election is None or election.is_leader() else "this replica does not lead now"

    cluster.write_only_unless(hindrance, (lambda: inf) if election is None else election.seconds_left)
    if election is not None:
        stack.callback(lambda: election.close(release=not cluster.is_writing))
        election.start()


_AFTER_SILENCE = 20.0
"""Seconds that a Git process has to report that it was ended for its silence. The watchdog only ends what hangs elsewhere."""
_COMPILING = 120.0
"""Seconds that compiling the loops of placement may take, which happens once on a machine: 25 s of CPU."""


@dataclass(frozen=True, slots=True)
class ServedCluster:
    """name: "" for the only one. start: begins to watch the cluster, and whatever else runs beside passes."""

    name: str
    settings: Settings
    daemon: Daemon
    metrics: Metrics
    pages: DaemonPages
    announced: Announced
    start: Callable[[], None]


class Watchdogs:
    """The watchdogs of one process: while one of them complains, none postpones the end of the process."""

    def __init__(self) -> None:
        self._all: list[Watchdog] = []

    def another(self, settings: Settings) -> Watchdog:
        """The optimal placement has a time limit of its own. That, and compiling, count on top."""
        placement = settings.placement
        optimal_within = placement.optimal_within if placement.is_optimal else timedelta(0)
        more = {GIT: _AFTER_SILENCE, "placement": _COMPILING + optimal_within.total_seconds()}
        self._all.append(Watchdog(more=more, ends_process=True, elsewhere=self.complaint))
        return self._all[-1]

    def complaint(self) -> str:
        return next((watchdog.complaint for watchdog in self._all if watchdog.complaint), "")


def open_served(
    served: ClusterSettings,
    clock: Clock,
    watchdogs: Watchdogs,
    stack: ExitStack,
    progress: Callable[[str], None] = lambda _phase: None,
) -> ServedCluster:
    """Opens all of it; the stack closes it. A cluster among several that cannot be reached yet is no error. progress: told each phase of a
    pass, and "" when it has ended."""
    name, settings, passes = served.name, served.settings, served.settings.passes
    log = logger(cluster=name) if name else logger()
    metrics, watchdog = Metrics(), watchdogs.another(settings)
    source = latest_tree(settings, clock, watchdog, name)
    stack.callback(source.close)
    cluster = open_cluster(settings, clock, metrics.count_request, checked=not name)
    stack.callback(cluster.close)
    shown = name or cluster.name

    def reached(phase: str) -> None:
        watchdog.progress(phase)
        progress(phase)

    cycle = make_cycle(
        settings,
        source=source,
        cluster=cluster,
        catalog=open_catalog(settings, cluster, clock),
        clock=clock,
        progress=reached,
        proposals=proposals_of(settings, shown),
    )
    metrics.registry.register(ScheduledCapacity(lambda: cycle.schedules if metrics.leads else (), clock))
    last = LastPass(cluster=shown, clock=clock, metrics=metrics, log=log)
    election = election_of(settings, cluster)
    leads = leadership(election, metrics.set_leader)
    reporter = Reporter(settings, source, cluster, clock) if settings.forge.reports else None
    reviews = snapshots = None
    if reporter is not None:
        reviews = Reviews(
            LoopRules(leads, settings.forge.interval, metrics.count_report, log),
            pull_requests=reporter.pull_requests,
            report=reporter.report,
            base=reporter.base,
        )
    if settings.snapshot.publish:
        publish = SnapshotPublisher(settings, cluster, clock).publish
        snapshots = Snapshots(LoopRules(leads, settings.snapshot.interval, metrics.count_snapshot, log), publish)
    daemon = Daemon(
        run_pass=lambda trigger: source.during(lambda: cycle.run(trigger)),
        poll_source=_polling(source, reviews),
        clock=clock,
        timing=Timing(settings.git.interval, passes.interval, Pacing(passes.quiet)),
        listeners=Listeners(_listener(settings, last, cycle, shown, progress), metrics.observe_poll, log),
        is_leader=leads,
        trouble=lambda: "" if election is None else election.trouble,
        next_edge=cycle.next_edge,
        watchdog=watchdog,
    )
    guard(cluster, daemon, election, stack)
    announced = Announced(source, daemon, reviews)

    def start() -> None:
        cluster.start(on_change(cluster, daemon, announced.request))
        for loop in (reviews, snapshots):
            if loop is not None:
                loop.start(stack)
        log.info("started", cluster=shown, repository=settings.repository or ".")

    pages = DaemonPages(
        settings, last, cycle, clock, cluster=shown, daemon=daemon, election=election, one_of_several=bool(name)
    )
    if reporter is not None:
        pages.reports = reporter.pages
    return ServedCluster(name, settings, daemon, metrics, pages, announced, start)


def _polling(source: LatestTree, reviews: Reviews | None) -> Callable[[], bool]:
    """Reports on pull requests are looked at again when their base has moved."""

    def poll() -> bool:
        news = source.poll()
        if news and reviews is not None:
            reviews.wake()
        return news

    return poll


def _listener(
    settings: Settings, last: LastPass, cycle: Cycle, cluster: str, progress: Callable[[str], None]
) -> Callable[[Trigger, PassResult], None]:
    """Passes are remembered and logged; a person at a console is also shown what each planned and applied."""
    shown = ShownPasses()

    def on_result(trigger: Trigger, result: PassResult) -> None:
        progress("")
        facts = None if cycle.outlook is None else cycle.outlook.facts
        last.observe(
            trigger.value,
            result,
            None if facts is None else Seen(facts.view, facts.instance_types, facts.effective.schedules),
        )
        if settings.logs.form == "console" and result.plan is not None and shown.is_news(result):
            sys.stdout.write(pass_text(result.plan, result.change_set, cluster=cluster) + "\n")
            sys.stdout.flush()

    return on_result


_MOST_NAMED = 5
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8
"""Parameters of glibc's mallopt (malloc.h)."""
_LARGE, _MOST_UNUSED = 32 * 2**20, 64 * 2**20
"""Bytes of a block that gets pages of its own, and of unused ones that are kept: the next page of a list needs as much again, and the
kernel takes as long to clear its memory as the parser to read it."""


def run_daemon(
    clusters: Sequence[ClusterSettings],
    *,
    now: datetime | None,
    until_settled: bool,
    at_most: float | None,
    progress: Callable[[str], None],
) -> int:
    """Serves all of them until it is stopped or they are settled. Returns the exit code: the largest of any cluster.

    progress: told each phase of a pass, for a person at a console; not of several clusters, whose passes overlap."""
    _share_memory()
    settings = clusters[0].settings  # of the process, such as its address, they are the same in all
    configure_logs(form=settings.logs.form, level=settings.logs.level)
    clock: Clock = SystemClock() if now is None else ShiftedClock(now)
    limit = None if at_most is None else timedelta(seconds=at_most)
    with ExitStack() as stack:
        watchdogs = Watchdogs()
        is_told = len(clusters) == 1 and settings.logs.form == "console"
        told = (progress,) if is_told else ()
        served = [open_served(each, clock, watchdogs, stack, *told) for each in clusters]
        pages = served[0].pages if len(served) == 1 else ClusterPages({each.name: each.pages for each in served})
        server = PageServer(
            settings.listen,
            {**pages.by_path(), "/metrics": text_page(_exposition(served))},
            probes={"/healthz": check_page(lambda: health(served)), "/readyz": check_page(lambda: readiness(served))},
            find=pages.find,
            hosts=named_hosts(settings.allowed_hosts),
        )
        receive_webhooks(
            settings, [(each.settings, each.announced) for each in served], served[0].metrics.count_webhook, stack
        )
        stack.callback(server.close)
        server.start()
        logger().info("serves its pages", look=f"http://{server.address}/, /capacity, /status, /metrics, /readyz")
        code = _run(served, until_settled=until_settled, at_most=limit)
    logger().info("ended", exit_code=code)
    return code


def _share_memory() -> None:
    """Lets all threads take memory from the same arena, and gives what is large and unused back.

    glibc otherwise has an arena for each of the many threads that watch. What one of them frees, no other uses: that was half of the
    memory of a large cluster. Other C libraries have neither such a function nor such arenas.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return
    for parameter, value in ((_ARENA_MAX, 1), (_MMAP_THRESHOLD, _LARGE), (_TRIM_THRESHOLD, _MOST_UNUSED)):
        mallopt(parameter, value)


def _run(served: Sequence[ServedCluster], *, until_settled: bool, at_most: timedelta | None) -> int:
    """Each in a thread of its own, so that none waits for another; the only one in the caller's."""
    codes: list[int] = []

    def run(each: ServedCluster) -> None:
        each.start()
        codes.append(each.daemon.run(until_settled=until_settled, at_most=at_most))

    def stop() -> None:
        for each in served:
            each.daemon.stop()

    if len(served) == 1:
        run(served[0])
        return codes[0]
    threads = [threading.Thread(target=run, args=(each,), name=f"daemon-{each.name}") for each in served]
    with stopped_by_signals(stop):
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return max(codes) if len(codes) == len(served) else 1


def _exposition(served: Sequence[ServedCluster]) -> Callable[[], tuple[bytes, str]]:
    if len(served) == 1:
        return served[0].metrics.exposition
    return MergedMetrics({each.name: each.metrics.registry for each in served}).exposition


def health(served: Sequence[ServedCluster]) -> tuple[bool, str]:
    """Whether the process is healthy. It is not if one cluster's daemon is stuck, since only a new process can help that one."""
    return _all(served, [each.daemon.health() for each in served], least=len(served))


def readiness(served: Sequence[ServedCluster]) -> tuple[bool, str]:
    """Whether one cluster at least is ready; the words name those that are not, which must not take the pages of all others away."""
    return _all(served, [each.daemon.readiness() for each in served], least=1)


def _all(served: Sequence[ServedCluster], found: Sequence[tuple[bool, str]], *, least: int) -> tuple[bool, str]:
    if len(served) == 1:
        return found[0]
    bad = [f"{each.name}: {words}" for each, (good, words) in zip(served, found, strict=True) if not good]
    said = f"{len(served) - len(bad)} of {len(served)} clusters; {abridged(bad, _MOST_NAMED)}" if bad else "ok"
    return len(served) - len(bad) >= least, said

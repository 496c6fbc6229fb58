"""The daemon: one process that serves a cluster or several, each by threads of its own, with one address for all of their pages."""

from __future__ import annotations

import ctypes
import tempfile
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from datetime import datetime, timedelta

from reconciler.clocks import ShiftedClock, SystemClock
from reconciler.daemon.ending import stopped_by_signals
from reconciler.model.refs import abridged
from reconciler.ports import Clock
from reconciler.settings.clusters import ClusterSettings, sharing_a_copy
from reconciler.telemetry.logs import configure_logs, logger
from reconciler.telemetry.metrics import MergedMetrics
from reconciler.web.pages import check_page, named_hosts, text_page
from reconciler.web.server import PageServer
from reconciler.wiring.daemon_pages import ClusterPages
from reconciler.wiring.forge import receive_webhooks
from reconciler.wiring.served_cluster import ServedCluster, Watchdogs, open_served

_MOST_NAMED = 5
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8
"""Parameters of glibc's mallopt (malloc.h)."""
_LARGE, _MOST_UNUSED = 2**20, 32 * 2**20
"""Bytes of a block that gets pages of its own, and of unused ones that are kept: the next page of a list needs as much again."""


def run_daemon(
    clusters: Sequence[ClusterSettings], *, now: datetime | None, until_settled: bool, at_most: float | None
) -> int:
    """Serves all of them until it is stopped or they are settled. Returns the exit code: the largest of any cluster."""
    _share_memory()
    settings = clusters[0].settings  # of the process, such as its address, they are the same in all
    configure_logs(form=settings.logs.form, level=settings.logs.level)
    clock: Clock = SystemClock() if now is None else ShiftedClock(now)
    limit = None if at_most is None else timedelta(seconds=at_most)
    with ExitStack() as stack:
        if len(clusters) > 1:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="headroom-git-"))
            clusters = sharing_a_copy(clusters, folder)
        watchdogs = Watchdogs()
        served = [open_served(each, clock, watchdogs, stack) for each in clusters]
        pages = served[0].pages if len(served) == 1 else ClusterPages({each.name: each.pages for each in served})
        server = PageServer(
            settings.listen,
            {**pages.by_path(), "/metrics": text_page(_exposition(served))},
            probes={
                "/healthz": check_page(lambda: health(served)),
                "/readyz": check_page(lambda: readiness(served)),
            },
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
    """Lets all threads take memory from the same two arenas, and gives large blocks back at once.

    glibc otherwise has an arena for each of the many threads that watch. What one of them frees, no other uses: that was half of the
    memory of a large cluster. Other C libraries have neither such a function nor such arenas.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return
    for parameter, value in ((_ARENA_MAX, 2), (_MMAP_THRESHOLD, _LARGE), (_TRIM_THRESHOLD, _MOST_UNUSED)):
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

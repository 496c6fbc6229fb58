"""Clusters to look at through the daemon's page: an empty one, a healthy one, a sick one, a huge one, and several on one page.

`python -m tests.page_worlds FOLDER` writes pictures of all of them, on a phone and on a desk, by day and by night. With `--readme` it renews
docs/pictures/page.png instead. Needs Chromium.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import cast

from reconciler.catalog.observed import ClusterCatalog
from reconciler.cycle import Cycle
from reconciler.daemon.daemon import Daemon
from reconciler.model.changes import BudgetOutcome, Cost, DemandOutcome, Plan
from reconciler.model.conditions import Condition, ConditionStatus
from reconciler.model.declared import SourceTree
from reconciler.model.errors import Transient
from reconciler.model.findings import Finding, Severity
from reconciler.model.placement import Cause, Holding, OccupiedBin, UnplacedReason
from reconciler.model.refs import SourcePosition
from reconciler.model.view import ClusterView
from reconciler.ports import PassResult
from reconciler.report.status.document import Seen
from reconciler.settings.settings import Settings
from reconciler.telemetry.last_pass import LastPass
from reconciler.telemetry.logs import configure_logs, logger
from reconciler.telemetry.metrics import Metrics
from reconciler.web.server import PageServer
from reconciler.wiring.daemon_pages import ClusterPages, DaemonPages
from reconciler.wiring.session import make_cycle
from tests.browser import Browser
from tests.builders import demand, deployment_ref, instance_type, node, pod, shape
from tests.fakes.clock import ManualClock
from tests.fakes.embedded import DELAYS
from tests.fakes.played_cluster import PlayedCluster
from tests.fakes.source import FakeSource
from tests.manifests import buffer, pod_template

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "examples-repo"
PICTURE = ROOT / "docs" / "pictures" / "page.png"
SETTINGS = Settings(repository="https://github.com/example/capacity.git", path="clusters/production")
DESK, PHONE = 1280, 390
BEGINS = datetime(2026, 11, 25, 4, 0, tzinfo=UTC)
COMMIT = "main@sha1:4f1c8a90d2be6f7355c0e4aa1b9d7c63e2f80715"


@dataclass(frozen=True, slots=True)
class World:
    """A daemon that makes no passes of its own. observe: takes over a pass, as the daemon's listener does."""

    clock: ManualClock
    last: LastPass
    pages: DaemonPages | ClusterPages

    @contextmanager
    def served(self) -> Iterator[str]:
        """The address at which its pages are."""
        server = PageServer("127.0.0.1:0", self.pages.by_path(), find=self.pages.find)
        server.start()
        try:
            yield f"http://{server.address}"
        finally:
            server.close()


def world(cluster: str, clock: ManualClock, cycle: Cycle | None = None) -> World:
    last = LastPass(cluster=cluster, clock=clock, metrics=Metrics(), log=logger())
    daemon = Daemon(run_pass=lambda _trigger: PassResult(), poll_source=lambda: False, clock=clock)
    # Where passes are made by hand, nothing is known of the time to come.
    known = cycle or SimpleNamespace(outlook=None)
    pages = DaemonPages(SETTINGS, last, cast("Cycle", known), clock, cluster=cluster, daemon=daemon, election=None)
    return World(clock, last, pages)


class Shop:
    """The example's repository on the embedded cluster. Passes are made whenever a test asks for one."""

    def __init__(self, changes: Mapping[str, str] | None = None, *, begins: datetime = BEGINS) -> None:
        self.clock = ManualClock(begins)
        production = EXAMPLES / "clusters" / "production"
        files = {path.relative_to(EXAMPLES).as_posix(): path.read_text() for path in production.rglob("*.yaml")}
        self.source = _Commits(files | dict(changes or {}))
        self.cluster = PlayedCluster.from_snapshot(
            EXAMPLES / "snapshots" / "production", self.clock, delays=DELAYS, real_time=False, provisions_pending=True
        )
        self.cycle = make_cycle(
            SETTINGS, source=self.source, cluster=self.cluster, catalog=ClusterCatalog("embedded"), clock=self.clock
        )
        self.world = world("production", self.clock, self.cycle)

    def run(self, trigger: str = "tick", *, after: float = 0) -> PassResult:
        self.clock.advance(after)
        self.cluster.view()
        result = self.cycle.run(trigger)
        facts = None if self.cycle.outlook is None else self.cycle.outlook.facts
        seen = None if facts is None else Seen(facts.view, facts.instance_types, facts.effective.schedules)
        self.world.last.observe(trigger, result, seen)
        return result

    def settle(self, passes: int = 6) -> None:
        for _ in range(passes):
            self.run("change", after=10)


class _Commits(FakeSource):
    def commit(self, files: Mapping[str, str], revision: str | None = COMMIT) -> None:
        contents = {name: text.encode() for name, text in files.items()}
        self._tree = SourceTree(revision, contents, committed=datetime(2026, 11, 25, 3, 41, tzinfo=UTC))


def empty(begins: datetime = BEGINS) -> World:
    clock = ManualClock(begins)
    made = world("staging", clock)
    made.last.observe(
        "start", PassResult(plan=Plan(COMMIT, clock.now()), tree=SourceTree(COMMIT, committed=clock.now()))
    )
    clock.advance(40)
    return made


def healthy(*, hours: int = 5) -> World:
    shop = Shop()
    shop.run("start")
    shop.settle()
    for hour in range(hours):
        shop.run(after=1500)
        shop.cluster.scale(deployment_ref(), 10 + hour % 3 * 5)
        for _ in range(6):
            shop.run("taken", after=8)
    shop.clock.advance(20)
    return shop.world


def sick(begins: datetime = BEGINS) -> World:
    """A buffer without its Deployment, one that a limit stops, a node that is not ready, and a repository that cannot be read."""
    broken = {"clusters/production/buffers/search.yaml": _SEARCH, "clusters/production/buffers/sale.yaml": _SALE}
    shop = Shop(broken, begins=begins)
    shop.run("start")
    shop.settle(passes=3)
    shop.run(after=3600)
    held = next(item.name for item in shop.cluster.view().nodes if item.label("karpenter.sh/nodepool") == "general")
    shop.cluster.set_ready(held, ready=False)
    shop.source.stall("git.example.com does not answer (connection timed out)")
    shop.run("change", after=300)
    shop.clock.advance(30)
    return shop.world


def huge(*, buffers: int = 500, nodes: int = 5000, pods: int = 150_000) -> World:
    """500 buffers on 5,000 nodes with 150,000 pods, made by hand: placing them is not what is looked at."""
    clock = ManualClock()
    plan, seen = large_pass(clock.now(), buffers=buffers, nodes=nodes, pods=pods)
    made = world("production-eu", clock)
    tree = SourceTree(COMMIT, committed=clock.now())
    for _ in range(40):
        made.last.observe("tick", PassResult(plan=plan, tree=tree), seen)
        clock.advance(300)
    clock.advance(-260)
    return made


def several() -> World:
    """Four clusters at one instant: the healthy one, the empty one, the sick one, and one whose API server does not answer."""
    shop = healthy()
    now = shop.clock.now()
    short = sick(now - (sick().clock.now() - BEGINS))
    away = world("edge-9", ManualClock(now - timedelta(seconds=25)))
    refused = Transient("https://edge-9.example.com:6443 does not answer (connection refused)", hint="")
    away.last.observe("start", PassResult(failure=refused))
    away.clock.advance(25)
    clusters = {"production-eu": shop, "staging": empty(now - timedelta(seconds=40)), "sale": short, "edge-9": away}
    return World(
        shop.clock,
        shop.last,
        ClusterPages({name: made.pages for name, made in clusters.items() if isinstance(made.pages, DaemonPages)}),
    )


def large_pass(now: datetime, *, buffers: int, nodes: int, pods: int) -> tuple[Plan, Seen]:
    pools = ("general", "batch", "memory", "gpu")
    types = [instance_type("m-16x", cpu="16", memory="64Gi", price=0.77)]
    view = ClusterView(
        nodes=tuple(
            node(f"node-{number:04}", cpu="16", memory="64Gi", pool=pools[number % 4], instance_type="m-16x")
            for number in range(nodes)
        ),
        pods=tuple(
            pod(f"pod-{number}", node=f"node-{number % nodes:04}", pod_shape=_SHAPES[number % 40])
            for number in range(pods)
        ),
    )
    outcomes = []
    held: dict[int, list[Holding]] = {}
    for number in range(buffers):
        asked = demand(f"buffer-{number:03}", count=20)
        lacks = 4 if number % 100 == 7 else 0
        why = (UnplacedReason(Cause.AT_LIMIT, 1, "NodePool general is at its cpu limit of 64,000", chunks=lacks),)
        full = Condition("Provisioning", ConditionStatus.FALSE if lacks else ConditionStatus.TRUE, "Fits", "")
        asked = replace(asked, source=SourcePosition(f"teams/{number % 40}/buffers.yaml", 3 + number))
        outcomes.append(DemandOutcome(asked, 20 - lacks, 0, lacks, why if lacks else (), (full,)))
        for place in range(4):
            held.setdefault((number * 4 + place) % nodes, []).append(Holding(asked.ref, 0, 5))
    plan = Plan(
        COMMIT,
        now,
        demands=tuple(outcomes),
        occupied=tuple(OccupiedBin(f"node-{number:04}", None, tuple(items)) for number, items in sorted(held.items())),
        budgets=tuple(
            BudgetOutcome(pool, reason, 125, 120, 3, 2, 1250, "10% of 1,250 nodes")
            for pool in pools
            for reason in _REASONS
        ),
        cost=Cost(0.77 * nodes, 0.77 * nodes),
        findings=tuple(
            Finding("half-consumption", Severity.INFO, "pods may take half of it", SourcePosition("a.yaml", number))
            for number in range(200)
        ),
    )
    return plan, Seen(view, types)


_REASONS = ("Underutilized", "Empty", "Drifted")
_SHAPES = tuple(shape(f"{100 + number * 5}m", f"{256 + number * 16}Mi") for number in range(40))
_SEARCH = buffer("search", "replicas: 4", of="scalableRef: {apiGroup: apps, kind: Deployment, name: search}")
_SALE = buffer("flash-sale", "replicas: 14", of="podTemplateRef: {name: flash-sale}") + pod_template(
    "flash-sale", "cpu: 16, memory: 16Gi"
)
WORLDS: Mapping[str, Callable[[], World]] = {
    "empty": empty,
    "healthy": healthy,
    "sick": sick,
    "huge": huge,
    "several": several,
}


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.page_worlds", description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=Path(".headroom/pages"))
    parser.add_argument("--readme", action="store_true", help="renew docs/pictures/page.png")
    parser.add_argument("--only", choices=WORLDS, help="this cluster alone")
    options = parser.parse_args(arguments)
    configure_logs(form="console", level="error")
    with tempfile.TemporaryDirectory() as profile, Browser(Path(profile)) as browser:
        if options.readme:
            made = healthy()
            with (
                made.served() as address,
                browser.opened(f"{address}/", width=DESK, zone="Europe/Berlin", now=made.clock.now()) as tab,
            ):
                PICTURE.write_bytes(tab.picture(height=820))
            return
        options.folder.mkdir(parents=True, exist_ok=True)
        for name in [options.only] if options.only else WORLDS:
            made = WORLDS[name]()
            with (
                made.served() as address,
                browser.opened(f"{address}/", zone="Europe/Berlin", now=made.clock.now()) as tab,
            ):
                for width, look in product((PHONE, DESK), ("light", "dark")):
                    tab.look(width=width, height=900, dark=look == "dark", zone="Europe/Berlin")
                    (options.folder / f"{name}-{width}-{look}.png").write_bytes(tab.picture())
    sys.stdout.write(f"pictures are in {options.folder}\n")


if __name__ == "__main__":
    main()

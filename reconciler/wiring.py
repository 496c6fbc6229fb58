"""The composition root: the one place where real adapters are bound, as typed arguments. Called by cli.

Everything heavy (a Kubernetes client, Git, numpy) is imported only on the way to the adapter that needs it.
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING
from uuid import uuid4

from reconciler.clocks import FixedClock, ShiftedClock, SystemClock
from reconciler.cycle import Cycle, Rules
from reconciler.model.errors import Invalid
from reconciler.model.source import SourceTree
from reconciler.packaged import packaged_texts
from reconciler.ports import Catalog, Clock, Cluster, PassResult, Source
from reconciler.render.environment import MOST_PAGE, Templates
from reconciler.report.escaping import PAGE_FILTERS, page_value
from reconciler.settings import Settings

if TYPE_CHECKING:
    from reconciler.cluster.inventory import InventoryParent
    from reconciler.source.opening import GitOptions
    from reconciler.web.pages import Page

CLUSTER_CHOICES = "kubeconfig[:CONTEXT], in-cluster, snapshot:PATH or embedded[:SNAPSHOT]"
Count = Callable[[str, str, str], None]


class NoClusterHere(Invalid):
    """No cluster was named, and none is there."""


def _uncounted(_method: str, _resource: str, _code: str) -> None:
    """A one-shot command has no metrics."""


@dataclass(frozen=True, slots=True)
class Session:
    """What a one-shot command works with; open_session closes it."""

    cycle: Cycle
    cluster: Cluster
    settings: Settings
    clock: Clock

    def tree_at(self, revision: str | None) -> SourceTree:
        """The repository's tree at a revision; None is the working tree as it stands."""
        from reconciler.source.opening import tree_at  # noqa: PLC0415 - Git only where it is used

        settings = self.settings
        return tree_at(
            settings.repository or ".",
            revision,
            settings.path,
            clock=self.clock,
            options=_git_options(settings),
        )


@contextmanager
def open_session(
    settings: Settings,
    *,
    now: datetime | None,
    progress: Callable[[str], None],
) -> Iterator[Session]:
    """Adapters for one command: opened, and closed whatever happens."""
    clock: Clock = SystemClock() if now is None else FixedClock(now)
    source = open_source(settings, clock)
    try:
        cluster = open_cluster(settings, clock)
        try:
            progress("view")
            cluster.start(lambda: None)
            catalog = open_catalog(settings, cluster, clock)
            cycle = make_cycle(
                settings, source=source, cluster=cluster, catalog=catalog, clock=clock, progress=progress
            )
            yield Session(cycle, cluster, settings, clock)
        finally:
            cluster.close()
    finally:
        source.close()


def make_cycle(
    settings: Settings,
    *,
    source: Source,
    cluster: Cluster,
    catalog: Catalog,
    clock: Clock,
    progress: Callable[[str], None] = lambda _stage: None,
) -> Cycle:
    from reconciler.demand.dialect import Dialect  # noqa: PLC0415 - see above
    from reconciler.placement.problem import PlacementOptions  # noqa: PLC0415 - see above
    from reconciler.plan.drift import Drift  # noqa: PLC0415 - see above
    from reconciler.plan.limits import PlanCaps  # noqa: PLC0415 - see above

    caps, placement = settings.caps, settings.placement
    return Cycle(
        source=source,
        cluster=cluster,
        catalog=catalog,
        clock=clock,
        rules=Rules(
            dialect=Dialect(settings.dialect),
            caps=PlanCaps(caps.new_nodes_per_pass, caps.price_per_hour, caps.nodes_per_pool, caps.prune_share),
            placement=PlacementOptions(
                chunks_per_node=placement.chunks_per_node or None,
                instance_types=placement.instance_types,
                spot_share=placement.spot_share,
                optimal=placement.mode == "optimal",
            ),
            optimal_within=placement.optimal_within,
            inventory=_inventory(settings),
            check_placement=placement.check,
            templates_folder=settings.templates,
            suspend=settings.suspend,
            drift=Drift(settings.drift),
        ),
        packaged_templates=packaged_texts("templates", suffix=".j2"),
        progress=progress,
    )


def rendered_page(name: str, page: Mapping[str, object]) -> str:
    """One of the packaged pages: `report.html.j2`, `schedule.html.j2`, …"""
    templates = Templates(packaged_texts("templates", suffix=".j2"), filters=PAGE_FILTERS, finalize=page_value)
    return templates.render(name, page, most_output=MOST_PAGE)


def open_source(settings: Settings, clock: Clock) -> Source:
    from reconciler.source.opening import open_source as opened  # noqa: PLC0415 - Git only where it is used

    return opened(
        settings.repository or ".",
        clock=clock,
        revision=settings.revision or None,
        subdirectory=settings.path,
        options=_git_options(settings),
    )


def repository_tree(settings: Settings, now: datetime) -> SourceTree:
    """The tree that the settings name, for a command that needs no cluster. Raises as `tree_at`."""
    from reconciler.source.opening import tree_at  # noqa: PLC0415 - Git only where it is used

    return tree_at(
        settings.repository or ".",
        settings.revision or None,
        settings.path,
        clock=FixedClock(now),
        options=_git_options(settings),
    )


def _git_options(settings: Settings) -> GitOptions:
    from reconciler.source.credentials import Credentials  # noqa: PLC0415 - Git only where it is used
    from reconciler.source.opening import GitOptions  # noqa: PLC0415 - likewise

    git = settings.git
    return GitOptions(
        credentials=Credentials(git.username, git.token_file, git.ssh_key, git.known_hosts),
        state=git.state,
        allowed_signers=git.allowed_signers,
        timeout=git.timeout,
        rewind_hold=git.rewind_hold,
    )


def open_catalog(settings: Settings, cluster: Cluster, clock: Clock) -> Catalog:
    """The catalog that `catalog` names; else the cluster's own (a snapshot's, the embedded one's), else what is observed."""
    choice = settings.catalog
    kind, _, rest = choice.partition(":")
    if kind == "karpenter-metrics" and rest:
        from reconciler.catalog.karpenter_metrics import KarpenterMetricsCatalog  # noqa: PLC0415 - see above

        return KarpenterMetricsCatalog(rest, clock=clock)
    if choice in {"", "observed"}:
        from reconciler.catalog.observed import ClusterCatalog, ObservedCatalog  # noqa: PLC0415 - see above

        return ObservedCatalog() if choice else ClusterCatalog(cluster.name)
    if kind == "karpenter-metrics":
        raise Invalid(
            "--catalog karpenter-metrics needs the address of Karpenter's metrics", hint="karpenter-metrics:URL"
        )
    from reconciler.catalog.file import FileCatalog  # noqa: PLC0415 - see above

    return FileCatalog(choice)


def open_cluster(settings: Settings, clock: Clock, count: Count = _uncounted) -> Cluster:
    """The cluster that `cluster` names; without one, what is there, and never the embedded one by itself.

    count: told of every request to an API server (method, resource, HTTP status).
    """
    choice = settings.cluster or _what_is_there()
    kind, _, rest = choice.partition(":")
    if kind == "snapshot" and rest:
        from reconciler.cluster.snapshot import SnapshotCluster  # noqa: PLC0415 - see above

        return SnapshotCluster(rest, _inventory(settings))
    if kind == "embedded":
        return _embedded_cluster(settings, clock, rest)
    if choice != "in-cluster" and kind != "kubeconfig":
        raise Invalid(f"--cluster {choice} is no cluster", hint=f"write {CLUSTER_CHOICES}")
    from reconciler.cluster.kubernetes import in_cluster, kubeconfig_cluster  # noqa: PLC0415 - see above

    if choice == "in-cluster":
        return in_cluster(inventory=_inventory(settings), count=count)
    return kubeconfig_cluster(rest or None, inventory=_inventory(settings), count=count)


def _embedded_cluster(settings: Settings, clock: Clock, snapshot: str) -> Cluster:
    from reconciler.cluster.embedded import EmbeddedCluster  # noqa: PLC0415 - see above
    from reconciler.cluster.embedded_karpenter import Delays  # noqa: PLC0415 - see above

    delays = Delays(launch=settings.embedded.launch_delay, register=settings.embedded.register_delay)
    parent = _inventory(settings)
    if snapshot:
        return EmbeddedCluster.from_snapshot(snapshot, clock, delays=delays, inventory=parent, provisions_pending=True)
    # A snapshot has its cluster's namespaces; here, where there is nothing, the repository's are made.
    return EmbeddedCluster(clock, delays=delays, inventory=parent, provisions_pending=True, makes_namespaces=True)


def _inventory(settings: Settings) -> InventoryParent:
    from reconciler.cluster.inventory import InventoryParent  # noqa: PLC0415 - see above

    return InventoryParent(settings.inventory.namespace, settings.inventory.name)


def _what_is_there() -> str:
    if os.environ.get("KUBERNETES_SERVICE_HOST"):
        return "in-cluster"
    from reconciler.cluster.connection import current_context  # noqa: PLC0415 - see above

    if current_context() is not None:
        return "kubeconfig"
    raise NoClusterHere(
        "there is no cluster here: not inside one, and no kubeconfig with a current context",
        hint=f"name one with --cluster: {CLUSTER_CHOICES}",
    )


def capture_snapshot(settings: Settings, path: str) -> Mapping[str, int]:
    """Writes a snapshot of the cluster that the settings name; the number of objects by plural."""
    from reconciler.cluster.capture import capture  # noqa: PLC0415 - see above
    from reconciler.cluster.kubernetes import KubernetesCluster  # noqa: PLC0415 - see above

    clock = SystemClock()
    cluster = open_cluster(settings, clock)
    try:
        cluster.start(lambda: None)
        if not isinstance(cluster, KubernetesCluster):
            raise Invalid(
                f"{cluster.name} is no cluster to capture",
                hint="name a real one: --cluster kubeconfig[:CONTEXT] or in-cluster",
            )
        catalog = open_catalog(settings, cluster, clock).instance_types(cluster.view())
        return capture(cluster.read, path, catalog)
    finally:
        cluster.close()


def run_daemon(settings: Settings, *, now: datetime | None, until_settled: bool, at_most: float | None) -> int:
    """The daemon with everything around it, until it is stopped or settled. Returns the exit code."""
    from reconciler.daemon import Daemon  # noqa: PLC0415 - see above
    from reconciler.report.status.document import with_next_edge  # noqa: PLC0415 - see above
    from reconciler.source.latest import LatestTree  # noqa: PLC0415 - see above
    from reconciler.telemetry.last_pass import LastPass  # noqa: PLC0415 - see above
    from reconciler.telemetry.logs import configure_logs, logger  # noqa: PLC0415 - see above
    from reconciler.telemetry.metrics import Metrics  # noqa: PLC0415 - see above
    from reconciler.telemetry.scheduled_capacity import ScheduledCapacity  # noqa: PLC0415 - see above
    from reconciler.timetable.agenda import Pacing, Trigger  # noqa: PLC0415 - see above
    from reconciler.web.pages import check_page, json_page, text_page  # noqa: PLC0415 - see above
    from reconciler.web.server import PageServer  # noqa: PLC0415 - see above

    configure_logs(form=settings.logs.form, level=settings.logs.level)
    log = logger()
    clock: Clock = SystemClock() if now is None else ShiftedClock(now)
    metrics = Metrics()
    with ExitStack() as stack:
        source = LatestTree(open_source(settings, clock))
        stack.callback(source.close)
        cluster = open_cluster(settings, clock, metrics.count_request)
        stack.callback(cluster.close)
        cycle = make_cycle(
            settings, source=source, cluster=cluster, catalog=open_catalog(settings, cluster, clock), clock=clock
        )
        metrics.registry.register(ScheduledCapacity(lambda: cycle.schedules, clock))
        last = LastPass(cluster=cluster.name, clock=clock, metrics=metrics, log=log)
        show = _plan_printer(cluster.name) if settings.logs.form == "console" else None

        def on_result(trigger: Trigger, result: PassResult) -> None:
            last.observe(trigger.value, result)
            if show is not None:
                show(result)

        daemon = Daemon(
            run_pass=lambda trigger: cycle.run(trigger.value),
            poll_source=source.poll,
            clock=clock,
            poll_interval=settings.git.interval,
            pass_interval=settings.passes.interval,
            pacing=Pacing(quiet=settings.passes.quiet, quiet_at_most=settings.passes.quiet_at_most),
            on_result=on_result,
            on_poll=metrics.observe_poll,
            is_leader=_leadership(settings, cluster, stack, metrics.set_leader),
            next_edge=cycle.next_edge,
            log=log,
        )
        server = PageServer(
            settings.listen,
            {
                "/healthz": check_page(daemon.health),
                "/readyz": check_page(daemon.readiness),
                "/metrics": text_page(metrics.exposition),
                "/status": json_page(lambda: with_next_edge(last.document(), daemon.state.next_edge)),
                "/capacity": _capacity_page(cycle, cluster.name, clock),
            },
        )
        stack.callback(server.close)
        server.start()
        cluster.start(daemon.changed)
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


def _capacity_page(cycle: Cycle, cluster: str, clock: Clock) -> Page:
    """All capacity over the coming week, as the last pass knew it; drawn once a minute at most."""
    from reconciler.report.timeline.page import timeline_page  # noqa: PLC0415 - see above
    from reconciler.web.pages import html_page  # noqa: PLC0415 - see above

    def version() -> tuple[object, datetime] | None:
        outlook = cycle.outlook
        return None if outlook is None else (outlook, clock.now().replace(second=0, microsecond=0))

    def drawn() -> str:
        outlook = cycle.outlook
        assert outlook is not None
        return rendered_page("timeline.html.j2", timeline_page(outlook.ahead(clock.now()), cluster=cluster))

    return html_page(version, drawn)


def _leadership(
    settings: Settings,
    cluster: Cluster,
    stack: ExitStack,
    tell: Callable[[bool], None],
) -> Callable[[], bool]:
    """Whether this replica leads. Only real clusters have several; without an election everybody does."""
    from reconciler.cluster.kubernetes import KubernetesCluster  # noqa: PLC0415 - see above

    if not settings.leader_election or not isinstance(cluster, KubernetesCluster):
        tell(True)
        return lambda: True
    # The host alone is not enough: a restarted process is another candidate, and must not take its own old lease for its.
    identity = f"{socket.gethostname()}_{uuid4().hex[:8]}"
    election = cluster.election(identity)
    election.start()
    stack.callback(election.close)

    def is_leader() -> bool:
        leads = election.is_leader()
        tell(leads)
        return leads

    return is_leader


def _plan_printer(cluster: str) -> Callable[[PassResult], None]:
    """Shows a person what each pass planned and applied; passes that changed nothing are not shown."""
    from reconciler.report.plan.text import pass_text  # noqa: PLC0415 - see above

    def show(result: PassResult) -> None:
        if result.plan is not None and (result.plan.has_changes or result.change_set is None):
            sys.stdout.write(pass_text(result.plan, result.change_set, cluster=cluster) + "\n")
            sys.stdout.flush()

    return show

"""What came of a pass, in one word and for a person at a console, and the daemon's metrics for Prometheus: one `Metrics` object with its own
registry, updated after every pass and served by web."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from reconciler.model.buffers import BUFFER_KINDS
from reconciler.model.changes import Annotate, Apply, ApplyStatus, ChangeSet, Delete, Outcome, Plan, Write
from reconciler.model.errors import Failure, Transient
from reconciler.model.placement import Holding
from reconciler.model.refs import ObjectRef, counted
from reconciler.ports import PassResult
from reconciler.report.plan.words import summary
from reconciler.telemetry.buffers import Shortages
from reconciler.telemetry.gauges import PassGauges

_SECONDS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)
_SECONDS_TO_FULL = (1.0, 5.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0)
_ACTIONS: Mapping[type[Write], str] = {
    Annotate: "annotate", Apply: "apply", ApplyStatus: "status", Delete: "delete",
}  # fmt: skip


GOOD = frozenset({"applied", "unchanged"})
Problems = frozenset[tuple[str, str, str]]
"""Writes that were not made: object, outcome and message of each."""
WORDS = ("applied", "unchanged", "partial", "invalid", "waiting", "stalled", "transient")


def result_of(result: PassResult) -> str:
    """applied, unchanged, partial (some writes failed), or its failure's type in lower case.

    A write that has to wait for another does not make the pass partial: the next pass makes it.
    """
    if result.failure is not None:
        return type(result.failure).__name__.lower()
    writes = result.change_set.results if result.change_set is not None else ()
    if any(not write.ok and write.outcome is not Outcome.SKIPPED for write in writes):
        return "partial"
    return "applied" if any(write.outcome is Outcome.APPLIED for write in writes) else "unchanged"


def failure_of(result: PassResult) -> Failure | None:
    """The pass's own failure, or a transient one if some of its writes should be tried again."""
    if result.failure is not None or result.change_set is None:
        return result.failure
    again = [write for write in result.change_set.results if write.outcome is Outcome.FAILED]
    if not again:
        return None
    how_many = f"{counted(len(again), 'write')} failed" + (", the first" if len(again) > 1 else "")
    return Transient(f"{how_many} of {again[0].write.ref}: {again[0].message}")


def wrote(result: PassResult) -> bool:
    """Whether anything was written to the cluster."""
    writes = result.change_set.results if result.change_set is not None else ()
    return any(write.outcome is Outcome.APPLIED for write in writes)


def problems_of(change_set: ChangeSet) -> Problems:
    """Its writes that were not made."""
    return frozenset((str(item.write.ref), item.outcome.value, item.message) for item in change_set.failures)


class ShownPasses:
    """A write that fails for the same cause at every pass, such as a conflict of field managers, is shown once."""

    def __init__(self) -> None:
        self._before: tuple[str, Problems] | None = None

    def is_news(self, result: PassResult) -> bool:
        """Whether it did something, or fails in another way than the pass before."""
        plan, change_set = result.plan, result.change_set
        if plan is None:
            return False
        if change_set is None:
            return True
        came_to = summary(plan, UTC), problems_of(change_set)
        before, self._before = self._before, came_to
        did = any(
            item.outcome is Outcome.APPLIED and not isinstance(item.write, ApplyStatus) for item in change_set.results
        )
        return plan.has_changes and (did or came_to != before)


class Metrics:
    """Thread-safe: passes, polls and cluster requests are reported from their own threads."""

    def __init__(self) -> None:
        # Without this every counter is served twice, the second time with its creation time.
        disable_created_metrics()  # type: ignore[no-untyped-call]  # the client leaves this function unannotated
        self.registry = CollectorRegistry()
        self._gauges = PassGauges()
        self.registry.register(self._gauges)
        self._duration = self._histogram("headroom_reconcile_duration_seconds", "How long passes took")
        self._stages = self._histogram("headroom_reconcile_stage_duration_seconds", "… stage by stage", "stage")
        self._passes = self._counter("headroom_reconcile", "Passes by result", "result")
        self._polls = self._counter("headroom_git_polls", "Polls of the repository by result", "result")
        self._poll_duration = self._histogram("headroom_git_poll_duration_seconds", "How long polls took")
        self.count_request = self._counting(
            "headroom_cluster_requests", "Requests to the API server", "method", "resource", "code"
        )
        """Called with the HTTP status, or `error` without an answer, as the code."""
        self._writes = self._counter("headroom_writes", "Writes of plans to the cluster", "kind", "action", "outcome")
        self._node_claims = self._counter(
            "karpenter_buffer_nodeclaims", "NodeClaims made to hold capacity, since the daemon started", "kind"
        )
        self._blocked = self._counter(
            "karpenter_buffer_consolidation_blocked",
            "Nodes newly kept from consolidation because they hold capacity, since the daemon started",
            "kind",
        )
        self._time_to_full = Histogram(
            "headroom_buffer_time_to_full_seconds",
            "How long buffers were short before they were full",
            ("kind",),
            buckets=_SECONDS_TO_FULL,
            registry=self.registry,
        )
        self.count_webhook = self._counting("headroom_webhooks", "Webhooks by result", "result")
        self.count_report = self._counting("headroom_reports", "Reports on pull requests by result", "result")
        self.count_snapshot = self._counting("headroom_snapshots", "Snapshots for CI by result", "result")
        self._leader = Gauge("headroom_leader", "1 while this replica is the one that writes", registry=self.registry)
        for word in WORDS:
            self._passes.labels(word)
        for kind in sorted(BUFFER_KINDS):
            self._node_claims.labels(kind)
            self._blocked.labels(kind)
            self._time_to_full.labels(kind)

    def _histogram(self, name: str, text: str, *labels: str) -> Histogram:
        return Histogram(name, text, labels, buckets=_SECONDS, registry=self.registry)

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        """The name without its `_total`, which the client adds."""
        return Counter(name, text, labels, registry=self.registry)

    def _counting(self, name: str, text: str, *labels: str) -> Callable[..., None]:
        """A function that counts one more, called with the labels' values."""
        counter = self._counter(name, text, *labels)
        return lambda *values: counter.labels(*values).inc()

    def observe(self, result: PassResult, *, now: datetime) -> list[tuple[ObjectRef, timedelta]]:
        """Reports a pass. now: when it ended. Returns the buffers that are short no more, and how long they were."""
        self._duration.observe(sum(result.timings.values()))
        for stage, seconds in result.timings.items():
            self._stages.labels(stage).observe(seconds)
        self._passes.labels(result_of(result)).inc()
        if result.change_set is not None:
            self._count_writes(result.change_set, result.plan)
        ended = [] if result.plan is None else self._gauges.shortages.take(result.plan.demands, now)
        for ref, duration in ended:
            self._time_to_full.labels(ref.kind).observe(duration.total_seconds())
        self._gauges.take(result, succeeded=result_of(result) in GOOD, now=now)
        return ended

    def _count_writes(self, change_set: ChangeSet, plan: Plan | None) -> None:
        applied = set()
        for result in change_set.results:
            write = result.write
            self._writes.labels(write.ref.kind, _ACTIONS[type(write)], result.outcome.value).inc()
            if result.outcome is Outcome.APPLIED:
                applied.add((write.ref.kind, write.ref.name))
        if plan is None:
            return
        for creation in plan.node_claims.create:
            if ("NodeClaim", creation.name) in applied:
                kind = _kind_of(creation.planned.holdings)
                self._node_claims.labels(kind).inc()
                self._blocked.labels(kind).inc()
        for action in plan.node_claims.hold:
            # If only a node's taint or its holdings change, only the node is written, which does not count.
            if ("NodeClaim", action.node_claim) in applied:
                self._blocked.labels(_kind_of(action.holdings)).inc()

    def observe_poll(self, result: str, seconds: float) -> None:
        """result: `changed`, `unchanged`, or a failure's type in lower case."""
        self._polls.labels(result).inc()
        self._poll_duration.observe(seconds)

    def set_leader(self, leads: bool) -> None:  # noqa: FBT001 - the one value this metric has
        self._leader.set(1 if leads else 0)
        self._gauges.leads = leads
        if not leads:
            self._gauges.shortages = Shortages()  # others fill the buffers meanwhile

    @property
    def leads(self) -> bool:
        return self._gauges.leads

    def exposition(self) -> tuple[bytes, str]:
        """The metrics as text and its content type."""
        return generate_latest(self.registry), CONTENT_TYPE_LATEST


def _kind_of(holdings: Iterable[Holding]) -> str:
    """The kind of the demand that a node holds most chunks of."""
    most = max(holdings, key=lambda holding: (holding.count, holding.demand), default=None)
    return "" if most is None else most.demand.kind


class MergedMetrics(Collector):
    """registries: by the cluster's name. A family of the same name in several is one family, as Prometheus requires."""

    def __init__(self, registries: Mapping[str, CollectorRegistry]) -> None:
        self._registries = registries
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(self)

    def exposition(self) -> tuple[bytes, str]:
        """As `Metrics.exposition`."""
        return generate_latest(self._registry), CONTENT_TYPE_LATEST

    def describe(self) -> list[Metric]:
        """Nothing, so that registering collects nothing."""
        return []

    def collect(self) -> Iterator[Metric]:
        families: dict[str, Metric] = {}
        for cluster, registry in self._registries.items():
            for family in registry.collect():
                merged = families.setdefault(family.name, Metric(family.name, family.documentation, family.type))
                merged.samples += [
                    sample._replace(labels={"cluster": cluster, **sample.labels}) for sample in family.samples
                ]
        yield from families.values()

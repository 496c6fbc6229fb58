"""An embedded cluster that headroom keeps as its daemon would, on a clock that the test moves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from reconciler.cluster.embedded.karpenter import Delays
from reconciler.model.changes import Annotate, Apply, Plan, Write
from reconciler.model.nodes import HELD_ANNOTATION, InstanceType
from reconciler.model.placement import SurgeMode
from reconciler.model.rules import PlacementRules
from reconciler.settings.settings import Settings
from tests.fakes.embedded import DELAYS, LARGE, SMALL, Document, Sandbox, buffer, workload
from tests.fakes.source import FakeSource

QUIET = 2.0
"""Seconds after a change until a pass, as the daemon's default has it."""
TICK = timedelta(minutes=5)


@dataclass(frozen=True)
class Pass:
    """One that wrote something."""

    at: datetime
    plan: Plan
    writes: tuple[Write, ...]


class KeptCluster(Sandbox):
    """`keep` lets time pass; whatever changes in the cluster is answered by a pass a moment later."""

    def __init__(
        self,
        *,
        instance_types: Sequence[InstanceType] = (SMALL, LARGE),
        not_ready_grace: timedelta = timedelta(minutes=1),
        instance_types_offered: int = 20,
        delays: Delays = DELAYS,
        provisions_pending: bool = False,
        surge: SurgeMode | str = SurgeMode.ALONE,
    ) -> None:
        super().__init__(instance_types=instance_types, delays=delays, provisions_pending=provisions_pending)
        self._settings = Settings(
            placement=PlacementRules(
                check=True,
                not_ready_grace=not_ready_grace,
                instance_types=instance_types_offered,
                surge=SurgeMode(surge),
            )
        )
        self.passes: list[Pass] = []
        self.trigger = "test"
        self.source = FakeSource()
        self.restart()

    def restart(self) -> None:
        """Another process takes over, which knows nothing but the cluster."""
        self.cycle = self.new_cycle(self.source, self._settings)
        self._seen = ""
        self._last = self.clock.now()

    def want(self, replicas: int, pool: Document, *, within: float = 60) -> None:
        """A buffer of chunks that fill a small node each, a NodePool for them, and some time."""
        self.keep(within, pool, workload(replicas=0, cpu="1500m"), buffer(replicas=replicas))

    def commit(self, files: Mapping[str, str]) -> None:
        """The repository from now on; the next pass comes at once."""
        self.source.commit(files)
        self._seen = ""

    def keep(self, seconds: float, *documents: Document, step: float = 1.0) -> list[Pass]:
        """Applies the documents and lets time pass. Returns the passes that wrote something."""
        for document in documents:
            self.cluster.apply(document)
        before = len(self.passes)
        end = self.clock.now() + timedelta(seconds=seconds)
        while self.clock.now() < end:
            self._pass_if_due()
            self.wait(step)
        return self.passes[before:]

    def _pass_if_due(self) -> None:
        now = self.clock.now()
        view = self.cluster.view()
        edge = self.cycle.next_edge(self._last)
        at_edge = edge is not None and edge.at <= now
        if view.revision == self._seen and not at_edge and now - self._last < TICK:
            return
        self.wait(QUIET)
        self._seen = self.cluster.view().revision
        self._last = self.clock.now()
        result = self.cycle.run(self.trigger)
        assert result.failure is None, result.failure
        assert result.change_set is not None
        assert all(item.ok for item in result.change_set.results), result.change_set.results
        if result.change_set.results:
            writes = tuple(item.write for item in result.change_set.results)
            self.passes.append(Pass(self._last, result.required_plan, writes))

    def short(self) -> int:
        """Chunks that have no node that is there, over all buffers, as of the last pass that wrote."""
        missing = 0
        for outcome in self.passes[-1].plan.demands:
            missing += (outcome.demand.desired or 0) - outcome.on_existing
        return missing

    def running_pods(self) -> set[str]:
        """Names of those that have a node."""
        return {pod.name for pod in self.cluster.view().pods if pod.node_name is not None}

    def hold_changes(self) -> dict[str, int]:
        """By object, how often headroom's mark was put on or taken away. A placeholder is made with it, and so is its node."""
        changes: dict[str, int] = {}
        marked: dict[str, str | None] = {}
        for made in self.passes:
            for write in made.writes:
                if isinstance(write, Apply) and write.ref.kind == "NodeClaim":
                    marked |= dict.fromkeys((f"NodeClaim/{write.ref.name}", f"Node/node-{write.ref.name}"), "true")
                if isinstance(write, Annotate):
                    value = dict(write.annotations).get(HELD_ANNOTATION)
                    name = f"{write.ref.kind}/{write.ref.name}"
                    if marked.get(name, "made") != value:
                        changes[name] = changes.get(name, 0) + 1
                    marked[name] = value
        return changes

"""When the daemon acts, and what it reports about itself and about a pass that ended in a defect."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from reconciler.model.changes import ChangeSet, Plan
from reconciler.model.errors import Failure
from reconciler.model.schedules import Edge
from reconciler.model.source import SourceTree
from reconciler.ports import PassResult
from reconciler.timetable.agenda import Pacing, Trigger


@dataclass(frozen=True, slots=True)
class Timing:
    """poll: the time between polls of the repository. tick: between passes when nothing happens. pacing: waits after changes and
    failures. grace: how long a pass under way may take to end when the daemon is stopped."""

    poll: timedelta = timedelta(minutes=1)
    tick: timedelta = timedelta(minutes=5)
    pacing: Pacing = field(default_factory=Pacing)
    grace: timedelta = timedelta(seconds=20)


@dataclass(frozen=True, slots=True)
class BrokenPass(PassResult):
    """A pass that ended in a defect of headroom itself."""

    failure: Failure
    plan: Plan | None = None
    change_set: ChangeSet | None = None
    tree: SourceTree | None = None
    timings: Mapping[str, float] = field(default_factory=dict)
    settled: bool = False
    traces: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DaemonState:
    """What the daemon will do next. next_pass None: nothing is wanted, or the next poll decides. held_up: why the pass under way
    makes no progress, "" if it does."""

    leads: bool
    passes: int
    under_way: Trigger | None
    next_pass: datetime | None
    next_trigger: Trigger | None
    handled_request: str
    next_edge: Edge | None
    held_up: str = ""

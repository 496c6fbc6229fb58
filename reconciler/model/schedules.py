"""What goes by the clock as typed values: capacity schedules, who follows them, disruption budgets in local time, and edges."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from reconciler.model.errors import Invalid
from reconciler.model.marks import ACTIVE_DURING_ANNOTATION, LEAD_TIME_ANNOTATION, REPLICAS_FROM_ANNOTATION
from reconciler.model.nodes import DisruptionBudget, Labels, NodePool
from reconciler.model.quantity import parse_duration
from reconciler.model.refs import DEFAULT_NAMESPACE, ObjectRef, SourcePosition

WEEKDAYS = ("Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat")
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


@dataclass(frozen=True, slots=True)
class TimePattern:
    """Calendar fields as sorted numbers. None: absent; then minutes and hours are 0, and all others match. Weekday 0 is Sunday."""

    minutes: tuple[int, ...] | None = None
    hours: tuple[int, ...] | None = None
    days: tuple[int, ...] | None = None
    months: tuple[int, ...] | None = None
    weekdays: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class Behavior:
    """`replicas` hold from each match of `start` until the next match of `end`; the highest priority wins."""

    replicas: int
    start: TimePattern
    end: TimePattern
    priority: int = 0
    position: SourcePosition | None = None


@dataclass(frozen=True, slots=True)
class Schedule:
    """`MetricsProducer.spec.schedule`; timezone: an IANA name."""

    ref: ObjectRef
    default_replicas: int
    behaviors: tuple[Behavior, ...] = ()
    timezone: str = "UTC"
    position: SourcePosition | None = None


@dataclass(frozen=True, slots=True)
class ScheduleOutcome:
    """A schedule's value at the pass's instant, in replicas, and the next value that differs; None if it never changes again."""

    namespace: str
    name: str
    current_value: int
    next_value: int | None
    next_value_time: datetime | None


@dataclass(frozen=True, slots=True)
class Edge:
    """An instant at which what is declared changes. why: the reason in words, for status and logs. is_routine: it follows most changes of the
    cluster, so that it is not worth a line in the log."""

    at: datetime
    why: str
    is_routine: bool = False


METRICS_PRODUCER_KIND = "MetricsProducer"
_GROUP = "autoscaling.karpenter.sh"


@dataclass(frozen=True, slots=True)
class Following:
    """The schedules that one object follows. lead: how much earlier than the schedule it grows."""

    replicas_from: ObjectRef | None = None
    active_during: ObjectRef | None = None
    lead: timedelta = timedelta(0)

    @property
    def schedules(self) -> tuple[ObjectRef, ...]:
        """The schedules, each once, since both annotations may name the same one."""
        return tuple(dict.fromkeys(ref for ref in (self.replicas_from, self.active_during) if ref is not None))


def following_of(ref: ObjectRef, annotations: Labels) -> Following | None:
    """What the object follows; None for nothing. An unreadable value counts as absent, since validation has reported it."""
    values = dict(annotations)
    replicas_from = schedule_ref(ref, values.get(REPLICAS_FROM_ANNOTATION, ""))
    active_during = schedule_ref(ref, values.get(ACTIVE_DURING_ANNOTATION, "")) if ref.namespace else None
    if replicas_from is None and active_during is None:
        return None
    return Following(replicas_from, active_during, _duration(values.get(LEAD_TIME_ANNOTATION, "0")))


def schedule_ref(follower: ObjectRef, text: str) -> ObjectRef | None:
    """The schedule that `text` names on this object; None when it names none.

    A buffer names a schedule of its own namespace, as all its references do. A cluster-scoped object writes
    `NAMESPACE/NAME`; an absent namespace is `default`.
    """
    namespace, slash, name = text.rpartition("/")
    if follower.namespace and namespace not in {"", follower.namespace}:
        return None
    if not name or "/" in namespace or (slash and not namespace):
        return None
    return schedule_ref_of(namespace or follower.namespace or DEFAULT_NAMESPACE, name)


def schedule_ref_of(namespace: str, name: str) -> ObjectRef:
    """The MetricsProducer of that name, the kind that declares schedules."""
    return ObjectRef(_GROUP, METRICS_PRODUCER_KIND, namespace, name)


def _duration(text: str) -> timedelta:
    try:
        return parse_duration(text)
    except Invalid:
        return timedelta(0)


@dataclass(frozen=True, slots=True)
class AllowWindow:
    """One line of `headroom.dev/allow-windows`: disruption is allowed only from each match of the cron schedule, for `duration`.

    reasons None: every disruption reason.
    """

    schedule: str
    duration: timedelta
    reasons: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class LocalBudgets:
    """A NodePool's budgets as written. Their schedules are in `time_zone`, an IANA name."""

    budgets: tuple[DisruptionBudget, ...]
    allow_windows: tuple[AllowWindow, ...] = ()
    time_zone: str = "UTC"


@dataclass(frozen=True, slots=True)
class CompiledBudgets:
    """Budgets with schedules in UTC. They mean what was written for as long as they are valid."""

    budgets: tuple[DisruptionBudget, ...]
    origins: tuple[int | None, ...]
    """By compiled budget: the index of the written budget, or None for one that comes from the allow-windows."""
    renew_at: datetime
    """From this instant on, a pass compiles newer budgets. Both agree for as long as both are valid."""
    valid_until: datetime


@dataclass(frozen=True, slots=True)
class PoolBudgets:
    """One NodePool's written and compiled budgets, side by side."""

    node_pool: str
    written: LocalBudgets
    compiled: CompiledBudgets
    position: SourcePosition | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class BudgetPeriod:
    """NodePools with the budgets in UTC that hold over [start, end), and for a month beyond."""

    start: datetime
    end: datetime
    pools: tuple[NodePool, ...]

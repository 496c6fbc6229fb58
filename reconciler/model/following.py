"""Which schedules a buffer or NodePool follows, as its annotations say."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from reconciler.model.durations import parse_duration
from reconciler.model.errors import Invalid
from reconciler.model.marks import ACTIVE_DURING_ANNOTATION, LEAD_TIME_ANNOTATION, REPLICAS_FROM_ANNOTATION
from reconciler.model.nodes import Labels
from reconciler.model.refs import DEFAULT_NAMESPACE, ObjectRef

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

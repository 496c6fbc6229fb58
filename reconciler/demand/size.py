"""How many chunks a buffer asks for: replicas, percentage, limits, and what the two dialects, the readings of a CapacityBuffer, make of them.
And who goes first where room is short: the priority of pods, `headroom.dev/priority`, and ResourceQuotas.

The rule is min(max(replicas, percentage), limits). Where Karpenter 1.14 (controllers/capacitybuffer) and Cluster
Autoscaler (capacitybuffer/translators) differ, the dialect decides.

Pods have their priority by PriorityClass. ResourceQuotas are applied to buffers as Cluster Autoscaler does: each namespace's oldest buffer
first, by what pods request alone (capacitybuffer/controller/resourcequotas.go); for requests the number of pods counts too, but not limits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from reconciler.model import codes
from reconciler.model.buffers import Buffer, Dialect
from reconciler.model.demand import ChunkGroup, is_priority
from reconciler.model.findings import Code
from reconciler.model.marks import PRIORITY_ANNOTATION
from reconciler.model.nodes import Labels
from reconciler.model.pods import PodShape, PriorityClass, ResourceQuota
from reconciler.model.quantity import CPU, MEMORY, PODS, Resources, readable_amount
from reconciler.model.requirements import LabelSelector, Requirement

_FIELDS: Mapping[str, str] = {
    "node_selector": "node selector",
    "required_node_terms": "node affinity",
    "pod_affinity": "pod affinity",
    "pod_anti_affinity": "pod anti-affinity",
    "topology_spread": "topology spread",
}
"""Fields of a shape that decide where chunks go. Labels and tolerations are left out: every live pod has some of its own."""


def difference_of_shapes(shapes: Mapping[Dialect, PodShape], dialect: Dialect, *, pod: str) -> str:
    """How a chunk of the template differs from one like the newest live pod; "" if they are equal.

    pod: the live pod, "" where none gave a shape.
    """
    template, live = shapes.get(Dialect.KARPENTER), shapes.get(Dialect.CLUSTER_AUTOSCALER)
    if template is None or live is None or not pod:
        return ""
    parts = []
    if template.requests != live.requests:
        parts.append(f"{_words(template.requests)} in the template, {_words(live.requests)} in {pod}")
    named = [words for name, words in _FIELDS.items() if getattr(template, name) != getattr(live, name)]
    if named:
        parts.append(f"{' and '.join(named)} of {pod} {'are' if len(named) > 1 else 'is'} not the template's")
    if not parts:
        return ""
    used = "the template" if dialect is Dialect.KARPENTER else "the newest live pod"
    return f"chunks are like {used} here: {'; '.join(parts)}"


def _words(requests: Resources) -> str:
    shown = Resources.of((name, amount) for name, amount in requests if name != PODS).quantities()
    return ", ".join(f"{name} {text}" for name, text in shown.items()) or "no requests"


@dataclass(frozen=True, slots=True)
class Base:
    """What a percentage is a percentage of. replicas None: unknown; words: whose replicas they are."""

    replicas: int | None
    words: str


@dataclass(frozen=True, slots=True)
class Size:
    count: int | None
    """None if the size is unknown, for the reason in `problem`."""
    facts: tuple[str, ...] = ()
    """How it came about, one a line."""
    filled: int = 0
    """Chunks of a dedicated buffer that its own pods fill. `count` leaves them out."""
    problem: tuple[Code, str] | None = None
    """A finding's code and message, which a known size may have too."""


def percentage_count(base: int, percentage: int, part: int = 1) -> int:
    """How many parts are `percentage` percent of `base`, rounded up, so at least 1 when both are above 0."""
    return max(0, -(-base * percentage // (100 * part)))


def limit_count(requests: Resources, limits: Iterable[tuple[str, int]]) -> int | None:
    """The most chunks whose summed requests stay inside every limit; None when no limit names a requested resource.

    A limit on `pods` names nothing that a container requests, so it counts for neither autoscaler.
    """
    asked = {name: amount for name, amount in requests if name != PODS and amount > 0}
    counts = [max(0, limit) // asked[name] for name, limit in limits if name in asked]
    return min(counts) if counts else None


def size_of(
    buffer: Buffer,
    requests: Resources,
    base: Base | None,
    dialect: Dialect,
    share: tuple[int, tuple[str, ...]] | None = None,
) -> Size:
    """The size of a buffer whose chunks request `requests`. base None: there are no replicas to take a percentage of. share: the chunks that
    the percentage of other pods is, and how that came about.
    """
    facts: list[str] = []
    candidates: list[int] = []
    if buffer.replicas is not None:
        candidates.append(max(0, buffer.replicas))
        facts.append(f"{candidates[-1]:,} {f'by {buffer.sized_by}' if buffer.sized_by else 'requested'}")
    if share is not None:
        candidates.append(share[0])
        facts += share[1]
    elif buffer.percentage is not None and base is not None:
        of_replicas = _share(buffer, buffer.percentage, base, dialect, facts)
        if of_replicas is not None:
            candidates.append(of_replicas)
    count, most = max(candidates, default=None), buffer.maximum_count
    if count is not None and most is not None and count > most:
        count = most
        facts.append(f"{most:,} by its maximum count")
    if buffer.limits is not None:
        return _within_limits(buffer.limits, requests, count, dialect, facts)
    if count is not None:
        return Size(count, tuple(facts))
    if dialect is Dialect.CLUSTER_AUTOSCALER:
        unknown = buffer.percentage is not None and base is not None and base.replicas is None
        message = f"the size of {base.words} is not known" if unknown and base else "it has no size"
        return Size(None, tuple(facts), problem=(codes.SIZE_NOT_KNOWN, message))
    return Size(0, (*facts, "no size is given: 0"))


def _share(buffer: Buffer, percentage: int, base: Base, dialect: Dialect, facts: list[str]) -> int | None:
    if base.replicas is None:
        facts.append(f"{percentage}% of {base.words}: not known")
        return None
    share = percentage_count(base.replicas, percentage)
    facts.append(f"{percentage}% of {base.replicas:,} replicas of {base.words}, rounded up: {share:,}")
    least = buffer.minimum_count or 0
    if least > share:
        facts.append(f"{least:,} by its minimum count")
    if base.replicas == 0 and not least and dialect is Dialect.KARPENTER:
        # In Karpenter a percentage of 0 replicas counts as no size at all, so limits alone decide.
        return 0 if buffer.limits is None else None
    return max(share, least)


def _within_limits(
    limits: tuple[tuple[str, int], ...], requests: Resources, count: int | None, dialect: Dialect, facts: list[str]
) -> Size:
    most = limit_count(requests, limits)
    words = ", ".join(f"{name} {readable_amount(name, amount)}" for name, amount in limits) or "nothing"
    if most is None:
        message = f"its limits ({words}) name no resource that its chunks ask for"
        if dialect is Dialect.CLUSTER_AUTOSCALER:
            return Size(None, tuple(facts), problem=(codes.LIMITS_MATCH_NOTHING, message))
        return Size(
            count or 0, (*facts, f"limits of {words} match nothing"), problem=(codes.LIMITS_MATCH_NOTHING, message)
        )
    facts.append(f"{most:,} fit into its limits ({words})")
    problem = None
    if not most and all(amount for _, amount in limits):
        problem = (codes.CHUNK_TOO_LARGE, f"one chunk ({_words(requests)}) is more than its limits ({words})")
    return Size(most if count is None else min(count, most), tuple(facts), problem=problem)


PRIORITY_CLASS = "PriorityClass"


def pod_priority(shape: PodShape, classes: Sequence[PriorityClass], *, without_class: int) -> int:
    """That of its class; a class that is not there counts as none. without_class: where no class is the default."""
    named = (item.value for item in classes if item.name == shape.priority_class_name)
    return next(named, max((item.value for item in classes if item.global_default), default=without_class))


def declared_priority(annotations: Labels) -> int:
    """As annotated. Text that is not a number counts as the default; validation reports it."""
    written = next((value for name, value in annotations if name == PRIORITY_ANNOTATION), "")
    return int(written) if is_priority(written) else 0


@dataclass(frozen=True, slots=True)
class Allowance:
    """What quotas leave of a request for chunks."""

    count: int | None
    """How many chunks; None if the size is unknown."""
    quotas: tuple[str, ...] = ()
    """The names of those that cut it."""
    compared: bool = False
    """Whether at least one quota counts its chunks and has a bound on what they request."""


def within_quotas(
    asked: Iterable[ChunkGroup], quotas: Sequence[ResourceQuota], *, pods: bool
) -> tuple[list[Allowance], list[ResourceQuota]]:
    """The allowances of one namespace's chunks, in order, and the quotas with these used up: each takes from what those before it left.

    pods: whether bounds on the number of pods count too.
    """
    left = list(quotas)
    allowances = []
    for group in asked:
        allowance, left = _allow(group, left, pods=pods)
        allowances.append(allowance)
    return allowances, left


def without(quota: ResourceQuota, pods: Iterable[PodShape]) -> ResourceQuota:
    """The quota without what these pods use. Never below zero, since the quota's controller counts pods a little late."""
    taken = Resources.total(shape.requests for shape in pods if in_scope(shape, quota.scopes))
    used = Resources.of((name, max(0, amount - taken.get(name))) for name, amount in quota.used)
    return replace(quota, used=used)


def _allow(group: ChunkGroup, quotas: Iterable[ResourceQuota], *, pods: bool) -> tuple[Allowance, list[ResourceQuota]]:
    asked = Resources.of((name, amount) for name, amount in group.shape.requests if pods or name != PODS)
    judged = [(quota, in_scope(group.shape, quota.scopes)) for quota in quotas]
    rooms = {quota.name: room for quota, counts in judged if counts and (room := _room(quota, asked)) is not None}
    count = min((group.count, *rooms.values()))
    names = sorted(name for name, room in rooms.items() if room < group.count)
    left = [replace(quota, used=quota.used + asked * count) if counts else quota for quota, counts in judged]
    return Allowance(count, tuple(names), bool(rooms)), left


def _room(quota: ResourceQuota, asked: Resources) -> int | None:
    rooms = [
        max(0, hard - quota.used.get(name)) // amount for name, hard in quota.hard if (amount := asked.get(name)) > 0
    ]
    return min(rooms, default=None)


def in_scope(shape: PodShape, scopes: Iterable[Requirement]) -> bool:
    """Whether a quota with these scopes counts the pod; an unknown scope counts none."""
    return all(_meets(shape, scope) for scope in scopes)


def _meets(shape: PodShape, scope: Requirement) -> bool:
    match scope.key:
        case "NotTerminating":
            return True
        case "BestEffort":
            return _is_best_effort(shape)
        case "NotBestEffort":
            return not _is_best_effort(shape)
        case "CrossNamespacePodAffinity":
            return any(term.namespaces or term.namespace_selector is not None for term in shape.affinity_terms)
        case "PriorityClass":
            name = shape.priority_class_name
            return LabelSelector(expressions=(scope,)).matches({PRIORITY_CLASS: name} if name else {})
        case _:
            return False


def _is_best_effort(shape: PodShape) -> bool:
    return not shape.requests.get(CPU) and not shape.requests.get(MEMORY)

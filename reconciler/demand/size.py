"""How many chunks a buffer asks for: replicas, percentage, limits, and what the two dialects, the readings of a CapacityBuffer, make of them.

The rule is min(max(replicas, percentage), limits). Where Karpenter 1.14 (controllers/capacitybuffer) and Cluster
Autoscaler (capacitybuffer/translators) differ, the dialect decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from reconciler.model import codes
from reconciler.model.buffers import Buffer
from reconciler.model.findings import Code
from reconciler.model.pods import PodShape
from reconciler.model.quantity import PODS, Resources, format_amount

_FIELDS: Mapping[str, str] = {
    "node_selector": "node selector",
    "required_node_terms": "node affinity",
    "pod_affinity": "pod affinity",
    "pod_anti_affinity": "pod anti-affinity",
    "topology_spread": "topology spread",
}
"""Fields of a shape that decide where chunks go. Labels and tolerations are left out: every live pod has some of its own."""


class Dialect(StrEnum):
    """Whose reading counts where Karpenter and Cluster Autoscaler size the same buffer differently (`--dialect`)."""

    KARPENTER = "karpenter"
    CLUSTER_AUTOSCALER = "ca"

    @property
    def spoken(self) -> str:
        return "Karpenter" if self is Dialect.KARPENTER else "Cluster Autoscaler"


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
    """How many chunks. count None: the size is unknown, for the reason in `problem`.

    facts: how it came about, one a line; problem: a finding's code and message, which a known size may have too. filled: chunks of a
    dedicated buffer that its own pods fill, which `count` leaves out.
    """

    count: int | None
    facts: tuple[str, ...] = ()
    filled: int = 0
    problem: tuple[Code, str] | None = None


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
    count = max(candidates) if candidates else None
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
    low, high = buffer.minimum_count, buffer.maximum_count
    clamped = max(share, low or 0) if high is None else min(max(share, low or 0), high)
    facts.append(f"{percentage}% of {base.replicas:,} replicas of {base.words}, rounded up: {share:,}")
    if clamped != share:
        facts.append(f"{clamped:,} by its {'minimum' if clamped > share else 'maximum'} count")
    if base.replicas == 0 and clamped == 0 and dialect is Dialect.KARPENTER:
        # In Karpenter a percentage of 0 replicas counts as no size at all, so limits alone decide.
        return 0 if buffer.limits is None else None
    return clamped


def _within_limits(
    limits: tuple[tuple[str, int], ...], requests: Resources, count: int | None, dialect: Dialect, facts: list[str]
) -> Size:
    most = limit_count(requests, limits)
    words = ", ".join(f"{name} {format_amount(name, amount)}" for name, amount in limits) or "nothing"
    if most is None:
        message = f"its limits ({words}) name no resource that its chunks ask for"
        if dialect is Dialect.CLUSTER_AUTOSCALER:
            return Size(None, tuple(facts), problem=(codes.LIMITS_MATCH_NOTHING, message))
        return Size(
            count or 0, (*facts, f"limits of {words} match nothing"), problem=(codes.LIMITS_MATCH_NOTHING, message)
        )
    facts.append(f"{most:,} fit into its limits ({words})")
    return Size(most if count is None else min(count, most), tuple(facts))

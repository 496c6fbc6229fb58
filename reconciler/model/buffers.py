"""The buffer kinds, CapacityBuffer and the Buffers API proposal's Buffer, as typed values."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum

from reconciler.model.conditions import Condition
from reconciler.model.nodes import Labels
from reconciler.model.pods import PodShape
from reconciler.model.quantity import Resources
from reconciler.model.refs import ObjectRef, SourcePosition
from reconciler.model.requirements import LabelSelector
from reconciler.model.shares import SHRINK_AFTER

ACTIVE_CAPACITY = "buffer.x-k8s.io/active-capacity"
RECREATE, ONE_SHOT = "recreate", "none"
"""The values of `refillStrategy` that headroom supports."""


class Recreation(StrEnum):
    """`recreationStrategy`: whether running pods may fill a buffer (KeepMinimum) or not (KeepEmpty)."""

    KEEP_EMPTY = "KeepEmpty"
    KEEP_MINIMUM = "KeepMinimum"


class Fulfilment(StrEnum):
    """Who keeps a buffer's capacity, and how (annotation `headroom.dev/fulfilment`)."""

    PLACEHOLDER = "placeholder"
    NATIVE = "native"
    BALLOON = "balloon"


@dataclass(frozen=True, slots=True)
class NodeClassCapacity:
    """`Buffer.capacity.nodeClass` of the Buffers API proposal: a total that is split into chunks."""

    total: Resources
    """CPU in millicores and memory in bytes."""
    chunk: Resources | None = None
    """The size of one chunk; None: headroom chooses one that fits the nodes of the target."""
    node_selector: Labels = ()


@dataclass(frozen=True, slots=True)
class Buffer:
    """One declared buffer, of either kind and any version, with its defaults applied."""

    ref: ObjectRef
    position: SourcePosition | None = None
    annotations: Labels = ()
    strategy: str = ACTIVE_CAPACITY
    target: ObjectRef | None = None
    """What the buffer refers to: a workload with a scale subresource, or a node class."""
    pod_template: str | None = None
    """The name of a PodTemplate in the buffer's namespace."""
    pod_shape: PodShape | None = None
    """The Buffers API proposal's inline pod (`capacity.pods.podSpec`)."""
    replicas: int | None = None
    percentage: int | None = None
    """Percent of the target's replicas, or of what other pods request (`model/shares.py`)."""
    minimum_count: int | None = None
    """The fewest chunks that a percentage may give, as `maximum_count` is the most. Only the Buffers API proposal has both."""
    maximum_count: int | None = None
    limits: tuple[tuple[str, int], ...] | None = None
    """Amounts by resource in the units of `Resources`, zeroes included. None: the field is absent."""
    node_class: NodeClassCapacity | None = None
    recreation: Recreation = Recreation.KEEP_EMPTY
    pod_selector: LabelSelector | None = None
    """The pods that a dedicated buffer is for. None: for any pod."""
    generation: int | None = None
    created: str = ""
    """`metadata.creationTimestamp`, RFC 3339; "" while the buffer is only in Git."""
    status_conditions: tuple[Condition, ...] = field(default=())
    default_fulfilment: Fulfilment = Fulfilment.PLACEHOLDER
    """Who keeps it if it has no annotation that says so: the setting's value."""
    shrink_after: timedelta = SHRINK_AFTER
    """Of a share of running pods: how long it must have been less before the buffer shrinks, by the setting."""
    refill: str = RECREATE
    """`spec.refillStrategy`, or what the annotation `headroom.dev/one-shot` says."""
    fill_deadline: timedelta | None = None
    """Of a one-shot buffer: how long after it became ready pods may take to use all of it. None: for ever."""
    sized_by: str = ""
    """Names the schedule or the scaler that sets `replicas`; "" where the number is the buffer's own."""
    dormant: str = ""
    """Why a schedule keeps it out of the cluster at present; "" where none does."""
    waits_for: str = ""
    """Why a schedule that it follows is not known; "" where all are."""

    @property
    def is_one_shot(self) -> bool:
        """Whether it is filled once, and what pods use is not made good."""
        return self.refill == ONE_SHOT

    def annotation(self, key: str) -> str | None:
        """The annotation's value; None where the buffer has none of that name."""
        return next((value for name, value in self.annotations if name == key), None)

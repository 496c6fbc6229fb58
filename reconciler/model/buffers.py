"""The buffer kinds (CapacityBuffer, and seed 000's Buffer) as typed values. Read by manifests; sized by demand/buffers.py."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from reconciler.model.conditions import Condition
from reconciler.model.nodes import Labels
from reconciler.model.pods import PodShape
from reconciler.model.quantity import Resources
from reconciler.model.refs import ObjectRef, SourcePosition

ACTIVE_CAPACITY = "buffer.x-k8s.io/active-capacity"


class Recreation(StrEnum):
    """Whether what runs may fill a buffer (`recreationStrategy`): KeepEmpty: no, KeepMinimum: yes."""

    KEEP_EMPTY = "KeepEmpty"
    KEEP_MINIMUM = "KeepMinimum"


class Fulfilment(StrEnum):
    """How a buffer is kept (annotation `headroom.dev/fulfilment`)."""

    PLACEHOLDER = "placeholder"
    NATIVE = "native"
    BALLOON = "balloon"


@dataclass(frozen=True, slots=True)
class NodeClassCapacity:
    """`Buffer.capacity.nodeClass`: a total to be split into chunks. chunk None: headroom chooses one that fits."""

    total: Resources
    chunk: Resources | None = None
    node_selector: Labels = ()


@dataclass(frozen=True, slots=True)
class Buffer:
    """One declared buffer, of either kind and any version, with its defaults applied.

    target: the scalable (or node class) it points to; pod_template: the PodTemplate's name; pod_shape: seed 000's inline
    pod; limits as written (exact amounts; empty tuple and None differ: None is absent); minimum_count and maximum_count
    clamp a percentage (seed 000); selector_labels: a dedicated buffer's pod selector; owned_by: "git" or "cluster".
    status_manager: the field manager, not headroom's, that writes its status (then headroom stands down). sized_by: the
    schedule that replicas come from, in words; dormant: why it does not exist at present, in words ("": it does);
    waits_for: the schedule that it follows and that is not known, in words ("": none).
    """

    ref: ObjectRef
    position: SourcePosition | None = None
    annotations: Labels = ()
    strategy: str = ACTIVE_CAPACITY
    target: ObjectRef | None = None
    pod_template: str | None = None
    pod_shape: PodShape | None = None
    replicas: int | None = None
    percentage: int | None = None
    minimum_count: int | None = None
    maximum_count: int | None = None
    limits: tuple[tuple[str, int], ...] | None = None
    node_class: NodeClassCapacity | None = None
    recreation: Recreation = Recreation.KEEP_EMPTY
    selector_labels: Labels = ()
    generation: int | None = None
    created: str = ""
    status_manager: str | None = None
    status_conditions: tuple[Condition, ...] = field(default=())
    sized_by: str = ""
    dormant: str = ""
    waits_for: str = ""

    def annotation(self, key: str) -> str | None:
        """The annotation's value; None where the buffer has none of that name."""
        return next((value for name, value in self.annotations if name == key), None)

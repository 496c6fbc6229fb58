"""The two priorities that decide who goes first: that of pods, by PriorityClass, and `headroom.dev/priority`."""

from __future__ import annotations

from collections.abc import Iterable

from reconciler.model.demand import is_priority
from reconciler.model.marks import PRIORITY_ANNOTATION
from reconciler.model.nodes import Labels
from reconciler.model.pods import PodShape, PriorityClass


class Priorities:
    """PriorityClasses by name. without_class: the priority of shapes that name none, where no class is the default."""

    def __init__(self, classes: Iterable[PriorityClass], *, without_class: int) -> None:
        known = tuple(classes)
        self._values = {item.name: item.value for item in known}
        self._default = max((item.value for item in known if item.global_default), default=without_class)

    def of(self, shape: PodShape) -> int:
        """That of its class; a class that is not there counts as none."""
        return self._values.get(shape.priority_class_name, self._default)


def declared_priority(annotations: Labels) -> int:
    """As annotated. Text that is not a number counts as the default; validation reports it."""
    written = next((value for name, value in annotations if name == PRIORITY_ANNOTATION), "")
    return int(written) if is_priority(written) else 0

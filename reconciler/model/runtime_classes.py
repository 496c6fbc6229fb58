"""RuntimeClasses: what admission adds to pods that name one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from reconciler.model.pods import PodShape
from reconciler.model.quantity import Resources
from reconciler.model.requirements import Toleration


@dataclass(frozen=True, slots=True)
class RuntimeClass:
    """overhead: on top of the containers' requests (KEP-688); node_selector, tolerations: joined to the pod's own."""

    name: str
    overhead: Resources = field(default_factory=Resources)
    node_selector: tuple[tuple[str, str], ...] = ()
    tolerations: tuple[Toleration, ...] = ()


def admitted(shape: PodShape, classes: Iterable[RuntimeClass]) -> PodShape:
    """The shape as the API server's RuntimeClass admission would make it; unchanged when it names no class.

    `runtime_class` is empty afterwards, unless the class does not exist and so could not be applied.
    """
    found = next((item for item in classes if item.name == shape.runtime_class), None) if shape.runtime_class else None
    if found is None:
        return shape
    return replace(
        shape,
        requests=shape.requests + found.overhead,
        node_selector=tuple(sorted({*shape.node_selector, *found.node_selector})),
        tolerations=(*shape.tolerations, *(item for item in found.tolerations if item not in shape.tolerations)),
        runtime_class="",
    )

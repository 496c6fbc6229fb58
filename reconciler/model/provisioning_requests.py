"""ProvisioningRequests and their classes (Cluster Autoscaler ProvisioningRequest proposal) as typed values."""

from __future__ import annotations

from dataclasses import dataclass

from reconciler.model.conditions import Condition
from reconciler.model.nodes import Labels
from reconciler.model.refs import ObjectRef, SourcePosition


@dataclass(frozen=True, slots=True)
class PodSet:
    """So many pods of one PodTemplate, named as in the request's own namespace."""

    pod_template: str
    count: int


@dataclass(frozen=True, slots=True)
class ProvisioningRequest:
    """A ProvisioningRequest. created: RFC 3339 creation time, "" when it is only in Git; parameters: sorted."""

    ref: ObjectRef
    class_name: str
    pod_sets: tuple[PodSet, ...]
    parameters: Labels = ()
    annotations: Labels = ()
    position: SourcePosition | None = None
    created: str = ""
    generation: int | None = None
    status_conditions: tuple[Condition, ...] = ()


@dataclass(frozen=True, slots=True)
class ProvisioningClass:
    """Headroom's form of a kind that the proposal sketches: a class's default parameters, and those it allows (None: all)."""

    ref: ObjectRef
    class_name: str
    defaults: Labels = ()
    allowed: tuple[str, ...] | None = None
    position: SourcePosition | None = None

"""The taint of nodes that are reserved for the pods of one provisioning request (`headroom.dev/reserve`, or the parameter `reserve`)."""

from __future__ import annotations

from collections.abc import Iterable

from reconciler.model.label_values import label_value
from reconciler.model.marks import RESERVE_ANNOTATION
from reconciler.model.pods import PodShape
from reconciler.model.provisioning_requests import ProvisioningRequest, RequestKind
from reconciler.model.refs import ObjectRef
from reconciler.model.request_parameters import RESERVE
from reconciler.model.requirements import Taint

RESERVED_TAINT = "headroom.dev/reserved"
"""The taint's key. Its value names the request."""
RESERVED_NODES = "ReservedNodes"
"""The name in `status.provisioningClassDetails` of the value that its own nodes have as taint and as label."""
_DIGITS = 10


def reserved_taint(request: ObjectRef) -> Taint:
    """The taint, with the value `NAMESPACE.NAME`. It is unique, since a namespace has no dots. A value that is too long ends in a
    digest."""
    value = label_value(f"{request.namespace}.{request.name}", digits=_DIGITS)
    return Taint(RESERVED_TAINT, value, "NoSchedule")


def reserved_taints(taints: Iterable[Taint]) -> tuple[Taint, ...]:
    """Those of a node's taints that reserve it."""
    return tuple(taint for taint in taints if taint.key == RESERVED_TAINT)


def own_taint(request: ProvisioningRequest) -> Taint | None:
    """The taint of nodes made for a request; None where it does not ask for nodes of its own, or makes none.

    It asks by an annotation or a parameter, which may be its class's default.
    """
    asked = "true" in {dict(request.annotations).get(RESERVE_ANNOTATION), request.parameter(RESERVE)}
    return reserved_taint(request.ref) if asked and request.kind is RequestKind.ATOMIC else None


def may_come(shape: PodShape, taint: Taint) -> bool:
    """Whether pods of this shape may be on nodes with that taint."""
    return any(toleration.tolerates(taint) for toleration in shape.tolerations)


def selects_reserved_nodes(shape: PodShape) -> str:
    """The value of the label of reserved nodes that the pod selects, which Karpenter makes no nodes for; "" if it selects none."""
    return dict(shape.node_selector).get(RESERVED_TAINT, "")


def toleration_to_write(taint: Taint) -> str:
    """The matching toleration as one line of YAML, for a pod template."""
    return f"tolerations: [{{key: {taint.key}, value: {taint.value}, effect: {taint.effect}}}]"

"""Whether headroom provides for a ProvisioningRequest, and with which parameters.

A ProvisioningClass gives its requests defaults and says what they may set. A request whose conditions another controller writes is left to
that controller, whatever its class.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from reconciler.model.conditions import Condition, ConditionStatus
from reconciler.model.declared import Declared
from reconciler.model.provisioning_requests import (
    ACCEPTED,
    PROCESSOR_INSTANCE,
    ProvisioningClass,
    ProvisioningRequest,
    RequestKind,
    RequestRules,
)

PARAMETER_NOT_ALLOWED, CLASS_NOT_ALLOWED, LEFT_TO_ANOTHER = "ParameterNotAllowed", "ClassNotAllowed", "LeftToAnother"


@dataclass(frozen=True, slots=True)
class AcceptedRequest:
    """A request of a class that is provided here, with its class's defaults.

    refused: why nothing is done for it, as its condition Accepted. left_to_another: another controller provides for it, so nothing is
    written about it either.
    """

    request: ProvisioningRequest
    kind: RequestKind
    refused: Condition | None = None
    left_to_another: bool = False


def accepted_requests(declared: Declared, rules: RequestRules) -> tuple[AcceptedRequest, ...]:
    """The requests of known classes. Other classes are left to whoever provides them."""
    classes = {item.class_name: item for item in declared.provisioning_classes}
    return tuple(
        _accepted(request, request.kind, classes, rules)
        for request in declared.provisioning_requests
        if request.kind is not None
    )


def _accepted(
    request: ProvisioningRequest, kind: RequestKind, classes: Mapping[str, ProvisioningClass], rules: RequestRules
) -> AcceptedRequest:
    other = _provider_of(request, kind)
    if other:
        message = f"{other}, so headroom stands down"
        return AcceptedRequest(
            request, kind, Condition(ACCEPTED, ConditionStatus.UNKNOWN, LEFT_TO_ANOTHER, message), left_to_another=True
        )
    provisioning_class = classes.get(request.class_name)
    if provisioning_class is None:
        return AcceptedRequest(request, kind, _undeclared(request, classes) if rules.only_declared_classes else None)
    request = replace(request, defaults=provisioning_class.defaults)
    return AcceptedRequest(request, kind, _against(request, provisioning_class))


def _undeclared(request: ProvisioningRequest, classes: Collection[str]) -> Condition:
    message = (
        f"class {request.class_name} has no ProvisioningClass, and only classes that have one are provided for"
        f" (requests.onlyDeclaredClasses): {', '.join(sorted(classes)) or 'there is none'}"
    )
    return Condition(ACCEPTED, ConditionStatus.FALSE, CLASS_NOT_ALLOWED, message)


def _provider_of(request: ProvisioningRequest, kind: RequestKind) -> str:
    """Which other controller provides for the request, as a clause; "" for none."""
    if request.status_manager is not None:
        return f"{request.status_manager} writes its conditions"
    instance = request.parameter(PROCESSOR_INSTANCE)
    if instance and kind is RequestKind.CHECK:
        return f"it is for the Cluster Autoscaler of instance {instance}"
    return ""


def _against(request: ProvisioningRequest, provisioning_class: ProvisioningClass) -> Condition | None:
    if provisioning_class.allowed is None:
        return None
    refused = [name for name, _ in request.parameters if name not in provisioning_class.allowed]
    if not refused:
        return None
    message = (
        f"class {request.class_name} does not allow {', '.join(refused)};"
        f" it allows {', '.join(provisioning_class.allowed) or 'no parameter'}"
    )
    return Condition(ACCEPTED, ConditionStatus.FALSE, PARAMETER_NOT_ALLOWED, message)

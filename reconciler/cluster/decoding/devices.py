"""Kinds of dynamic resource allocation: their wire format (v1, v1beta2 and v1beta1), and its decoding into the model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from reconciler.cluster.decoding.wire import MetadataWire, controller_of
from reconciler.cluster.resources import Resource
from reconciler.manifests.pods.pod_spec_wire import Wire
from reconciler.model.attachments import (
    ClaimSpec,
    Device,
    DeviceClass,
    DeviceRequest,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
)


class _AttributeWire(Wire, frozen=True):
    int_: int | None = msgspec.field(default=None, name="int")
    bool_: bool | None = msgspec.field(default=None, name="bool")
    string: str | None = None

    @property
    def words(self) -> str | None:
        if self.string is not None:
            return self.string
        if self.bool_ is not None:
            return "true" if self.bool_ else "false"
        return None if self.int_ is None else str(self.int_)


class _DeviceFieldsWire(Wire, frozen=True):
    attributes: dict[str, _AttributeWire] | None = None
    consumes_counters: tuple[msgspec.Raw, ...] | None = None
    taints: tuple[msgspec.Raw, ...] | None = None
    allow_multiple_allocations: bool | None = None
    binding_conditions: tuple[str, ...] | None = None


class _DeviceWire(_DeviceFieldsWire, frozen=True):
    """A device. v1beta1 has everything except the name under `basic`."""

    name: str = ""
    basic: _DeviceFieldsWire | None = None


class _PoolWire(Wire, frozen=True):
    name: str = ""
    generation: int = 0
    resource_slice_count: int = 1


class _SliceSpecWire(Wire, frozen=True):
    driver: str = ""
    pool: _PoolWire = _PoolWire()
    node_name: str | None = None
    devices: tuple[_DeviceWire, ...] | None = None


class SliceWire(Wire, frozen=True):
    metadata: MetadataWire
    spec: _SliceSpecWire = _SliceSpecWire()


class _CelWire(Wire, frozen=True):
    expression: str = ""


class _SelectorWire(Wire, frozen=True):
    cel: _CelWire | None = None


class _ClassSpecWire(Wire, frozen=True):
    selectors: tuple[_SelectorWire, ...] | None = None


class ClassWire(Wire, frozen=True):
    metadata: MetadataWire
    spec: _ClassSpecWire = _ClassSpecWire()


class _ExactWire(Wire, frozen=True):
    device_class_name: str = ""
    selectors: tuple[msgspec.Raw, ...] | None = None
    allocation_mode: str | None = None
    count: int | None = None
    admin_access: bool | None = None
    capacity: dict[str, msgspec.Raw] | None = None


class _RequestWire(_ExactWire, frozen=True):
    """A request. v1beta1 has its fields next to its name."""

    exactly: _ExactWire | None = None
    first_available: tuple[msgspec.Raw, ...] | None = None


class _DevicesWire(Wire, frozen=True):
    requests: tuple[_RequestWire, ...] | None = None
    constraints: tuple[msgspec.Raw, ...] | None = None


class _ClaimSpecWire(Wire, frozen=True):
    devices: _DevicesWire = _DevicesWire()


class _ResultWire(Wire, frozen=True):
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool | None = None


class _ResultsWire(Wire, frozen=True):
    results: tuple[_ResultWire, ...] | None = None


class _AllocationWire(Wire, frozen=True):
    devices: _ResultsWire = _ResultsWire()


class _ClaimStatusWire(Wire, frozen=True):
    allocation: _AllocationWire | None = None


class ClaimWire(Wire, frozen=True):
    metadata: MetadataWire
    spec: _ClaimSpecWire = _ClaimSpecWire()
    status: _ClaimStatusWire = _ClaimStatusWire()


class _TemplateSpecWire(Wire, frozen=True):
    spec: _ClaimSpecWire = _ClaimSpecWire()


class ClaimTemplateWire(Wire, frozen=True):
    metadata: MetadataWire
    spec: _TemplateSpecWire = _TemplateSpecWire()


def resource_slice(_resource: Resource, found: SliceWire, _data: Any) -> ResourceSlice:
    spec = found.spec
    return ResourceSlice(
        name=found.metadata.name,
        driver=spec.driver,
        pool=spec.pool.name,
        node=spec.node_name or "",
        generation=spec.pool.generation,
        slices=spec.pool.resource_slice_count,
        devices=tuple(_device(item, spec.driver) for item in spec.devices or ()),
    )


def _device(device: _DeviceWire, driver: str) -> Device:
    fields = device.basic or device
    attributes = []
    for name, attribute in (fields.attributes or {}).items():
        domain, slash, rest = name.partition("/")
        if attribute.words is not None:
            attributes.append(((domain, rest) if slash else (driver, name), attribute.words))
    plain = not (fields.consumes_counters or fields.taints or fields.binding_conditions)
    return Device(device.name, tuple(sorted(attributes)), plain and not fields.allow_multiple_allocations)


def device_class(_resource: Resource, found: ClassWire, _data: Any) -> DeviceClass:
    selectors = found.spec.selectors or ()
    return DeviceClass(found.metadata.name, tuple(item.cel.expression for item in selectors if item.cel is not None))


def _claim_spec(spec: _ClaimSpecWire) -> ClaimSpec:
    requests, simple = [], not spec.devices.constraints
    for request in spec.devices.requests or ():
        exact = request.exactly or request
        counted = exact.allocation_mode in {None, "", "ExactCount"} and not request.first_available
        simple = simple and counted and not (exact.selectors or exact.admin_access or exact.capacity)
        requests.append(DeviceRequest(exact.device_class_name, 1 if exact.count is None else exact.count))
    return ClaimSpec(tuple(requests), simple)


def resource_claim(_resource: Resource, found: ClaimWire, _data: Any) -> ResourceClaim:
    allocation = found.status.allocation
    results = () if allocation is None else allocation.devices.results or ()
    return ResourceClaim(
        found.metadata.namespace or "",
        found.metadata.name,
        _claim_spec(found.spec),
        tuple((item.driver, item.pool, item.device) for item in results if not item.admin_access),
        controller_of(found.metadata).uid,
    )


def resource_claim_template(_resource: Resource, found: ClaimTemplateWire, _data: Any) -> ResourceClaimTemplate:
    return ResourceClaimTemplate(found.metadata.namespace or "", found.metadata.name, _claim_spec(found.spec.spec))


DeviceValue = ResourceSlice | DeviceClass | ResourceClaim | ResourceClaimTemplate
DECODERS: dict[tuple[str, str], tuple[msgspec.json.Decoder[Any], Callable[[Resource, Any, Any], DeviceValue]]] = {
    ("resource.k8s.io", "ResourceSlice"): (msgspec.json.Decoder(SliceWire), resource_slice),
    ("resource.k8s.io", "DeviceClass"): (msgspec.json.Decoder(ClassWire), device_class),
    ("resource.k8s.io", "ResourceClaim"): (msgspec.json.Decoder(ClaimWire), resource_claim),
    ("resource.k8s.io", "ResourceClaimTemplate"): (msgspec.json.Decoder(ClaimTemplateWire), resource_claim_template),
}

"""What pods attach: volumes with their claims and classes, and devices of dynamic resource allocation.

Of devices, only what can be counted is judged: devices of one node that are allocated whole, and classes that select by driver or attribute.
For everything else `is_simple` or `simple` is False, and it is reported as not judged.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from reconciler.model.pods import NodeSelectorTerm

NO_PROVISIONER = "kubernetes.io/no-provisioner"
"""A StorageClass with this provisioner provisions nothing: its claims wait for volumes created in advance."""


@dataclass(frozen=True, slots=True)
class PersistentVolume:
    """A PersistentVolume."""

    name: str
    terms: tuple[NodeSelectorTerm, ...] = ()
    """Its required node affinity: one term must hold; () allows every node."""
    labels: tuple[tuple[str, str], ...] = ()
    """Only its labels for zone and region."""
    storage_class: str = ""
    capacity: int = 0
    """Bytes."""
    access_modes: tuple[str, ...] = ()
    claim: tuple[str, str] | None = None
    """Namespace and name of the claim that it is reserved for or bound to."""
    driver: str = ""
    """Its CSI driver; "" for other kinds of volume."""
    handle: str = ""
    """The driver's own id. Volumes with the same handle are the same volume to the driver."""


@dataclass(frozen=True, slots=True)
class VolumeClaim:
    """A PersistentVolumeClaim."""

    namespace: str
    name: str
    volume: str = ""
    """The name of its PersistentVolume; "" while it has none."""
    bound: bool = False
    """Whether claim and volume refer to each other."""
    lost: bool = False
    """Whether its volume has been deleted."""
    deleting: bool = False
    storage_class: str | None = None
    """None: the field is absent, so the default class counts; "": no class."""
    requested: int = 0
    """Bytes."""
    access_modes: tuple[str, ...] = ()
    controller: str = ""
    """UID of the pod whose ephemeral volume it was made for; "" for none."""
    selected_node: str = ""
    """The node for which its volume is being provisioned; "" for none."""

    @property
    def is_for_one_pod(self) -> bool:
        """Whether at most one pod may use it at a time (ReadWriteOncePod)."""
        return "ReadWriteOncePod" in self.access_modes

    def __str__(self) -> str:
        return f"PersistentVolumeClaim/{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class StorageClass:
    """A StorageClass."""

    name: str
    provisioner: str = ""
    waits: bool = False
    """WaitForFirstConsumer: the pod's node decides where the volume is provisioned."""
    topologies: tuple[NodeSelectorTerm, ...] = ()
    """Where volumes may be provisioned: one term must hold; () allows every node."""
    default: bool = False
    """Whether it is the default class, for claims that name none."""


@dataclass(frozen=True, slots=True)
class VolumeLimits:
    """The content of a node's CSINode. limits: by CSI driver, how many of its volumes can be attached."""

    node: str
    limits: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Storage:
    """Everything about volumes in the cluster; each tuple is sorted by name."""

    volumes: tuple[PersistentVolume, ...] = ()
    claims: tuple[VolumeClaim, ...] = ()
    classes: tuple[StorageClass, ...] = ()
    limits: tuple[VolumeLimits, ...] = ()


DeviceName = tuple[str, str, str]
"""Driver, pool and name: a device's identity in allocations."""
Attribute = tuple[str, str]
"""An attribute's domain and name. A missing domain is the driver's name."""

_DRIVER = re.compile(r"""device\.driver\s*==\s*(["'])(?P<value>[^"']*)\1""")
_ATTRIBUTE = re.compile(
    r"""device\.attributes\[(["'])(?P<domain>[^"']+)\1\]\.(?P<name>\w+)\s*==\s*"""
    r"""(?:(["'])(?P<text>[^"']*)\4|(?P<word>true|false|-?\d+))"""
)


@dataclass(frozen=True, slots=True)
class Device:
    """attributes: values as CEL prints them. simple: allocated whole, to one claim, and without taints."""

    name: str
    attributes: tuple[tuple[Attribute, str], ...] = ()
    simple: bool = True


@dataclass(frozen=True, slots=True)
class ResourceSlice:
    """Some of a driver's devices.

    Only the newest generation of a pool counts, and only if all of its slices are there.
    """

    name: str
    driver: str
    pool: str
    node: str = ""
    """"" when the devices do not belong to one node."""
    generation: int = 0
    """`spec.pool.generation`."""
    slices: int = 1
    """`spec.pool.resourceSliceCount`: how many slices the pool has."""
    devices: tuple[Device, ...] = ()


@dataclass(frozen=True, slots=True)
class DeviceClass:
    """A DeviceClass. selectors: CEL expressions that must all hold."""

    name: str
    selectors: tuple[str, ...] = ()

    @property
    def is_simple(self) -> bool:
        """Whether every selector is a comparison of a driver or a plain attribute, so that `selects` can judge it."""
        return all(_DRIVER.fullmatch(part) or _ATTRIBUTE.fullmatch(part) for part in self._parts())

    def selects(self, driver: str, device: Device) -> bool:
        """Whether the class selects this device of the driver. Only meaningful for a simple class."""
        return all(_holds(part, driver, dict(device.attributes)) for part in self._parts())

    def _parts(self) -> list[str]:
        return [part.strip() for selector in self.selectors for part in selector.strip().split("&&")]


def _holds(part: str, driver: str, attributes: dict[Attribute, str]) -> bool:
    found = _DRIVER.fullmatch(part)
    if found is not None:
        return found["value"] == driver
    asked = _ATTRIBUTE.fullmatch(part)
    assert asked is not None
    wanted = asked["word"] if asked["text"] is None else asked["text"]
    return attributes.get((asked["domain"], asked["name"])) == wanted


@dataclass(frozen=True, slots=True)
class DeviceRequest:
    """A request for `count` devices of one class."""

    device_class: str
    count: int


@dataclass(frozen=True, slots=True)
class ClaimSpec:
    """The spec of a ResourceClaim. simple: each request is a number of devices of one class, and nothing else."""

    requests: tuple[DeviceRequest, ...] = ()
    simple: bool = True


@dataclass(frozen=True, slots=True)
class ResourceClaim:
    """A ResourceClaim. allocated: its devices, () while it has none. owner: the uid of its controller, "" for none."""

    namespace: str
    name: str
    spec: ClaimSpec
    allocated: tuple[DeviceName, ...] = ()
    owner: str = ""


@dataclass(frozen=True, slots=True)
class ResourceClaimTemplate:
    """What the ResourceClaims of pods are made from, one for each pod."""

    namespace: str
    name: str
    spec: ClaimSpec


@dataclass(frozen=True, slots=True)
class Devices:
    """Everything about devices in the cluster; each tuple is sorted by name."""

    slices: tuple[ResourceSlice, ...] = ()
    classes: tuple[DeviceClass, ...] = ()
    claims: tuple[ResourceClaim, ...] = ()
    templates: tuple[ResourceClaimTemplate, ...] = ()

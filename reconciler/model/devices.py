"""Dynamic resource allocation: devices on nodes, device classes, claims.

Only what can be counted is judged: devices of one node that are allocated whole, and classes that select by driver or attribute.
For everything else `is_simple` or `simple` is False, and it is reported as not judged.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

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

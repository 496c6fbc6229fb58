"""The catalog of instance types as JSON values, read and written, and a synthetic one for the embedded cluster.

The format is that of Karpenter's KWOK provider, with two more optional fields: `labels` and `overhead`. Inside an offering, its
Go field names are capitalised. Names are matched regardless of case, as by Go's JSON decoder.

Names, sizes and prices of the synthetic one are those of the catalog in Karpenter's KWOK provider. So a plan made offline agrees with a Karpenter that
runs on KWOK.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from fractions import Fraction
from functools import cache
from itertools import product
from typing import Annotated, Any

import msgspec

from reconciler.model.errors import Invalid
from reconciler.model.nodes import (
    ARCHITECTURE_LABEL,
    CAPACITY_TYPE_LABEL,
    INSTANCE_TYPE_LABEL,
    MOST_PRICE,
    OPERATING_SYSTEM_LABEL,
    ZONE_LABEL,
    InstanceType,
    Offering,
)
from reconciler.model.quantity import CPU, MEMORY, PODS, Resources, parse_quantity
from reconciler.model.requirements import Operator, Requirement

KWOK_SIZE_LABEL = "karpenter.kwok.sh/instance-size"
KWOK_FAMILY_LABEL = "karpenter.kwok.sh/instance-family"
KWOK_CPU_LABEL = "karpenter.kwok.sh/instance-cpu"
KWOK_MEMORY_LABEL = "karpenter.kwok.sh/instance-memory"
DEFAULT_PODS = 110
DEFAULT_OVERHEAD = Resources.of({CPU: 100, MEMORY: 10 * 2**20})
"""What the KWOK provider reserves on every type: 100m CPU and 10Mi of memory."""

AS_OF = "asOf"
_TYPES = "instanceTypes"
_AWS_NAME = re.compile(r"\w+\.(nano|micro|small|medium|large|\d*xlarge|metal)")
_OWN_LABELS = (INSTANCE_TYPE_LABEL, ARCHITECTURE_LABEL, OPERATING_SYSTEM_LABEL)


def date_of_prices(document: Any) -> str:
    """The date of a catalog's prices, from its field `asOf`; "" where that is absent. Raises `Invalid` if it is not a date."""
    if not isinstance(document, dict) or AS_OF not in document:
        return ""
    said = document[AS_OF]
    try:
        date = datetime.fromisoformat(said)
    except (TypeError, ValueError):
        raise Invalid(f"{AS_OF} of a catalog is a date, not {_words(said)}", hint='write "2026-11-21"') from None
    return date.strftime("%Y-%m-%d" if len(said) == len("2026-11-21") else "%Y-%m-%d %H:%M %Z").strip()


def instance_types_from(document: Any) -> tuple[InstanceType, ...]:
    """The instance types of a parsed `instance_types.json`, sorted by name: a list, or an object with it in `instanceTypes`.

    `Available` and `ReservationCapacity` of an offering are optional; `Price` may be null, meaning unknown. An offering
    that names several zones or capacity types becomes one for each. Raises `Invalid` naming every wrong type and field.
    """
    if isinstance(document, dict) and _TYPES in document:
        document = document[_TYPES]
    if not isinstance(document, list):
        raise Invalid(
            f"a catalog of instance types is a list, not {_words(document)}",
            hint='write [{"name": …, "architecture": …, "operatingSystems": […], "resources": {…}, "offerings": […]}]',
        )
    by_name: dict[str, InstanceType] = {}
    problems: list[Invalid] = []
    for index, entry in enumerate(document):
        try:
            item = _instance_type(entry, index)
        except Invalid as problem:
            problems.append(problem)
            continue
        if item.name in by_name:
            problems.append(Invalid(f"instance type {item.name} is listed twice", hint="keep one of them"))
        by_name[item.name] = item
    if len(problems) == 1:
        raise problems[0]
    if problems:
        raise Invalid(
            f"{len(problems)} instance types are wrong; the first: {problems[0].message}", causes=problems[1:]
        )
    return tuple(by_name[name] for name in sorted(by_name))


def instance_types_document(instance_types: Iterable[InstanceType]) -> list[dict[str, Any]]:
    """The same catalog as JSON values: `instance_types_from` reads back equal types."""
    return [
        {
            "name": item.name,
            "architecture": item.architecture,
            "operatingSystems": list(item.operating_systems),
            "resources": item.capacity.quantities(),
            "overhead": item.overhead.quantities(),
            "labels": {key: value for key, value in item.labels if key not in _OWN_LABELS},
            "offerings": [_offering_document(offering) for offering in item.offerings],
        }
        for item in sorted(instance_types, key=lambda item: item.name)
    ]


def _offering_document(offering: Offering) -> dict[str, Any]:
    row: dict[str, Any] = {
        "Price": offering.price if offering.price_known else None,
        "Available": offering.available,
        "Requirements": [
            {"key": each.key, "operator": each.operator.value, "values": list(each.values)}
            for each in offering.requirements
        ],
    }
    if offering.reservation_capacity is not None:
        row["ReservationCapacity"] = offering.reservation_capacity
    return row


class _Wire(msgspec.Struct, rename="lower", frozen=True):
    """Names in lower case: Go's decoder ignores it."""


class _RequirementWire(_Wire, frozen=True):
    key: str
    operator: Operator
    values: tuple[str, ...] = ()


class _OfferingWire(_Wire, frozen=True):
    price: Annotated[float, msgspec.Meta(ge=0, le=MOST_PRICE)] | None
    requirements: tuple[_RequirementWire, ...]
    available: bool | None = True
    reservation_capacity: Annotated[int, msgspec.Meta(ge=0)] | None = msgspec.field(
        default=None, name="reservationcapacity"
    )


class _TypeWire(_Wire, frozen=True):
    architecture: Annotated[str, msgspec.Meta(min_length=1)]
    operating_systems: Annotated[tuple[str, ...], msgspec.Meta(min_length=1)] = msgspec.field(name="operatingsystems")
    resources: dict[str, str | int | float]
    offerings: tuple[_OfferingWire, ...]
    overhead: dict[str, str | int | float] | None = None
    labels: dict[str, str] | None = None


def _lower(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {str(key).lower(): value for key, value in entry.items()}


def _instance_type(entry: Any, index: int) -> InstanceType:
    if not isinstance(entry, dict):
        raise Invalid(f"instance type [{index}] is {_words(entry)}, expected an object with a name")
    entry = _lower(entry)
    name = entry.get("name")
    if not isinstance(name, str) or not name:
        raise Invalid(f"instance type [{index}]: name is {_words(name)}, expected a string")
    offerings = entry.get("offerings")
    if isinstance(offerings, list):
        entry["offerings"] = [_lower(each) if isinstance(each, dict) else each for each in offerings]
    try:
        return _typed(name, msgspec.convert(entry, _TypeWire))
    except (msgspec.ValidationError, OverflowError) as error:
        what, _, path = str(error).partition(" - at `$.")
        where = f"{path.rstrip('`')}: " if path else ""
        raise Invalid(f"instance type {name}: {where}{what[:1].lower()}{what[1:]}") from error
    except Invalid as error:
        raise Invalid(f"instance type {name}: {error.message}", hint=error.hint) from error


def _typed(name: str, wire: _TypeWire) -> InstanceType:
    capacity = Resources.parse(wire.resources)
    for resource in (CPU, MEMORY):
        if capacity.get(resource) <= 0:
            raise Invalid(f"resources.{resource} is {wire.resources.get(resource)}, expected an amount above zero")
    if PODS not in wire.resources:
        capacity += Resources.of({PODS: DEFAULT_PODS})
    labels = kwok_labels(name, wire.resources) if wire.labels is None else dict(wire.labels)
    labels |= {INSTANCE_TYPE_LABEL: name, ARCHITECTURE_LABEL: wire.architecture}
    if len(wire.operating_systems) == 1:
        labels[OPERATING_SYSTEM_LABEL] = wire.operating_systems[0]
    offerings = [offering for index, row in enumerate(wire.offerings) for offering in _offerings(row, index)]
    return InstanceType(
        name=name,
        architecture=wire.architecture,
        operating_systems=wire.operating_systems,
        capacity=capacity,
        overhead=DEFAULT_OVERHEAD if wire.overhead is None else Resources.parse(wire.overhead),
        offerings=tuple(sorted(offerings, key=_offering_order)),
        labels=tuple(sorted(labels.items())),
    )


def _offerings(wire: _OfferingWire, index: int) -> Iterator[Offering]:
    requirements = {each.key: Requirement(each.key, each.operator, each.values) for each in wire.requirements}
    for key in (ZONE_LABEL, CAPACITY_TYPE_LABEL):
        if key not in requirements or requirements[key].operator is not Operator.IN or not requirements[key].values:
            hint = f'add {{"key": "{key}", "operator": "In", "values": ["…"]}}'
            raise Invalid(f"offerings[{index}].Requirements do not say {key} In […]", hint=hint)
    if wire.price is not None and math.isnan(wire.price):
        raise Invalid(f"offerings[{index}].Price is not a number", hint="write null where it is not known")
    for zone, capacity_type in product(requirements[ZONE_LABEL].values, requirements[CAPACITY_TYPE_LABEL].values):
        single = requirements | {
            ZONE_LABEL: Requirement(ZONE_LABEL, Operator.IN, (zone,)),
            CAPACITY_TYPE_LABEL: Requirement(CAPACITY_TYPE_LABEL, Operator.IN, (capacity_type,)),
        }
        yield Offering(
            zone=zone,
            capacity_type=capacity_type,
            price=wire.price or 0.0,
            available=wire.available is not False,
            requirements=tuple(single[key] for key in sorted(single)),
            reservation_capacity=wire.reservation_capacity,
            price_known=wire.price is not None,
        )


def _offering_order(offering: Offering) -> tuple[str, str, float, str]:
    return (offering.zone, offering.capacity_type, offering.price, repr(offering.requirements))


def kwok_labels(name: str, resources: Mapping[str, object]) -> dict[str, str]:
    """The labels that Karpenter's KWOK provider derives from a type's name and resources as written.

    The size is the last part of an AWS name (`m5.large`), else the CPU. The family is the part before the first dot or hyphen, else
    the first letter. CPU and memory are written as Kubernetes prints them (`4000m` is `4`).
    """
    cpu = _printed(resources.get(CPU, 0))
    match = _AWS_NAME.fullmatch(name)
    parts = re.split(r"[.-]", name, maxsplit=1)
    return {
        KWOK_SIZE_LABEL: match[1] if match else cpu,
        KWOK_FAMILY_LABEL: parts[0] if len(parts) > 1 else name[:1],
        KWOK_CPU_LABEL: cpu,
        KWOK_MEMORY_LABEL: _printed(resources.get(MEMORY, 0)),
    }


def _printed(quantity: object) -> str:
    """A quantity in Kubernetes' canonical form: with the largest suffix of its family that leaves a whole number."""
    value = parse_quantity(quantity)
    binary = isinstance(quantity, str) and quantity.endswith("i")
    base, suffixes = (1024, ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")) if binary else (1000, ("", *"kMGTPE"))
    if value.denominator != 1:
        value, suffixes = Fraction(math.ceil(value * 1000)), ("m", *suffixes)
    number, step = value.numerator, 0
    while number and number % base == 0 and step + 1 < len(suffixes):
        number, step = number // base, step + 1
    return f"{number}{suffixes[step]}"


def _words(value: Any) -> str:
    kinds = {dict: "an object", list: "a list", str: "a string", bool: "true or false", type(None): "nothing"}
    return kinds.get(type(value), "a number")


SYNTHETIC_ZONES = ("test-zone-a", "test-zone-b", "test-zone-c", "test-zone-d")
_GIBIBYTES_PER_CORE = {"c": 2, "s": 4, "m": 8}
_CORES = (1, 2, 4, 8, 16, 32, 48, 64, 96, 128, 192, 256)
_PODS_PER_CORE, _MOST_PODS = 16, 1024
_USD_PER_CORE, _USD_PER_GIGABYTE, _SPOT_SHARE = 0.025, 0.001, 0.7


_GPUS = ((8, 1), (16, 2), (32, 4), (64, 8))
"""Cores and GPUs of the embedded cluster's own family."""
_USD_PER_GPU = 0.6


def is_sample(instance_types: Iterable[InstanceType]) -> bool:
    """Whether a catalog is this one, or a part of it, by the names of its types."""
    names = {kind.name for kind in instance_types}
    return bool(names) and names <= {kind.name for kind in (*synthetic_instance_types(), *gpu_instance_types())}


@cache
def gpu_instance_types() -> tuple[InstanceType, ...]:
    """Four types with NVIDIA GPUs, which the embedded cluster sells beside the others. Karpenter's KWOK provider has none."""
    rows = []
    for cores, gpus in _GPUS:
        row = _row(f"g-{cores}x-amd64-linux", cores, cores * 4, "amd64", "linux", extra=gpus * _USD_PER_GPU)
        row["resources"]["nvidia.com/gpu"] = str(gpus)
        rows.append(row)
    return instance_types_from(rows)


@cache
def synthetic_instance_types() -> tuple[InstanceType, ...]:
    """144 types, sorted by name: three families × 12 sizes × amd64 and arm64 × Linux and Windows. Each is sold as spot and on
    demand in four zones."""
    shapes = product(_GIBIBYTES_PER_CORE.items(), _CORES, ("amd64", "arm64"), ("linux", "windows"))
    return instance_types_from(
        [
            _row(f"{family}-{cores}x-{architecture}-{system}", cores, cores * gibibytes, architecture, system)
            for (family, gibibytes), cores, architecture, system in shapes
        ]
    )


def _row(
    name: str, cores: int, gibibytes: int, architecture: str, system: str, *, extra: float = 0.0
) -> dict[str, Any]:
    price = _USD_PER_CORE * cores + _USD_PER_GIGABYTE * gibibytes * 2**30 / 10**9 + extra
    return {
        "name": name,
        "architecture": architecture,
        "operatingSystems": [system],
        "resources": {
            "cpu": str(cores),
            "memory": f"{gibibytes}Gi",
            "pods": str(min(cores * _PODS_PER_CORE, _MOST_PODS)),
            "ephemeral-storage": "20Gi",
        },
        "offerings": [
            {
                "Price": price * _SPOT_SHARE if capacity_type == "spot" else price,
                "Requirements": [
                    {"key": CAPACITY_TYPE_LABEL, "operator": "In", "values": [capacity_type]},
                    {"key": ZONE_LABEL, "operator": "In", "values": [zone]},
                ],
            }
            for zone, capacity_type in product(SYNTHETIC_ZONES, ("on-demand", "spot"))
        ],
    }

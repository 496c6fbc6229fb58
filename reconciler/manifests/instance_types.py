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
from typing import Any

from reconciler.model.errors import Invalid
from reconciler.model.nodes import (
    ARCHITECTURE_LABEL,
    CAPACITY_TYPE_LABEL,
    INSTANCE_TYPE_LABEL,
    MOST_PRICE,
    OPERATING_SYSTEM_LABEL,
    ZONE_LABEL,
    InstanceType,
    Labels,
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
    found: dict[str, InstanceType] = {}
    problems: list[Invalid] = []
    for index, entry in enumerate(document):
        try:
            item = _instance_type(entry, index)
        except Invalid as problem:
            problems.append(problem)
            continue
        if item.name in found:
            problems.append(Invalid(f"instance type {item.name} is listed twice", hint="keep one of them"))
        found[item.name] = item
    if len(problems) == 1:
        raise problems[0]
    if problems:
        raise Invalid(
            f"{len(problems)} instance types are wrong; the first: {problems[0].message}", causes=problems[1:]
        )
    return tuple(found[name] for name in sorted(found))


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


def _instance_type(entry: Any, index: int) -> InstanceType:
    if not isinstance(entry, dict):
        raise Invalid(f"instance type [{index}] is {_words(entry)}, expected an object with a name")
    fields = _Fields(entry, f"instance type [{index}]")
    name = fields.text("name")
    fields = _Fields(entry, f"instance type {name}")
    architecture = fields.text("architecture")
    systems = fields.texts("operatingSystems")
    written = fields.mapping("resources")
    capacity = fields.resources("resources")
    for resource in (CPU, MEMORY):
        if capacity.get(resource) <= 0:
            raise fields.wrong(f"resources.{resource}", "an amount above zero", written.get(resource))
    if PODS not in written:
        capacity += Resources.of({PODS: DEFAULT_PODS})
    labels = fields.labels("labels") if fields.has("labels") else kwok_labels(name, written)
    labels |= {INSTANCE_TYPE_LABEL: name, ARCHITECTURE_LABEL: architecture}
    if len(systems) == 1:
        labels[OPERATING_SYSTEM_LABEL] = systems[0]
    offerings = [offering for row in fields.rows("offerings") for offering in _offerings(row)]
    return InstanceType(
        name=name,
        architecture=architecture,
        operating_systems=systems,
        capacity=capacity,
        overhead=fields.resources("overhead") if fields.has("overhead") else DEFAULT_OVERHEAD,
        offerings=tuple(sorted(offerings, key=_offering_order)),
        labels=_sorted_labels(labels),
    )


def _offerings(fields: _Fields) -> Iterator[Offering]:
    requirements = {each.key: each for each in (_requirement(row) for row in fields.rows("Requirements"))}
    for key in (ZONE_LABEL, CAPACITY_TYPE_LABEL):
        if key not in requirements or requirements[key].operator is not Operator.IN or not requirements[key].values:
            raise Invalid(
                f"{fields.where}.Requirements do not say {key} In […]",
                hint=f'add {{"key": "{key}", "operator": "In", "values": ["…"]}}',
            )
    price = fields.price("Price")
    available = fields.flag("Available", default=True)
    reserved = fields.count("ReservationCapacity")
    for zone in requirements[ZONE_LABEL].values:
        for capacity_type in requirements[CAPACITY_TYPE_LABEL].values:
            single = requirements | {
                ZONE_LABEL: Requirement(ZONE_LABEL, Operator.IN, (zone,)),
                CAPACITY_TYPE_LABEL: Requirement(CAPACITY_TYPE_LABEL, Operator.IN, (capacity_type,)),
            }
            yield Offering(
                zone=zone,
                capacity_type=capacity_type,
                price=price or 0.0,
                available=available,
                requirements=tuple(single[key] for key in sorted(single)),
                reservation_capacity=reserved,
                price_known=price is not None,
            )


def _requirement(fields: _Fields) -> Requirement:
    written = fields.text("operator")
    if written not in list(Operator):
        raise fields.wrong("operator", f"one of {', '.join(Operator)}", written)
    values = fields.texts("values") if fields.has("values") else ()
    return Requirement(fields.text("key"), Operator(written), values)


def _offering_order(offering: Offering) -> tuple[str, str, float, str]:
    return (offering.zone, offering.capacity_type, offering.price, repr(offering.requirements))


def _sorted_labels(labels: Mapping[str, str]) -> Labels:
    return tuple(sorted(labels.items()))


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


class _Fields:
    """Reads the fields of one JSON object and checks their types. where: put before a field's name in messages."""

    def __init__(self, entry: Mapping[str, Any], where: str) -> None:
        self.where = where
        self._values = {str(key).lower(): value for key, value in entry.items()}

    def wrong(self, name: str, expected: str, value: object) -> Invalid:
        written = "is missing" if value is None else f"is {value!r}"
        joint = ": " if self.where.startswith("instance type") and "offerings[" not in self.where else "."
        return Invalid(f"{self.where}{joint}{name} {written}, expected {expected}")

    def has(self, name: str) -> bool:
        return self._values.get(name.lower()) is not None

    def _get(self, name: str) -> Any:
        return self._values.get(name.lower())

    def text(self, name: str) -> str:
        value = self._get(name)
        if not isinstance(value, str) or not value:
            raise self.wrong(name, "a string", value)
        return value

    def texts(self, name: str) -> tuple[str, ...]:
        value = self._get(name)
        if not isinstance(value, list) or not value or not all(isinstance(each, str) for each in value):
            raise self.wrong(name, "a list of strings", value)
        return tuple(value)

    def mapping(self, name: str) -> Mapping[str, Any]:
        value = self._get(name)
        if not isinstance(value, dict):
            raise self.wrong(name, "an object", value)
        return value

    def labels(self, name: str) -> dict[str, str]:
        for key, value in self.mapping(name).items():
            if not isinstance(value, str):
                raise self.wrong(f"{name}[{key}]", "a string (quote it)", value)
        return dict(self.mapping(name))

    def resources(self, name: str) -> Resources:
        try:
            return Resources.parse(self.mapping(name))
        except Invalid as error:
            raise Invalid(f"{self.where}: {name}: {error.message}", hint=error.hint) from error

    def rows(self, name: str) -> list[_Fields]:
        value = self._get(name)
        if not isinstance(value, list):
            raise self.wrong(name, "a list of objects", value)
        joint = "." if "offerings[" in self.where else ": "
        for index, each in enumerate(value):
            if not isinstance(each, dict):
                raise self.wrong(f"{name}[{index}]", "an object", each)
        return [_Fields(each, f"{self.where}{joint}{name}[{index}]") for index, each in enumerate(value)]

    def price(self, name: str) -> float | None:
        """USD an hour; None where it is null, which means unknown."""
        value = self._get(name)
        if value is None and name.lower() in self._values:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MOST_PRICE:
            raise self.wrong(name, f"USD an hour from 0 to {MOST_PRICE:,}, or null where it is not known", value)
        return float(value)

    def flag(self, name: str, *, default: bool) -> bool:
        value = self._get(name)
        if value is not None and not isinstance(value, bool):
            raise self.wrong(name, "true or false", value)
        return default if value is None else value

    def count(self, name: str) -> int | None:
        value = self._get(name)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 0):
            raise self.wrong(name, "a whole number, 0 or more", value)
        return value


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

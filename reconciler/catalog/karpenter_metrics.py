"""A catalog from what Karpenter's controller exports about instance types.

Providers that export `karpenter_cloudprovider_instance_type_*`, such as AWS, give CPU and memory. For every zone and capacity type
they give price and availability, without credentials for the cloud. Architecture, pods and overhead come from nodes of that type if
the cluster has any. Otherwise they are estimated, so that capacity is rather too small.
"""

from __future__ import annotations

import math
import re
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from http.client import HTTPException
from urllib.parse import urlsplit

from reconciler.catalog.observed import observed_instance_types, offering
from reconciler.model.errors import Invalid, Transient
from reconciler.model.nodes import (
    ARCHITECTURE_LABEL,
    INSTANCE_TYPE_LABEL,
    MOST_PRICE,
    OPERATING_SYSTEM_LABEL,
    InstanceType,
    Offering,
)
from reconciler.model.quantity import CPU, MEMORY, PODS, Resources, time_text
from reconciler.model.view import ClusterView
from reconciler.network import opener_to
from reconciler.ports import Clock
from reconciler.report.escaping import without_url_secrets

_PREFIX = "karpenter_cloudprovider_instance_type_"
_MOST_BYTES = 128 * 2**20
_PODS = 110
_LARGEST = 2.0**63
"""Cores, bytes and USD from here on are a mistake, and arithmetic would overflow."""
_FAMILY = re.compile(r"[a-z]+-?\d+(?P<letters>[a-z]*)")


@dataclass(frozen=True, slots=True)
class Scrape:
    """One reading of the metrics, by instance type.

    cores, memory: in cores and bytes. prices: USD an hour. prices, available: by (zone, capacity type).
    """

    cores: dict[str, float] = field(default_factory=dict)
    memory: dict[str, float] = field(default_factory=dict)
    prices: dict[str, dict[tuple[str, str], float]] = field(default_factory=dict)
    available: dict[str, dict[tuple[str, str], bool]] = field(default_factory=dict)


class KarpenterMetricsCatalog:
    """url: Karpenter's metrics endpoint (`http://karpenter.kube-system:8080/metrics`).

    It is read again after `refresh`. If that fails, the last reading is used for up to `keep`, and `source` says how old it is.
    """

    def __init__(
        self,
        url: str,
        *,
        clock: Clock,
        timeout: timedelta = timedelta(seconds=10),
        refresh: timedelta = timedelta(minutes=5),
        keep: timedelta = timedelta(hours=1),
    ) -> None:
        if not _is_address(url):
            raise Invalid(
                f"karpenter-metrics:{without_url_secrets(url)} is not an address",
                hint="write karpenter-metrics:http://karpenter.kube-system:8080/metrics",
            )
        self._url = url
        self._name = without_url_secrets(url)
        self._clock = clock
        self._timeout = timeout.total_seconds()
        self._refresh = refresh
        self._keep = keep
        self._scrape: Scrape | None = None
        self._as_of: datetime | None = None
        self._tried: datetime | None = None
        self._estimated = 0

    @property
    def source(self) -> str:
        if self._as_of is None:
            return f"Karpenter's metrics at {self._name}, not read yet"
        text = f"Karpenter's metrics at {self._name} as of {time_text(self._as_of)}"
        if self._estimated:
            text += f"; overhead and pods of {self._estimated} types that no node has yet are estimates"
        return text

    def instance_types(self, view: ClusterView) -> tuple[InstanceType, ...]:
        scrape = self._read()
        seen = {item.name: item for item in observed_instance_types(view.nodes)}
        names = sorted(set(scrape.cores) & set(scrape.memory))
        self._estimated = sum(name not in seen for name in names)
        types = (_instance_type(name, scrape, seen.get(name)) for name in names)
        return tuple(item for item in types if item.offerings)

    def _read(self) -> Scrape:
        now = self._clock.now()
        if self._scrape is not None and self._tried is not None and timedelta(0) <= now - self._tried < self._refresh:
            return self._scrape
        self._tried = now
        try:
            self._scrape = parse_scrape(self._lines())
            self._as_of = now
        except (OSError, HTTPException, ValueError) as error:
            if self._scrape is None or self._as_of is None or now - self._as_of > self._keep:
                self._scrape = None
                raise Transient(
                    f"Karpenter's metrics at {self._name} cannot be read: {_reason(error)}",
                    hint="check the address, or plan with --catalog FILE or observed",
                ) from error
        return self._scrape

    def _lines(self) -> Iterator[str]:
        request = urllib.request.Request(self._url, headers={"Accept": "text/plain;version=0.0.4"})  # noqa: S310 - http(s), checked above
        with opener_to(self._url).open(request, timeout=self._timeout) as response:
            body = response.read(_MOST_BYTES + 1)
        if len(body) > _MOST_BYTES:
            raise ValueError(f"more than {_MOST_BYTES} bytes")
        for line in body.decode("utf-8").splitlines():
            if line.startswith(_PREFIX):
                yield line


def parse_scrape(lines: Iterable[str]) -> Scrape:
    """What the lines of a Prometheus text exposition say about instance types.

    Raises ValueError when they are malformed, or say nothing about instance types.
    """
    from prometheus_client.parser import text_string_to_metric_families

    scrape = Scrape()
    for family in text_string_to_metric_families("\n".join(lines) + "\n"):
        for sample in family.samples:
            _note(scrape, sample.name.removeprefix(_PREFIX), sample.labels, sample.value)
    if not scrape.cores or not (scrape.prices or scrape.available):
        raise ValueError(f"it has no {_PREFIX}* metrics: this provider does not export them")
    return scrape


def _note(scrape: Scrape, metric: str, labels: Mapping[str, str], value: float) -> None:
    name = labels.get("instance_type", "")
    where = (labels.get("zone", ""), labels.get("capacity_type", ""))
    if not name or not abs(value) < _LARGEST:  # NaN is not below either
        return
    match metric:
        case "cpu_cores":
            scrape.cores[name] = value
        case "memory_bytes":
            scrape.memory[name] = value
        case "offering_price_estimate" if all(where):
            scrape.prices.setdefault(name, {})[where] = value
        case "offering_available" if all(where):
            scrape.available.setdefault(name, {})[where] = value > 0


def _instance_type(name: str, scrape: Scrape, seen: InstanceType | None) -> InstanceType:
    offerings = tuple(_offerings(scrape.prices.get(name, {}), scrape.available.get(name, {})))
    if seen is not None:
        return replace(seen, offerings=offerings)
    capacity = Resources.of({CPU: round(scrape.cores[name] * 1000), MEMORY: int(scrape.memory[name]), PODS: _PODS})
    architecture = "arm64" if _is_arm(name.partition(".")[0]) else "amd64"
    labels = {INSTANCE_TYPE_LABEL: name, ARCHITECTURE_LABEL: architecture, OPERATING_SYSTEM_LABEL: "linux"}
    return InstanceType(
        name=name,
        architecture=architecture,
        operating_systems=("linux",),
        capacity=capacity,
        overhead=estimated_overhead(capacity),
        offerings=offerings,
        labels=tuple(sorted(labels.items())),
    )


def _is_arm(family: str) -> bool:
    """AWS names Graviton families with a `g` after the generation (`m7g`, `c6gn`, `x2gd`); `a1` was the first."""
    match = _FAMILY.fullmatch(family)
    return family == "a1" or (match is not None and "g" in match["letters"])


def _offerings(
    prices: Mapping[tuple[str, str], float], available: Mapping[tuple[str, str], bool]
) -> Iterator[Offering]:
    for zone, capacity_type in sorted(prices.keys() | available.keys()):
        price = prices.get((zone, capacity_type), 0.0)
        yield offering(
            zone,
            capacity_type,
            # Providers export 0 where they know no price.
            price=price if 0 < price <= MOST_PRICE else None,
            available=available.get((zone, capacity_type), True),
        )


def estimated_overhead(capacity: Resources) -> Resources:
    """What kubelet and the hypervisor reserve on a machine, by the rules of the node images of EKS and GKE.

    CPU: 6% of the first core, 1% of the second, 0.5% of the next two, 0.25% of the rest. Memory: 7.5% for the hypervisor
    (Karpenter's default `vm-memory-overhead-percent`), 255 MiB and 11 MiB a pod for kubelet, 100 MiB before eviction.
    """
    millicores = capacity.get(CPU)
    steps = ((1000, 0.06), (1000, 0.01), (2000, 0.005), (millicores, 0.0025))
    reserved = 0.0
    for step, share in steps:
        part = min(step, millicores)
        reserved += part * share
        millicores -= part
    memory = math.ceil(capacity.get(MEMORY) * 0.075) + (255 + 100 + 11 * capacity.get(PODS)) * 2**20
    return Resources.of({CPU: math.ceil(reserved), MEMORY: min(memory, capacity.get(MEMORY))})


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in {"http", "https"} and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:  # brackets that are never closed, a port beyond 65535
        return False


def _reason(error: Exception) -> str:
    if isinstance(error, urllib.error.HTTPError):
        return f"HTTP {error.code}"
    if isinstance(error, urllib.error.URLError):
        return str(getattr(error.reason, "strerror", None) or error.reason)
    return str(error) or type(error).__name__

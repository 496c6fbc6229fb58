"""The metrics of several clusters in one exposition: each sample says by the label `cluster` whose it is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from prometheus_client.samples import Sample


class MergedMetrics(Collector):
    """registries: by the cluster's name. A family of the same name in several is one family, as Prometheus requires."""

    def __init__(self, registries: Mapping[str, CollectorRegistry]) -> None:
        self._registries = registries
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(self)

    def exposition(self) -> tuple[bytes, str]:
        """As `Metrics.exposition`."""
        return generate_latest(self._registry), CONTENT_TYPE_LATEST

    def describe(self) -> list[Metric]:
        """Nothing, so that registering collects nothing."""
        return []

    def collect(self) -> Iterator[Metric]:
        families: dict[str, Metric] = {}
        for cluster, registry in self._registries.items():
            for family in registry.collect():
                merged = families.setdefault(family.name, Metric(family.name, family.documentation, family.type))
                merged.samples += [_labelled(sample, cluster) for sample in family.samples]
        yield from families.values()


def _labelled(sample: Sample, cluster: str) -> Sample:
    return sample._replace(labels={"cluster": cluster, **sample.labels})

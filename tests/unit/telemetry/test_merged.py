"""Metrics of several clusters in one exposition."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from reconciler.telemetry.metrics import MergedMetrics, Metrics


def test_each_family_is_there_once_with_a_sample_for_each_cluster() -> None:
    one, other = Metrics(), Metrics()
    one.observe_poll("changed", 0.2)
    other.observe_poll("stalled", 0.1)
    other.count_request("GET", "pods", "200")
    text, _ = MergedMetrics({"production": one.registry, "staging": other.registry}).exposition()
    families = list(text_string_to_metric_families(text.decode()))
    assert len({family.name for family in families}) == len(families)
    samples = {
        (sample.name, sample.labels["cluster"], sample.labels.get("result")): sample.value
        for family in families
        for sample in family.samples
    }
    assert samples["headroom_git_polls_total", "production", "changed"] == 1
    assert samples["headroom_git_polls_total", "staging", "stalled"] == 1
    assert samples["headroom_git_poll_duration_seconds_count", "production", None] == 1
    assert all("cluster" in sample.labels for family in families for sample in family.samples)

"""A catalog from Karpenter's metrics, read from a real HTTP server that can be told to fail."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from reconciler.catalog.karpenter_metrics import KarpenterMetricsCatalog, estimated_overhead
from reconciler.model.errors import Invalid, Transient
from reconciler.model.nodes import Node
from reconciler.model.quantity import Resources
from reconciler.model.view import ClusterView
from tests.fakes.clock import ManualClock

EXPOSITION = """\
# HELP karpenter_nodes_created_total Number of nodes created.
# TYPE karpenter_nodes_created_total counter
karpenter_nodes_created_total{nodepool="default"} 4
# HELP karpenter_cloudprovider_instance_type_cpu_cores VCPUs cores for a given instance type.
# TYPE karpenter_cloudprovider_instance_type_cpu_cores gauge
karpenter_cloudprovider_instance_type_cpu_cores{instance_type="m5.large"} 2
karpenter_cloudprovider_instance_type_cpu_cores{instance_type="m7g.large"} 2
karpenter_cloudprovider_instance_type_cpu_cores{instance_type="g4dn.xlarge"} 4
# TYPE karpenter_cloudprovider_instance_type_memory_bytes gauge
karpenter_cloudprovider_instance_type_memory_bytes{instance_type="m5.large"} 8.589934592e+09
karpenter_cloudprovider_instance_type_memory_bytes{instance_type="m7g.large"} 8.589934592e+09
karpenter_cloudprovider_instance_type_memory_bytes{instance_type="g4dn.xlarge"} 1.7179869184e+10
# TYPE karpenter_cloudprovider_instance_type_offering_available gauge
karpenter_cloudprovider_instance_type_offering_available{capacity_type="on-demand",instance_type="m5.large",zone="eu-west-1a"} 1
karpenter_cloudprovider_instance_type_offering_available{capacity_type="spot",instance_type="m5.large",zone="eu-west-1a"} 0
karpenter_cloudprovider_instance_type_offering_available{capacity_type="spot",instance_type="m7g.large",zone="eu-west-1b"} 1
# TYPE karpenter_cloudprovider_instance_type_offering_price_estimate gauge
karpenter_cloudprovider_instance_type_offering_price_estimate{capacity_type="on-demand",instance_type="m5.large",zone="eu-west-1a"} 0.107
karpenter_cloudprovider_instance_type_offering_price_estimate{capacity_type="spot",instance_type="m5.large",zone="eu-west-1a"} 0.041
karpenter_cloudprovider_instance_type_offering_price_estimate{capacity_type="spot",instance_type="m7g.large",zone="eu-west-1b"} 0
"""


class Endpoint:
    """What the server answers, and how often it was asked."""

    def __init__(self) -> None:
        self.body = EXPOSITION
        self.status = 200
        self.requests = 0
        self.url = ""


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    state = Endpoint()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            state.requests += 1
            self.send_response(state.status)
            self.end_headers()
            self.wfile.write(state.body.encode())

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is the base class's
            """Nothing: tests are quiet."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        state.url = f"http://127.0.0.1:{server.server_port}/metrics"
        yield state
        server.shutdown()
        thread.join()


def test_types_offerings_and_prices(endpoint: Endpoint) -> None:
    types = KarpenterMetricsCatalog(endpoint.url, clock=ManualClock()).instance_types(ClusterView())
    rows = [
        (item.name, item.architecture, each.zone, each.capacity_type, each.price, each.price_known, each.available)
        for item in types
        for each in item.offerings
    ]
    assert rows == [
        ("m5.large", "amd64", "eu-west-1a", "on-demand", 0.107, True, True),
        ("m5.large", "amd64", "eu-west-1a", "spot", 0.041, True, False),
        ("m7g.large", "arm64", "eu-west-1b", "spot", 0.0, False, True),
    ]


def test_what_is_beyond_any_price_is_not_known(endpoint: Endpoint) -> None:
    endpoint.body = EXPOSITION.replace("} 0.107", "} 1e+30").replace("} 0.041", "} 1e+06")
    large, _ = KarpenterMetricsCatalog(endpoint.url, clock=ManualClock()).instance_types(ClusterView())
    assert [(each.price, each.price_known) for each in large.offerings] == [(0.0, False), (1_000_000.0, True)]


def test_a_node_of_the_type_tells_more_than_an_estimate(endpoint: Endpoint) -> None:
    labels = {
        "node.kubernetes.io/instance-type": "m5.large",
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
        "topology.kubernetes.io/zone": "eu-west-1c",
    }
    allocatable = Resources.parse({"cpu": "1930m", "memory": "7100Mi", "pods": "29"})
    seen = Node(name="a", capacity=allocatable, allocatable=allocatable, labels=tuple(sorted(labels.items())))
    catalog = KarpenterMetricsCatalog(endpoint.url, clock=ManualClock())
    large, _ = catalog.instance_types(ClusterView(nodes=(seen,)))
    assert large.allocatable == allocatable
    assert {offering.zone for offering in large.offerings} == {"eu-west-1a"}
    assert catalog.source.endswith("; overhead and pods of 2 types that no node has yet are estimates")


def test_it_is_read_again_only_after_a_while(endpoint: Endpoint) -> None:
    clock = ManualClock()
    catalog = KarpenterMetricsCatalog(endpoint.url, clock=clock)
    for _ in range(3):
        catalog.instance_types(ClusterView())
    assert endpoint.requests == 1
    clock.advance(timedelta(minutes=5))
    catalog.instance_types(ClusterView())
    assert endpoint.requests == 2


def test_what_was_read_serves_for_an_hour_when_karpenter_is_down(endpoint: Endpoint) -> None:
    clock = ManualClock()
    catalog = KarpenterMetricsCatalog(endpoint.url, clock=clock)
    before = catalog.instance_types(ClusterView())
    endpoint.status = 503
    clock.advance(timedelta(minutes=59))
    assert catalog.instance_types(ClusterView()) == before
    assert "as of 2026-11-23T09:00:00Z" in catalog.source
    clock.advance(timedelta(minutes=6))
    with pytest.raises(Transient, match="HTTP 503"):
        catalog.instance_types(ClusterView())
    endpoint.status = 200
    clock.advance(timedelta(minutes=5))
    assert catalog.instance_types(ClusterView()) == before
    assert "as of 2026-11-23T10:10:00Z" in catalog.source


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("karpenter_nodes_created_total 4\n", "this provider does not export them"),
        ("karpenter_cloudprovider_instance_type_cpu_cores{instance_type=m5} two\n", "cannot be read"),
        ("<html>sign in</html>", "does not export them"),
    ],
)
def test_an_answer_that_is_no_catalogue(endpoint: Endpoint, body: str, message: str) -> None:
    endpoint.body = body
    with pytest.raises(Transient, match=message):
        KarpenterMetricsCatalog(endpoint.url, clock=ManualClock()).instance_types(ClusterView())


def test_nothing_listens_there() -> None:
    with pytest.raises(Transient, match="Connection refused") as caught:
        KarpenterMetricsCatalog("http://127.0.0.1:9/metrics", clock=ManualClock()).instance_types(ClusterView())
    assert caught.value.causes == (), "its reason is in the sentence"


@pytest.mark.parametrize(
    "url", ["http://[::1", "http://user:hunter2@[::1/metrics", "http://host:99999/", "http://host:x/", "http:///"]
)
def test_what_no_parser_takes_for_an_address_is_refused(url: str) -> None:
    with pytest.raises(Invalid, match="is not an address") as caught:
        KarpenterMetricsCatalog(url, clock=ManualClock())
    assert "hunter2" not in caught.value.message


def test_an_address_that_is_none_is_refused_without_its_password() -> None:
    with pytest.raises(Invalid) as caught:
        KarpenterMetricsCatalog("ftp://user:hunter2@host/metrics", clock=ManualClock())
    assert caught.value.message == "karpenter-metrics:ftp://host/metrics is not an address"


def test_the_overhead_of_a_machine_that_nobody_has_seen() -> None:
    machine = Resources.parse({"cpu": "4", "memory": "16Gi", "pods": "110"})
    overhead = estimated_overhead(machine)
    assert overhead.get("cpu") == 80
    assert overhead.get("memory") // 2**20 == 2793

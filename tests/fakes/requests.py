"""A small cluster with a repository, for tests of ProvisioningRequests: passes over the embedded cluster."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Self

from reconciler.cluster.resources import Resource
from reconciler.model.changes import DemandOutcome, Plan
from reconciler.model.nodes import ATTEMPT_LABEL, InstanceType
from reconciler.model.refs import ObjectRef
from reconciler.model.rules import PlacementRules
from reconciler.settings.settings import Settings
from reconciler.stages.state import PassResult
from tests.builders import instance_type, manifest
from tests.fakes.embedded import Document, Sandbox, node_pool, workload
from tests.fakes.source import FakeSource

FOUR = instance_type("m-4x", cpu="4", memory="16Gi")
DEAR = instance_type("z-4x", cpu="4", memory="16Gi", price=0.9)
ZONES = ("zone-a", "zone-b")
CHECK = "check-capacity.autoscaling.x-k8s.io"
ATOMIC = "best-effort-atomic-scale-up.autoscaling.x-k8s.io"
CONSUME = "autoscaling.x-k8s.io/consume-provisioning-request"
CLASS_NAME = "autoscaling.x-k8s.io/provisioning-class-name"
RESERVE: Document = {"annotations": {"headroom.dev/reserve": "true"}}
"""Metadata of a request for nodes of its own."""
MADE, FOUND = ("True", "CapacityIsProvisioned"), ("True", "CapacityIsFound")
NOT_FOUND = ("False", "CapacityIsNotFound")


def pod_template(name: str = "worker", *, cpu: str = "1", namespace: str = "shop", **spec: Any) -> Document:
    container = {"name": "main", "image": "main:1", "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}}}
    return manifest("v1", "PodTemplate", name, namespace, template={"spec": {"containers": [container], **spec}})


def request(
    name: str = "train",
    count: int = 1,
    *,
    class_name: str = CHECK,
    template: str = "worker",
    parameters: Mapping[str, str] | None = None,
    namespace: str = "shop",
    **metadata: Any,
) -> Document:
    return manifest(
        "autoscaling.x-k8s.io/v1",
        "ProvisioningRequest",
        name,
        namespace,
        metadata={**metadata},
        spec={
            "provisioningClassName": class_name,
            "podSets": [{"podTemplateRef": {"name": template}, "count": count}],
            **({"parameters": dict(parameters)} if parameters else {}),
        },
    )


def request_ref(name: str = "train") -> ObjectRef:
    return ObjectRef("autoscaling.x-k8s.io", "ProvisioningRequest", "shop", name)


def pods_of(
    name: str = "train", count: int = 1, *, own: str = "", class_name: str = CHECK, **workload_fields: Any
) -> Document:
    """A workload of pods that consume a request. own: its name, that of the request in most tests."""
    consume = {CONSUME: name, CLASS_NAME: class_name}
    return workload(own or name, replicas=count, annotations=consume, **workload_fields)


class BatchShop:
    """NodePool `general` of nodes with 4 CPUs (a little less for pods), and a PodTemplate `worker` of 1 CPU: three fit on a node."""

    def __init__(
        self,
        *,
        instance_types: Sequence[InstanceType] = (FOUR,),
        settings: Settings | None = None,
        pool: Document | None = None,
        files: Mapping[str, str] | None = None,
        provisions_pending: bool = False,
        nodes: int = 0,
    ) -> None:
        """provisions_pending: Karpenter makes nodes for pods that wait. nodes: that nobody uses, `free-0` and so on."""
        self.sandbox = Sandbox(instance_types=instance_types, provisions_pending=provisions_pending)
        self.settings = settings or Settings(placement=PlacementRules(check=True))
        self.source = FakeSource(files or {})
        self.cluster = self.sandbox.cluster
        self.cluster.apply(pool or node_pool())
        self.cluster.apply(pod_template())
        for number in range(nodes):
            self.sandbox.add_node(f"free-{number}", "m-4x", cpu="3")
        self.restart()

    def restart(self) -> None:
        """Another process: nothing is known but what the cluster has."""
        self.cycle = self.sandbox.new_cycle(self.source, self.settings, cluster=self.cluster)

    def run(self) -> PassResult:
        result = self.cycle.run("test")
        assert result.failure is None, result.failure
        assert result.change_set is not None
        return result

    def settle(self, *documents: Document, passes: int = 8, seconds: float = 5) -> Plan:
        """Applies the documents; then passes with some time between them, until nothing more happens."""
        for document in documents:
            self.cluster.apply(document)
        for _ in range(passes):
            result = self.run()
            self.sandbox.wait(seconds)
        return result.required_plan

    def given(self, *documents: Document, **how: Any) -> Self:
        """As `settle`, for a test to begin with."""
        self.settle(*documents, **how)
        return self

    def plan(self) -> Plan:
        return self.cycle.plan().required_plan

    def wait(self, time: timedelta) -> None:
        self.sandbox.wait(time.total_seconds())

    def outcome(self, name: str = "train") -> DemandOutcome:
        return next(item for item in self.plan().demands if item.demand.ref == request_ref(name))

    def conditions(self, name: str = "train") -> dict[str, tuple[str, str]]:
        """Status and reason by type, as the object has them."""
        live = self.cluster.live(request_ref(name))
        found = (live.get("status") or {}).get("conditions") or ()
        return {item["type"]: (item["status"], item["reason"]) for item in found}

    def message(self, name: str = "train") -> str:
        """Of the condition Provisioned, by the plan."""
        return next(item.message for item in self.outcome(name).conditions if item.type == "Provisioned")

    def attempts(self) -> list[str]:
        """By NodeClaim, the number of the attempt that it is of."""
        labels = (claim.label(ATTEMPT_LABEL) or "" for claim in self.cluster.view().node_claims)
        return sorted(label.rpartition(".")[2] for label in labels)

    def sell(self, *names: str, zones: Sequence[str] = ZONES, available: bool) -> None:
        for name in names:
            for zone in zones:
                self.sandbox.cluster.set_stock(name, zone, "on-demand", available=available)

    def claims(self) -> list[str]:
        return [claim.name for claim in self.cluster.view().node_claims]

    def held(self) -> list[str]:
        view = self.cluster.view()
        return [claim.name for claim in view.node_claims if claim.annotation("headroom.dev/held") == "true"]

    def read(self, resource: Resource) -> Iterable[Mapping[str, Any]]:
        """Every object of a kind, as a snapshot asks for them."""
        found = self.cluster._world.store.all(resource.group, resource.kind)
        return [body for ref, body in found if resource.name in {"", ref.name}]

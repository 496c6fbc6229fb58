"""An embedded cluster whose clock the test moves, and documents to put into it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any

from reconciler.catalog.observed import ClusterCatalog
from reconciler.cluster.embedded.karpenter import Delays
from reconciler.cycle import Cycle
from reconciler.model.changes import Annotate, Apply, Write, WriteResult
from reconciler.model.nodes import DO_NOT_DISRUPT, InstanceType, Node
from reconciler.model.refs import ObjectRef
from reconciler.model.view import ClusterView
from reconciler.ports import Cluster, Source
from reconciler.settings.settings import Settings
from reconciler.stages.state import PassResult
from reconciler.wiring.session import make_cycle
from tests.builders import instance_type, manifest
from tests.fakes.clock import ManualClock
from tests.fakes.played_cluster import PlayedCluster
from tests.fakes.source import FakeSource

Document = dict[str, Any]

NODE_CLASS = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}
DELAYS = Delays(timedelta(seconds=2), timedelta(seconds=3), timedelta(seconds=1))
SMALL = instance_type("m-2x", cpu="2", memory="8Gi", price=0.1)
LARGE = instance_type("m-8x", cpu="8", memory="32Gi", price=0.4, capacity_types=("on-demand", "spot"))


class Sandbox:
    """A cluster without nodes, with namespace `shop`, two zones and two instance types (m-2x, m-8x with spot)."""

    def __init__(
        self, *, instance_types: Sequence[InstanceType] = (SMALL, LARGE), delays: Delays = DELAYS, **options: Any
    ) -> None:
        self.clock = ManualClock()
        self.cluster = PlayedCluster(
            self.clock, delays=delays, instance_types=instance_types, real_time=False, **options
        )
        self.cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})

    def wait(self, seconds: float = 0) -> ClusterView:
        self.clock.advance(seconds)
        return self.cluster.view()

    def new_cycle(
        self,
        source: Source | None = None,
        settings: Settings | None = None,
        *,
        cluster: Cluster | None = None,
        **more: Any,
    ) -> Cycle:
        """Passes of a new process, which knows nothing but the cluster and the source. cluster: seen through something."""
        return make_cycle(
            settings or Settings(),
            source=source or FakeSource(),
            cluster=cluster or self.cluster,
            catalog=ClusterCatalog("embedded"),
            clock=self.clock,
            **more,
        )

    def run_passes(self, cycle: Cycle, count: int = 1, *, wait: float = 10) -> PassResult:
        """The last of some passes. wait: seconds after each."""
        for _ in range(count):
            result = cycle.run("commit")
            assert result.failure is None, result.failure
            self.wait(wait)
        return result

    def write(self, write: Write, *, dry_run: bool = False) -> WriteResult:
        return self.cluster.write(write, dry_run=dry_run)

    def change(self, ref: ObjectRef, change: Callable[[Document], None], manager: str) -> None:
        """A controller's write: `change` gets a copy of the object."""
        with self.cluster._acting():
            self.cluster._world.store.change(ref, change, manager)

    def node(self, name: str) -> Node:
        return next(node for node in self.cluster.view().nodes if node.name == name)

    def node_names(self) -> list[str]:
        return [node.name for node in self.cluster.view().nodes]

    def where(self) -> dict[str, str | None]:
        """Pod → node."""
        return {pod.name: pod.node_name for pod in self.cluster.view().pods}

    def reasons(self) -> list[str]:
        return [recorded.event.reason for recorded in self.cluster.events]

    def add_node(self, name: str, *types: str, **claim: Any) -> None:
        """A Ready node `node-NAME` of pool `general`, which is made if need be."""
        if self.cluster.get(pool_ref()) is None:
            self.cluster.apply(node_pool())
        self.cluster.apply(node_claim(name, *(types or ("m-2x",)), **claim))
        self.wait(5)


class GitSandbox(Sandbox):
    """With NodePool `general`, a repository, and passes over both."""

    def __init__(
        self,
        files: Mapping[str, str],
        *,
        pool: Document | None = None,
        instance_types: Sequence[InstanceType] = (SMALL, LARGE),
    ) -> None:
        super().__init__(instance_types=instance_types)
        self.cluster.apply(pool or node_pool())
        self.source = FakeSource(files)
        self.restart()

    def restart(self) -> None:
        self.cycle = self.new_cycle(self.source)

    def passes(self, seconds: int = 30, *, every: int = 10) -> PassResult:
        return self.run_passes(self.cycle, seconds // every, wait=every)


def pool_ref(name: str = "general") -> ObjectRef:
    return ObjectRef("karpenter.sh", "NodePool", "", name)


def claim_ref(name: str) -> ObjectRef:
    return ObjectRef("karpenter.sh", "NodeClaim", "", name)


def node_ref(name: str) -> ObjectRef:
    return ObjectRef("", "Node", "", name)


def workload_ref(name: str = "web", kind: str = "Deployment") -> ObjectRef:
    return ObjectRef("apps", kind, "shop", name)


def node_pool(name: str = "general", *, consolidate_after: str = "Never", **spec: Any) -> Document:
    """Linux nodes on demand; what `spec` names is replaced."""
    requirements = [
        {"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]},
        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
    ]
    template = {"spec": {"nodeClassRef": NODE_CLASS, "requirements": requirements, "expireAfter": "Never"}}
    disruption = {"consolidateAfter": consolidate_after, "budgets": [{"nodes": "100%"}]}
    return manifest("karpenter.sh/v1", "NodePool", name, spec={"template": template, "disruption": disruption, **spec})


def in_node_pool(name: str) -> Document:
    """The affinity of pods that run in this NodePool only."""
    term = {"matchExpressions": [{"key": "karpenter.sh/nodepool", "operator": "In", "values": [name]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}


def node_claim(
    name: str,
    *types: str,
    zones: Sequence[str] = (),
    held: bool = False,
    pool: str = "general",
    labels: Mapping[str, str] | None = None,
    taints: Sequence[Mapping[str, str]] = (),
    cpu: str = "1",
    expire_after: str = "Never",
) -> Document:
    requirements: list[Document] = [
        {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": list(types)}
    ]
    if zones:
        requirements.append({"key": "topology.kubernetes.io/zone", "operator": "In", "values": list(zones)})
    metadata: Document = {"labels": {"karpenter.sh/nodepool": pool, **(labels or {})}}
    if held:
        metadata["annotations"] = {DO_NOT_DISRUPT: "true"}
    spec = {
        "nodeClassRef": NODE_CLASS,
        "requirements": requirements,
        "resources": {"requests": {"cpu": cpu}},
        "expireAfter": expire_after,
        **({"taints": list(taints)} if taints else {}),
    }
    return manifest("karpenter.sh/v1", "NodeClaim", name, metadata=metadata, spec=spec)


def workload(
    name: str = "web",
    *,
    replicas: int = 1,
    cpu: str = "500m",
    kind: str = "Deployment",
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    **pod_spec: Any,
) -> Document:
    """Pods labelled `app: NAME` in namespace `shop`, with these annotations; pod_spec: more fields of their spec."""
    metadata: Document = {"labels": {"app": name, **(labels or {})}}
    if annotations:
        metadata["annotations"] = dict(annotations)
    container = {"name": "main", "resources": {"requests": {"cpu": cpu, "memory": "256Mi"}}}
    template = {
        "metadata": metadata,
        "spec": {"containers": [{**container, **pod_spec.pop("container", {})}], **pod_spec},
    }
    spec = {"selector": {"matchLabels": {"app": name}}, "template": template}
    return manifest("apps/v1", kind, name, "shop", spec=spec if kind == "DaemonSet" else {"replicas": replicas, **spec})


def buffer(name: str = "web", *, of: str = "web", **spec: Any) -> Document:
    """of: the Deployment whose pods its chunks are like."""
    spec = {"scalableRef": {"apiGroup": "apps", "kind": "Deployment", "name": of}, "replicas": 3, **spec}
    return manifest("autoscaling.x-k8s.io/v1beta1", "CapacityBuffer", name, "shop", spec=spec)


def apply(document: Document, *, force: bool = False) -> Apply:
    """The write that headroom would make of it."""
    metadata = document["metadata"]
    group, slash, _ = document["apiVersion"].rpartition("/")
    ref = ObjectRef(group if slash else "", document["kind"], metadata.get("namespace", ""), metadata["name"])
    return Apply(ref, document, force=force)


def hold(ref: ObjectRef) -> Annotate:
    return Annotate(ref, ((DO_NOT_DISRUPT, "true"),))


def release(ref: ObjectRef) -> Annotate:
    return Annotate(ref, ((DO_NOT_DISRUPT, None),))

"""The kinds that headroom reads, with the names the API has for them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from reconciler.model.nodes import KARPENTER_GROUP

CORE = ""
APPS = "apps"
BATCH = "batch"
SCHEDULING = "scheduling.k8s.io"
STORAGE = "storage.k8s.io"
NODE = "node.k8s.io"
AUTOSCALING = "autoscaling.x-k8s.io"
METRICS = "autoscaling.karpenter.sh"
KUEUE = "kueue.x-k8s.io"


@dataclass(frozen=True, slots=True)
class Resource:
    """One kind as the API serves it. versions: those that headroom understands, the preferred first.

    part: the field of `ClusterView` that has its objects (`nodes`, `storage.claims`); "" for declared kinds and workloads.
    builtin: belongs to Kubernetes itself, so always served. Others come with a CRD or a newer Kubernetes, perhaps later.
    declared: kept whole as a LiveObject, since `manifests` reads it like a file.
    name, namespace: of the only object to read (the inventory); "" for all.
    """

    group: str
    kind: str
    plural: str
    versions: tuple[str, ...] = ("v1",)
    part: str = ""
    namespaced: bool = True
    builtin: bool = True
    declared: bool = False
    namespace: str = ""
    name: str = ""
    key: tuple[str, str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", (self.group, self.kind))

    @property
    def api_version(self) -> str:
        """The preferred `GROUP/VERSION`."""
        return f"{self.group}/{self.versions[0]}" if self.group else self.versions[0]

    def __str__(self) -> str:
        """`nodepools.karpenter.sh`, `pods`: its name in kubectl and RBAC."""
        return f"{self.plural}.{self.group}" if self.group else self.plural


def _custom(group: str, kind: str, versions: tuple[str, ...], *, part: str = "", namespaced: bool = True) -> Resource:
    """A kind that is no part of a view for itself is declared in Git."""
    return Resource(group, kind, plural_of(kind), versions, part, namespaced, builtin=False, declared=not part)


def plural_of(kind: str) -> str:
    """The usual plural, in lower case."""
    return f"{kind.lower()}es" if kind.endswith("s") else f"{kind.lower()}s"


NODES = Resource(CORE, "Node", "nodes", part="nodes", namespaced=False)
PODS = Resource(CORE, "Pod", "pods", part="pods")
NAMESPACES = Resource(CORE, "Namespace", "namespaces", part="namespaces", namespaced=False)
RESOURCE_QUOTAS = Resource(CORE, "ResourceQuota", "resourcequotas", part="resource_quotas")
POD_TEMPLATES = Resource(CORE, "PodTemplate", "podtemplates", declared=True)
DEPLOYMENTS = Resource(APPS, "Deployment", "deployments")
REPLICA_SETS = Resource(APPS, "ReplicaSet", "replicasets")
STATEFUL_SETS = Resource(APPS, "StatefulSet", "statefulsets")
REPLICATION_CONTROLLERS = Resource(CORE, "ReplicationController", "replicationcontrollers")
JOBS = Resource(BATCH, "Job", "jobs")
CRON_JOBS = Resource(BATCH, "CronJob", "cronjobs")
DAEMON_SETS = Resource(APPS, "DaemonSet", "daemonsets", part="daemon_sets")
PRIORITY_CLASSES = Resource(SCHEDULING, "PriorityClass", "priorityclasses", part="priority_classes", namespaced=False)
POD_DISRUPTION_BUDGETS = Resource(
    "policy", "PodDisruptionBudget", "poddisruptionbudgets", part="pod_disruption_budgets"
)
PERSISTENT_VOLUMES = Resource(CORE, "PersistentVolume", "persistentvolumes", part="storage.volumes", namespaced=False)
VOLUME_CLAIMS = Resource(CORE, "PersistentVolumeClaim", "persistentvolumeclaims", part="storage.claims")
STORAGE_CLASSES = Resource(STORAGE, "StorageClass", "storageclasses", part="storage.classes", namespaced=False)
RUNTIME_CLASSES = Resource(NODE, "RuntimeClass", "runtimeclasses", part="runtime_classes", namespaced=False)
NODE_POOLS = _custom(KARPENTER_GROUP, "NodePool", ("v1", "v1beta1"), namespaced=False)
NODE_CLAIMS = _custom(KARPENTER_GROUP, "NodeClaim", ("v1", "v1beta1"), part="node_claims", namespaced=False)
NODE_OVERLAYS = _custom(KARPENTER_GROUP, "NodeOverlay", ("v1", "v1beta1", "v1alpha1"), namespaced=False)
CAPACITY_BUFFERS = _custom(AUTOSCALING, "CapacityBuffer", ("v1beta1", "v1alpha1"))
BUFFERS = _custom(AUTOSCALING, "Buffer", ("v1alpha1",))
PROVISIONING_REQUESTS = _custom(AUTOSCALING, "ProvisioningRequest", ("v1", "v1beta1"))
PROVISIONING_CLASSES = _custom(AUTOSCALING, "ProvisioningClass", ("v1alpha1",), namespaced=False)
QUEUED_WORKLOADS = _custom(KUEUE, "Workload", ("v1beta2", "v1beta1"), part="queued")
METRICS_PRODUCERS = _custom(METRICS, "MetricsProducer", ("v1alpha1",))

RESOURCES = tuple(value for value in list(globals().values()) if isinstance(value, Resource))
"""In the order above; with the inventory's ConfigMap these are all kinds that are read."""
CONFIG_MAPS = Resource(CORE, "ConfigMap", "configmaps", part="inventory")
WORKLOADS = (DEPLOYMENTS, REPLICA_SETS, STATEFUL_SETS, REPLICATION_CONTROLLERS, JOBS, CRON_JOBS)
BY_KIND = {resource.key: resource for resource in (*RESOURCES, CONFIG_MAPS)}


def only_object(resource: Resource, namespace: str, name: str) -> Resource:
    """The resource restricted to one object."""
    return replace(resource, namespace=namespace, name=name)


def group_of(api_version: str) -> str:
    """`apps/v1` → `apps`, `v1` → ``."""
    group, slash, _ = api_version.rpartition("/")
    return group if slash else CORE


def scaled_kind(group: str, kind: str, plural: str, versions: tuple[str, ...]) -> Resource:
    """A kind that headroom does not know by name, of which only the scale is read."""
    return Resource(group, kind, plural, versions, builtin=False)
